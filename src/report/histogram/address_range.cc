// SPDX-License-Identifier: Apache-2.0
#include "report/histogram/address_range.h"

#include <algorithm>
#include <charconv>
#include <cinttypes>
#include <cstdio>
#include <string>
#include <vector>

namespace pkprof {

namespace {

std::optional<uint64_t> address_in(std::string_view text) {
  if (text.starts_with("0x") || text.starts_with("0X")) text.remove_prefix(2);
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string range_text(const AddressRange& range) {
  char text[64];
  std::snprintf(text, sizeof text, "%" PRIx64 "-%" PRIx64, range.first, range.last);
  return text;
}

// Without the list of parameters, which is the last parenthesis that is not of what it is nested
// in: "(anonymous namespace)::run(int)".
std::string_view without_parameters(std::string_view function) {
  size_t depth = 0;
  if (!function.ends_with(')') && !function.ends_with(") const")) return function;
  for (size_t i = function.rfind(')') + 1; i-- > 0;) {
    if (function[i] == ')') ++depth;
    if (function[i] == '(' && --depth == 0) return function.substr(0, i);
  }
  return function;
}

}  // namespace

std::optional<Result<AddressRange>> parse_range(std::string_view text) {
  const size_t dash = text.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const auto first = address_in(text.substr(0, dash));
  const auto last = address_in(text.substr(dash + 1));
  if (!first || !last) return std::nullopt;
  if (*last < *first) return fail("-r " + std::string(text) + ": it ends before it starts");
  return AddressRange{*first, *last};
}

bool is_called(std::string_view function, std::string_view name) {
  if (name.empty()) return false;
  if (function == name) return true;
  const std::string_view bare = without_parameters(function);
  if (bare == name) return true;
  return bare.size() > name.size() + 2 && bare.ends_with(name) &&
         bare.substr(0, bare.size() - name.size()).ends_with("::");
}

Result<AddressRange> range_of_function(const FileCode& code, std::string_view name) {
  std::vector<AddressRange> found;
  const auto add = [&](const FileCode::Function& f) {
    const AddressRange range{f.start, f.end - 1};
    if (std::ranges::find(found, range) == found.end()) found.push_back(range);
  };
  for (const FileCode::Function& f : code.names)
    if (f.name == name) add(f);
  for (const bool exact : {true, false}) {
    if (!found.empty()) break;
    for (const FileCode::Function& f : code.functions)
      if (exact ? f.name == name : is_called(f.name, name)) add(f);
  }
  if (found.size() == 1) return found[0];
  if (found.empty())
    return fail("-r " + std::string(name) + ": neither START-END nor a function of " + code.file +
                "; `nm` lists them");
  std::string places;
  for (size_t i = 0; i < std::min<size_t>(found.size(), 4); ++i)
    places += (i ? ", " : "") + range_text(found[i]);
  if (found.size() > 4) places += " ...";
  return fail("-r " + std::string(name) + ": there are " + std::to_string(found.size()) +
              " of that name, give addresses: " + places);
}

}  // namespace pkprof
