// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>

namespace pkprof {

// "table+0x40"; at its begin, "table".
[[nodiscard]] inline std::string at_offset(std::string name, uint64_t offset) {
  char text[24];
  std::snprintf(text, sizeof text, "+0x%llx", static_cast<unsigned long long>(offset));
  return offset ? std::move(name) + text : std::move(name);
}

}  // namespace pkprof
