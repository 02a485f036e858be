// SPDX-License-Identifier: Apache-2.0
#include "attribution/usage/usage.h"

#include <net/if.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <fstream>

namespace pkprof {
namespace {

struct MemoryRule {
  std::string_view prefix;  // of a function's name
  std::string_view kind;
};

// The first frame from within that any of these knows tells what pages are for. What fills a page
// of one kind may need a piece of another: an object of the kernel's is told before all else.
constexpr std::array memory_rules = {
    MemoryRule{"allocate_slab", "kernel objects"},
    MemoryRule{"new_slab", "kernel objects"},
    MemoryRule{"___slab_alloc", "kernel objects"},
    MemoryRule{"refill_objects", "kernel objects"},
    MemoryRule{"___kmalloc_large", "kernel objects"},
    MemoryRule{"__kmalloc_large", "kernel objects"},
    MemoryRule{"shmem_", "shared memory"},
    MemoryRule{"filemap_", "page cache"},
    MemoryRule{"__filemap_", "page cache"},
    MemoryRule{"page_cache_", "page cache"},
    MemoryRule{"pagecache_", "page cache"},
    MemoryRule{"ra_alloc_folio", "page cache"},
    MemoryRule{"read_cache_", "page cache"},
    MemoryRule{"grow_dev_", "page cache"},
    MemoryRule{"__getblk", "page cache"},
    MemoryRule{"alloc_anon_folio", "anonymous"},
    MemoryRule{"do_anonymous_page", "anonymous"},
    MemoryRule{"wp_page_copy", "anonymous"},
    MemoryRule{"do_wp_page", "anonymous"},
    MemoryRule{"do_cow_fault", "anonymous"},
    MemoryRule{"do_swap_page", "anonymous"},
    MemoryRule{"do_huge_pmd_", "anonymous"},
    MemoryRule{"__do_huge_pmd_", "anonymous"},
    MemoryRule{"get_arg_page", "anonymous"},
    MemoryRule{"pte_alloc_one", "page tables"},
    MemoryRule{"__pte_alloc", "page tables"},
    MemoryRule{"__pmd_alloc", "page tables"},
    MemoryRule{"__pud_alloc", "page tables"},
    MemoryRule{"__p4d_alloc", "page tables"},
    MemoryRule{"pgd_alloc", "page tables"},
    MemoryRule{"pmd_alloc", "page tables"},
    MemoryRule{"skb_page_frag", "network buffers"},
    MemoryRule{"sk_page_frag", "network buffers"},
    MemoryRule{"__page_frag", "network buffers"},
    MemoryRule{"page_frag_", "network buffers"},
    MemoryRule{"__alloc_skb", "network buffers"},
    MemoryRule{"alloc_skb_", "network buffers"},
    MemoryRule{"__napi_alloc", "network buffers"},
    MemoryRule{"napi_alloc", "network buffers"},
    MemoryRule{"__netdev_alloc", "network buffers"},
    MemoryRule{"page_pool_", "network buffers"},
    MemoryRule{"__page_pool_", "network buffers"},
    MemoryRule{"skb_", "network buffers"},
    MemoryRule{"packet_", "network buffers"},
    MemoryRule{"pipe_write", "pipes"},
    MemoryRule{"anon_pipe_", "pipes"},
    MemoryRule{"__vmalloc", "kernel memory"},
    MemoryRule{"vmalloc", "kernel memory"},
    MemoryRule{"dup_task_struct", "kernel memory"},
};

std::string_view memory_kind(std::span<const std::string_view> functions) {
  for (const std::string_view function : functions) {
    const auto rule = std::ranges::find_if(
        memory_rules, [&](const MemoryRule& one) { return function.starts_with(one.prefix); });
    if (rule != memory_rules.end()) return rule->kind;
  }
  return "other";
}

std::string_view disk_operation(uint8_t operation) {
  switch (operation) {
    case PK_DISK_READ:
      return "disk:read";
    case PK_DISK_WRITE:
    case PK_DISK_WRITE_ZEROES:
      return "disk:write";
    case PK_DISK_FLUSH:
      return "disk:flush";
    case PK_DISK_DISCARD:
      return "disk:discard";
    default:
      return "disk:other";
  }
}

// Of a row of a lock that was not waited for in a process's own context the kind is not known.
std::string lock_kind(uint8_t flags) {
  const std::string how = flags & PK_LOCK_READ ? ":read" : flags & PK_LOCK_WRITE ? ":write" : "";
  if (flags & PK_LOCK_MUTEX) return "lock:mutex";
  if (flags & PK_LOCK_RT) return "lock:rt_mutex";
  if (flags & PK_LOCK_PERCPU) return "lock:percpu_rwsem" + how;
  if (flags & PK_LOCK_SPIN && !how.empty()) return "lock:rwlock" + how;
  if (!how.empty()) return "lock:rwsem" + how;
  return "lock:spinlock";
}

}  // namespace

Resource resource_of(const pk_key& key) {
  switch (key.usage) {
    case PK_DISK_BYTES:
    case PK_DISK_SERVICE:
    case PK_DISK_QUEUED:
      return Resource::disk;
    case PK_MEMORY_TAKEN:
    case PK_MEMORY_RECLAIMED:
      return Resource::memory;
    case PK_LOCK_WAITED:
      return Resource::lock;
    default:
      return Resource::net;
  }
}

SampleValue value_of(const pk_key& key, const pk_count& count) {
  SampleValue value{.count = count.samples};
  const bool is_time = key.usage == PK_DISK_SERVICE || key.usage == PK_DISK_QUEUED;
  (is_time ? value.exact_ns : value.ns) = count.ns;
  return value;
}

std::string usage_source(const pk_key& key, std::span<const std::string_view> functions) {
  switch (key.usage) {
    case PK_DISK_BYTES:
    case PK_DISK_SERVICE:
      return std::string(disk_operation(PK_DEVICE_OPERATION(key.device)));
    case PK_DISK_QUEUED:
      return "disk:queued";
    case PK_NET_SENT:
      return "net:sent";
    case PK_NET_RECEIVED:
      return "net:received";
    case PK_NET_RESENT:
      return "net:resent";
    case PK_NET_DROPPED:
      return "net:dropped";
    case PK_MEMORY_TAKEN:
      return "memory:" + std::string(memory_kind(functions));
    case PK_MEMORY_RECLAIMED:
      return "memory:reclaimed";
    default:
      return lock_kind(key.lock);
  }
}

std::optional<SampleKey> as_lock(Profile& profile, const SampleKey& wait, const pk_key& row) {
  const bool of_file = !row.compat && (row.syscall == SYS_flock || row.syscall == SYS_fcntl);
  if (profile.text(wait.source) != "wait:lock" || (!row.futex && !of_file)) return std::nullopt;
  SampleKey key = wait;
  key.resource = Resource::lock;
  key.source = profile.string(of_file ? "lock:file" : "lock:futex");
  key.wakeup = 0;
  return key;
}

const std::string& DeviceNames::of(const pk_key& key) {
  const bool is_disk = resource_of(key) == Resource::disk;
  const uint32_t number = PK_DEVICE_NUMBER(key.device);
  const auto [it, fresh] = names_.try_emplace({is_disk, number});
  if (!fresh) return it->second;
  if (!is_disk) {
    char name[IF_NAMESIZE];
    it->second =
        if_indextoname(number, name) ? std::string(name) : "interface " + std::to_string(number);
    return it->second;
  }
  constexpr uint32_t minor_bits = 20;
  const std::string at = std::to_string(number >> minor_bits) + ":" +
                         std::to_string(number & ((1U << minor_bits) - 1));
  std::ifstream in("/sys/dev/block/" + at + "/uevent");
  constexpr std::string_view key_of_name = "DEVNAME=";
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(key_of_name)) it->second = line.substr(key_of_name.size());
  if (it->second.empty()) it->second = "disk " + at;
  return it->second;
}

}  // namespace pkprof
