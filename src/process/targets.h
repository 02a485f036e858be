// SPDX-License-Identifier: Apache-2.0
// Which processes a target names.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "process/processes.h"

namespace pkprof {

// Whose time is wanted by name; everyone else's is OTHER. Every CPU is sampled in any case, since
// work for a process runs anywhere.
struct Target {
  bool all = false;
  std::vector<uint32_t> pids;  // with their children, present and to come
  std::string cgroup;          // path of a cgroup v2, with all below it
  std::vector<std::string> command;
  std::string user;  // whom the command runs as; empty: as we do
};

// A target as a user may have given it: pids that exist, a cgroup that exists, its path made
// relative to the cgroup v2 mount.
[[nodiscard]] Result<> check_target(Target& target);
// Selects the target's processes and all their present descendants.
void select_processes(Processes& processes, const Target& target, uint32_t command_pid);
// The predicate for the end of the recording, by label.
[[nodiscard]] std::function<bool(uint64_t)> selection(const Processes& processes,
                                                      const Target& target);

}  // namespace pkprof
