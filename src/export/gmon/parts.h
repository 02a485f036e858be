// SPDX-License-Identifier: Apache-2.0
// A profile by whom the time was for: each process, the kernel itself, processes that were not
// selected, nobody. Each part is a call graph of its own, and they add up to all that is not idle.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/profile.h"

namespace pkprof {

struct GmonFunction {
  std::string name;   // "137k:vfs_read", cleaned
  std::string where;  // the file it is from, "kernel", or ""; cleaned
  FrameKind kind = FrameKind::user;
  bool root = false;     // no function: whom the time was for
  bool counted = false;  // however it was called, that was counted
  uint64_t self_ns = 0;

  [[nodiscard]] bool is_user() const { return !root && kind == FrameKind::user; }
};

struct GmonCall {
  uint32_t caller = 0;  // places in functions
  uint32_t callee = 0;
  uint64_t ns = 0;     // of the stacks in which the one calls the other
  uint64_t calls = 0;  // where counted
};

struct GmonPart {
  LabelKind kind = LabelKind::process;
  LabelId label = 0;  // of a process, or an address
  std::vector<GmonFunction> functions;
  std::vector<GmonCall> calls;

  // A process, or a client on another machine: there is user code.
  [[nodiscard]] bool is_somebody() const {
    return kind == LabelKind::process || kind == LabelKind::remote;
  }
  [[nodiscard]] uint64_t user_ns() const;
  [[nodiscard]] uint64_t kernel_ns() const;
};

// Those with any time: kernel, unclaimed, other, then the processes in the order of their labels.
// With `pids`, processes that are not among them are part of other. Of other there are no user
// functions but one, for all of that time. In a profile that is charged to clients, servers'
// functions are in the client's part, and a client on another machine has a part.
[[nodiscard]] std::vector<GmonPart> gmon_parts(const Profile& profile,
                                               const std::vector<uint32_t>& pids);

}  // namespace pkprof
