// SPDX-License-Identifier: Apache-2.0
#include "top/column.h"

#include <algorithm>
#include <array>

namespace pkprof::top {

std::vector<Column> columns_of(bool clients, std::span<const Resource> resources) {
  std::vector<Column> columns;
  for (size_t i = 0; i < column_count; ++i) {
    const auto column = static_cast<Column>(i);
    const Resource of = resource_of(column);
    const bool shown = of == Resource::cpu ? clients || upper_title_of(column).empty()
                                           : std::ranges::find(resources, of) != resources.end();
    if (shown) columns.push_back(column);
  }
  return columns;
}

std::string_view upper_title_of(Column column) {
  if (column == Column::for_others) return "FOR";
  return column == Column::with_servers ? "WITH" : "";
}

std::string_view title_of(Column column, By by) {
  constexpr std::array<std::string_view, column_count> titles = {
      "PID",    "COMM",   "SEEMS",   "USER",   "OWN",    "ASYNC", "COSTS", "OTHERS", "SERVERS",
      "STOLEN", "READ/s", "WRITE/s", "RECV/s", "SENT/s", "MEM/s", "LOCK",  "WAIT"};
  if (column == Column::id && by == By::thread) return "PID/TID";
  if (column == Column::id && by != By::pid) return "PROCS";
  if (column == Column::name && by == By::cgroup) return "CGROUP";
  if (column == Column::name && by == By::container) return "CONTAINER";
  if (column == Column::name && by == By::unit) return "UNIT";
  if (column == Column::name && by == By::exe) return "EXE";
  return titles[static_cast<size_t>(column)];
}

Resource resource_of(Column column) {
  switch (column) {
    case Column::read:
    case Column::write:
      return Resource::disk;
    case Column::received:
    case Column::sent:
      return Resource::net;
    case Column::memory:
      return Resource::memory;
    case Column::lock:
      return Resource::lock;
    case Column::wait:
      return Resource::wait;
    default:
      return Resource::cpu;
  }
}

}  // namespace pkprof::top
