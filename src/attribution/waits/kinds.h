// SPDX-License-Identifier: Apache-2.0
// What a thread waited for, by where in the kernel it did and by who ended it.
#pragma once

#include <span>
#include <string_view>

#include "pkprof/user_abi.h"

namespace pkprof {

struct WaitClues {
  pk_wait_part part = PK_WAIT_BLOCKED;
  std::span<const std::string_view> functions;  // of the kernel stack, innermost first
  uint8_t futex = 0;                            // 1 + the operation; 0: in no such call
  const pk_waker* waker = nullptr;              // nullptr: not known
  std::span<const std::string_view> callers;    // of the user stack, innermost first
};

// "runnable", "disk", "reply", "lock", "event", "child", "timer", "memory", "fault", "idle",
// "stopped" or "other".
[[nodiscard]] std::string_view wait_kind(const WaitClues& clues);

}  // namespace pkprof
