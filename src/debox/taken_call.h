// SPDX-License-Identifier: Apache-2.0
// A call that somebody wants to see whole, as the kernel side hands it over.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "model/system_calls.h"
#include "pkprof/debox_user_abi.h"
#include "unwind/stack_walk.h"

namespace pkprof {

struct TakenCall {
  SlowCall call;
  StackTop stack;           // of the program; .ip is 0 where it is not wanted, or not known
  std::string stack_bytes;  // what .stack refers to
};

// What came through the ring, with what was wanted of it; none: it is not all there.
std::optional<TakenCall> taken_call(std::string_view bytes, bool stacks, bool traces);

}  // namespace pkprof
