// SPDX-License-Identifier: Apache-2.0
// What /proc says of a process or a thread: its program, its descent, when it began.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace pkprof {

struct ProcStat {
  std::string comm;
  uint32_t parent = 0;
  uint32_t threads = 0;         // with its first one, also if that has ended
  uint64_t start_boottime = 0;  // ns, in steps of a clock tick
};

// Nothing: it is gone.
[[nodiscard]] std::optional<ProcStat> proc_stat(uint32_t pid);
// The path of its program; "" if that is not to be had.
[[nodiscard]] std::string proc_exe(uint32_t pid);
// 0: it is gone.
[[nodiscard]] uint32_t proc_parent(uint32_t pid);
// A thread's process; the thread itself where nothing is said.
[[nodiscard]] uint32_t proc_process(uint32_t tid);
// Is there none of that number any more?
[[nodiscard]] bool is_gone(uint32_t number);

}  // namespace pkprof
