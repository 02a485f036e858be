// SPDX-License-Identifier: Apache-2.0
// The width of the terminal, where the shell says so.
#pragma once

#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace pkprof {

// What COLUMNS says; 0 where it says nothing that a terminal can have.
[[nodiscard]] inline uint16_t columns_of_environment() {
  const char* const set = std::getenv("COLUMNS");
  const std::string_view text = set ? set : "";
  uint16_t columns = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), columns);
  return error == std::errc() && end == text.data() + text.size() ? columns : 0;
}

}  // namespace pkprof
