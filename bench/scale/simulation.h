// SPDX-License-Identifier: Apache-2.0
// A long recording in a short time: the code of a recording's user side is given tables and events
// as the kernel side would hand them over, a second's worth each time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace pkprof::scale {

struct Scenario {
  std::string name;
  uint32_t seconds = 3600;
  uint32_t steady_stacks = 2000;  // that come each second
  uint32_t new_stacks = 50;       // each second: never seen before, never again
  uint32_t processes = 200;       // each second: fork, exec, four mappings, exit
  uint32_t depth = 30;            // frames of a stack
  bool bounded = true;            // false: no limits, for comparison
  std::vector<uint32_t> show;     // seconds to print memory at
};

// Prints a table of it.
[[nodiscard]] Result<> simulate(const Scenario& scenario);

}  // namespace pkprof::scale
