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
  if (column == Column::name && by == By::host) return "HOST";
  return titles[static_cast<size_t>(column)];
}

std::string full_title_of(Column column) {
  const std::string upper(upper_title_of(column));
  return (upper.empty() ? "" : upper + " ") + std::string(title_of(column, By::pid));
}

const char* meaning_of(Column column) {
  constexpr std::array meanings = {"",
                                   "",
                                   "it was on the CPU, whoever was served; what top(1) shows",
                                   "its own code",
                                   "the kernel, in its context: system calls, faults",
                                   "the kernel for it elsewhere: interrupts, softirqs, kworkers",
                                   "what it really costs: USER + OWN + ASYNC",
                                   "part of COSTS, for its clients as a server (--clients)",
                                   "COSTS without FOR OTHERS, with what servers did for it",
                                   "it was on the CPU, and the kernel worked for another",
                                   "bytes that disks read for it, a second",
                                   "bytes that disks wrote for it, also when kworkers write back",
                                   "bytes of packets for it, with headers, a second",
                                   "bytes of packets that it sent, with headers, a second",
                                   "bytes of memory taken for it; not what it still has",
                                   "it waited for locks: all of its threads, % of the interval",
                                   "it waited, and was not idle: all of its threads, likewise"};
  static_assert(meanings.size() == column_count);
  return meanings[static_cast<size_t>(column)];
}

Tone tone_of(Column column) {
  switch (column) {
    case Column::user:
      return Tone::user;
    case Column::own:
      return Tone::own;
    case Column::async:
      return Tone::async;
    case Column::costs:
      return Tone::strong;
    default:
      return Tone::plain;
  }
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
