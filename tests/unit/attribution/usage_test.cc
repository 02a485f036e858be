// SPDX-License-Identifier: Apache-2.0
// What rows of other resources are called, and how much they are.
#include "attribution/usage/usage.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>

#include <vector>

namespace pkprof {
namespace {

using Functions = std::vector<std::string_view>;

pk_key row(pk_usage usage) {
  pk_key key{};
  key.kind = PK_USAGE;
  key.usage = static_cast<uint8_t>(usage);
  return key;
}

std::string memory(const Functions& functions) {
  return usage_source(row(PK_MEMORY_TAKEN), functions);
}

std::string lock(uint8_t flags) {
  pk_key key = row(PK_LOCK_WAITED);
  key.lock = flags;
  return usage_source(key, {});
}

TEST(UsageRows, OfDisks) {
  pk_key key = row(PK_DISK_BYTES);
  key.device = PK_DEVICE(254U << 20, PK_DISK_WRITE);
  EXPECT_EQ(usage_source(key, {}), "disk:write");
  key.device = PK_DEVICE(254U << 20, PK_DISK_WRITE_ZEROES);
  EXPECT_EQ(usage_source(key, {}), "disk:write");
  key.device = PK_DEVICE(254U << 20, PK_DISK_DISCARD);
  EXPECT_EQ(usage_source(key, {}), "disk:discard");
  EXPECT_EQ(resource_of(key), Resource::disk);
  EXPECT_EQ(value_of(key, {.ns = 4096, .samples = 1}), (SampleValue{.count = 1, .ns = 4096}));
  EXPECT_EQ(value_of(row(PK_DISK_QUEUED), {.ns = 7, .samples = 0}), (SampleValue{.exact_ns = 7}));
}

TEST(UsageRows, OfNetworks) {
  EXPECT_EQ(usage_source(row(PK_NET_SENT), {}), "net:sent");
  EXPECT_EQ(usage_source(row(PK_NET_DROPPED), {}), "net:dropped");
  EXPECT_EQ(resource_of(row(PK_NET_RESENT)), Resource::net);
}

// By the function nearest to the allocation that says what it is for.
TEST(UsageRows, OfMemory) {
  EXPECT_EQ(memory({"alloc_pages_noprof", "folio_alloc_noprof", "__filemap_get_folio",
                    "ext4_write_begin", "generic_perform_write"}),
            "memory:page cache");
  EXPECT_EQ(memory({"__alloc_pages_noprof", "vma_alloc_folio_noprof", "alloc_anon_folio",
                    "do_anonymous_page", "handle_mm_fault"}),
            "memory:anonymous");
  EXPECT_EQ(memory({"alloc_pages", "allocate_slab", "___slab_alloc", "kmem_cache_alloc_node",
                    "__alloc_skb", "sock_alloc_send_pskb"}),
            "memory:kernel objects");
  EXPECT_EQ(memory({"alloc_pages", "skb_page_frag_refill", "sk_page_frag_refill", "tcp_sendmsg"}),
            "memory:network buffers");
  EXPECT_EQ(memory({"alloc_pages", "pte_alloc_one", "__pte_alloc", "do_anonymous_page"}),
            "memory:page tables");
  EXPECT_EQ(memory({"alloc_pages", "some_driver_ioctl"}), "memory:other");
  EXPECT_EQ(memory({}), "memory:other");
}

TEST(UsageRows, OfLocks) {
  EXPECT_EQ(lock(PK_LOCK_SPIN), "lock:spinlock");
  EXPECT_EQ(lock(PK_LOCK_MUTEX), "lock:mutex");
  EXPECT_EQ(lock(PK_LOCK_MUTEX | PK_LOCK_SPIN), "lock:mutex");
  EXPECT_EQ(lock(PK_LOCK_WRITE), "lock:rwsem:write");
  EXPECT_EQ(lock(PK_LOCK_SPIN | PK_LOCK_READ), "lock:rwlock:read");
  EXPECT_EQ(lock(PK_LOCK_PERCPU | PK_LOCK_WRITE), "lock:percpu_rwsem:write");
}

// Of a program's lock, what waiting for it told.
TEST(UsageRows, OfLocksOfPrograms) {
  Profile profile;
  SampleKey wait{.source = profile.string("wait:lock"), .resource = Resource::wait};
  pk_key futex{};
  futex.futex = 1;
  pk_key file{};
  file.syscall = SYS_flock;
  const auto key = as_lock(profile, wait, futex);
  ASSERT_TRUE(key.has_value());
  EXPECT_EQ(key->resource, Resource::lock);
  EXPECT_EQ(profile.text(key->source), "lock:futex");
  const auto of_file = as_lock(profile, wait, file);
  ASSERT_TRUE(of_file.has_value());
  EXPECT_EQ(profile.text(of_file->source), "lock:file");
  EXPECT_FALSE(as_lock(profile, wait, pk_key{}).has_value());  // a lock of the kernel's
  wait.source = profile.string("wait:disk");
  EXPECT_FALSE(as_lock(profile, wait, futex).has_value());
}

TEST(UsageRows, OfDevicesThatAreGone) {
  DeviceNames names;
  pk_key key = row(PK_NET_SENT);
  key.device = PK_DEVICE(1, 0);
  EXPECT_EQ(names.of(key), "lo");
  key.device = PK_DEVICE(0x7ffffff0, 0);
  EXPECT_EQ(names.of(key), "interface 2147483632");
  key = row(PK_DISK_BYTES);
  key.device = PK_DEVICE(4000U << 20 | 5, 0);
  EXPECT_EQ(names.of(key), "disk 4000:5");
}

}  // namespace
}  // namespace pkprof
