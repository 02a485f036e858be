// SPDX-License-Identifier: Apache-2.0
// What was used of resources other than time, and how long locks were waited for: by whom, and how.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "model/profile.h"
#include "report/groups.h"

namespace pkprof {

// In one way: "read", "page cache", "mutex".
struct Used {
  uint64_t amount = 0;   // bytes, or nanoseconds; see is_in_bytes()
  uint64_t count = 0;    // requests, packets, allocations or waits, about
  uint64_t time_ns = 0;  // of disks
};

struct User {
  GroupId who = 0;
  Used all;
  std::map<std::string, Used> ways;
  std::map<std::string, std::map<std::string, Used>> devices;  // of disks and networks: their ways
  std::map<GroupId, uint64_t> others;  // of locks: ns by who held them; of networks: bytes by peer
};

// One that was waited for, by threads of all that are asked for together.
struct UsedLock {
  std::string name;  // "cache_lock", "mmap_lock", "&ext4_inode_cache", "0x7f3a2c001040"
  std::string way;   // "futex", "rwsem:write"
  Used all;
  std::map<GroupId, uint64_t> waiters;  // ns
  std::map<GroupId, uint64_t> holders;  // ns
};

struct Usage {
  Groups groups;
  Resource resource;
  std::vector<User> rows;  // the largest first; special ones, which are no process's, at the end
  User total;
  // Of Resource::lock, the longest first. Of those of files it is not known which they are.
  std::vector<UsedLock> locks;
};

// Of a profile with all of its resources, which must outlive it.
[[nodiscard]] Usage usage_of(const Profile& profile, Resource resource, By by,
                             std::span<const uint32_t> pids);
// Those that a profile has, but for CPU time and waits.
[[nodiscard]] std::vector<Resource> used_resources(const Profile& profile);

}  // namespace pkprof
