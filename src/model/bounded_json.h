// SPDX-License-Identifier: Apache-2.0
// JSON from files that anyone may have made.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

namespace pkprof {

// Parses an object or a list. Throws `Malformed{reason}` before nesting, an object's keys, of which
// each is compared with all before it, or the number of values, of which each takes many times what
// it takes as text, cost memory, stack or hours; what the library throws otherwise.
template <typename Malformed>
nlohmann::ordered_json parse_bounded(std::string_view text, int max_nesting) {
  using Json = nlohmann::ordered_json;
  using Event = Json::parse_event_t;
  constexpr size_t max_keys = 128;
  constexpr size_t max_values = size_t{1} << 23;
  size_t values = 0;
  std::vector<size_t> keys(static_cast<size_t>(max_nesting) + 2);  // of the object at each depth
  return Json::parse(text, [&](int depth, Event event, Json&) {
    if (depth > max_nesting) throw Malformed{"nested too deeply"};
    const auto at = static_cast<size_t>(depth);
    if (event == Event::object_start) keys[at + 1] = 0;
    if (event == Event::key && ++keys[at] > max_keys)
      throw Malformed{"an object has too many keys"};
    if ((event == Event::value || event == Event::array_start || event == Event::object_start) &&
        ++values > max_values)
      throw Malformed{"it has too many values"};
    return true;
  });
}

}  // namespace pkprof
