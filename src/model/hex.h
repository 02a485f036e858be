// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

namespace pkprof {

inline constexpr std::string_view hex_digits = "0123456789abcdef";

// Of a digit in lower case; -1: it is none.
constexpr int hex_value(char c) {
  const size_t i = hex_digits.find(c);
  return i == std::string_view::npos ? -1 : static_cast<int>(i);
}

}  // namespace pkprof
