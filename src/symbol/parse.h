// SPDX-License-Identifier: Apache-2.0
// Taking a line of text apart from its front. Each step either takes what it names or leaves the
// text as it was and says no.
#pragma once

#include <charconv>
#include <cstdint>
#include <string_view>
#include <system_error>

namespace pkprof {

inline bool take_number(std::string_view& text, int base, uint64_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return true;
}

inline bool take_char(std::string_view& text, char c) {
  if (text.empty() || text[0] != c) return false;
  text.remove_prefix(1);
  return true;
}

inline void skip_spaces(std::string_view& text) {
  while (!text.empty() && (text[0] == ' ' || text[0] == '\t')) text.remove_prefix(1);
}

// The text up to the next newline, which is taken too; false at the end of the text.
inline bool take_line(std::string_view& text, std::string_view& line) {
  if (text.empty()) return false;
  const size_t newline = text.find('\n');
  line = text.substr(0, newline);
  text.remove_prefix(newline == std::string_view::npos ? text.size() : newline + 1);
  return true;
}

}  // namespace pkprof
