// SPDX-License-Identifier: Apache-2.0
// Functions, from frames: many addresses are one function, and reports are about functions. Two
// frames are in the same function when its name, the file it was mapped from and its kind agree.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/profile.h"

namespace pkprof {

using FunctionId = uint32_t;

struct Function {
  std::string name;   // "[unknown]" when it has none; not cleaned
  std::string where;  // "kernel", "[nf_tables]", "libc.so.6", "" for pseudo frames; not cleaned
  FrameKind kind = FrameKind::user;
  bool named = true;
};

struct FunctionTable {
  std::vector<Function> functions;
  std::vector<FunctionId> of_frame;  // by FrameId
};

[[nodiscard]] FunctionTable functions_of(const Profile& profile);

// Cleaned, and distinct for a pseudo frame: «softirq:NET_RX», <softirq:NET_RX> in ASCII.
[[nodiscard]] std::string function_title(const Function& function, bool unicode);

}  // namespace pkprof
