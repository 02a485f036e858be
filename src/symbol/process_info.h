// SPDX-License-Identifier: Apache-2.0
// What /proc tells of a living process that its symbols depend on: which files it sees, and which
// pid it has where it lives.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "symbol/elf/file_access.h"

namespace pkprof {

struct ProcessInfo {
  uint64_t start_time = 0;  // see below: with the pid, the process's identity
  uint32_t inner_pid = 0;   // in the innermost pid namespace
  std::optional<uint32_t> uid;
  std::shared_ptr<RootDir> root;  // nullptr when it is our own, or not to be had
};

// Fails when the process is gone.
[[nodiscard]] Result<ProcessInfo> read_process_info(uint32_t pid);
// Only the start time, in clock ticks since boot and one more, to see whether a pid is still the
// same process; 0 when it is gone.
[[nodiscard]] uint64_t process_start_time(uint32_t pid);

}  // namespace pkprof
