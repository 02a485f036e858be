// SPDX-License-Identifier: Apache-2.0
// Names for cgroup numbers (the inode numbers that cgroup v2 gives its directories).
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include "base/fd.h"

namespace pkprof {

// Where cgroup v2 is mounted; "" when it is not.
[[nodiscard]] std::string cgroup2_mount();

class Cgroups {
 public:
  Cgroups();

  // Path below the cgroup v2 mount, beginning with "/"; "" when it cannot be had (no such mount,
  // or the cgroup is gone and no process of it was seen alive). An id of 0 is not known: `pid` is
  // asked.
  std::string path(uint64_t id, uint32_t pid);

 private:
  std::string by_handle(uint64_t id) const;

  std::string mount_;
  Fd root_;
  std::unordered_map<uint64_t, std::string> known_;
};

}  // namespace pkprof
