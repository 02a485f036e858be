// SPDX-License-Identifier: Apache-2.0
// Columns of the list, and which of them there are.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/profile.h"
#include "report/groups.h"
#include "top/screen.h"

namespace pkprof::top {

enum class Column : uint8_t {
  id = 0,
  name,
  seems,
  user,
  own,
  async,
  costs,
  for_others,  // this one and the next only where clients are recorded
  with_servers,
  stolen,
  read,  // these only where their resources are recorded
  write,
  received,
  sent,
  memory,
  lock,
  wait
};
inline constexpr size_t column_count = 17;
inline constexpr Column first_rate = Column::read;
inline constexpr size_t rate_count = column_count - static_cast<size_t>(first_rate);

// From left to right. `resources`: those that are shown besides CPU time.
[[nodiscard]] std::vector<Column> columns_of(bool clients,
                                             std::span<const Resource> resources = {});
[[nodiscard]] std::string_view title_of(Column column, By by);
// Of a title of two words the first, else "".
[[nodiscard]] std::string_view upper_title_of(Column column);
// In one line, as help and the choice of columns have it.
[[nodiscard]] std::string full_title_of(Column column);
// In a few words; "" of those that say which row it is.
[[nodiscard]] const char* meaning_of(Column column);
[[nodiscard]] Tone tone_of(Column column);
// What it is of.
[[nodiscard]] Resource resource_of(Column column);

}  // namespace pkprof::top
