// SPDX-License-Identifier: Apache-2.0
// Which of the kernel's functions are to have their calls counted.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "base/result.h"
#include "model/profile.h"
#include "symbol/symbolizer.h"

namespace pkprof {

struct CallTarget {
  std::string name;
  std::vector<std::string> names;  // it and its aliases, as far as no other function has them
  uint64_t address = 0;
  bool in_module = false;
  bool ahead = false;  // called for a packet before it is known which, see bpf/calls/calls.bpf.c
};

// The functions of these names, or patterns as a shell has them, by address. With a pattern, those
// are left out that counting itself calls. Fails for a name or a pattern that nothing has.
[[nodiscard]] Result<std::vector<CallTarget>> find_call_targets(
    const KernelSymbols& symbols, std::span<const std::string> patterns);

// Those that the kernel says can be traced; empty where it does not say (no tracefs).
[[nodiscard]] std::unordered_set<std::string> traceable_functions();

// The kernel's functions that had the most time themselves: at most so many, and none with less
// than a thousandth of all the time in the kernel.
[[nodiscard]] std::vector<std::string> hot_functions(const Profile& profile, size_t most = 40);

}  // namespace pkprof
