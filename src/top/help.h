// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "model/profile.h"
#include "top/column.h"
#include "top/screen.h"

namespace pkprof::top {

// Of a column of another resource than CPU time.
[[nodiscard]] inline const char* meaning_of(Column column) {
  switch (column) {
    case Column::read:
      return "bytes that disks read for it, a second";
    case Column::write:
      return "bytes that disks wrote for it, also when kworkers write back";
    case Column::received:
      return "bytes of packets for it, with headers, a second";
    case Column::sent:
      return "bytes of packets that it sent, with headers, a second";
    case Column::memory:
      return "bytes of memory taken for it; not what it still has";
    case Column::lock:
      return "it waited for locks: all of its threads, % of the interval";
    case Column::wait:
      return "it waited, and was not idle: all of its threads, likewise";
    default:
      return "";
  }
}

// The page of help: what columns and keys mean, in 80 columns. `resources`: those that are shown
// besides CPU time.
[[nodiscard]] inline std::vector<Line> help_lines(std::span<const Resource> resources = {}) {
  std::vector<Line> lines = {{{"For whom is my kernel working?", Tone::strong}}, {}};
  const auto add = [&](const char* word, const char* means, Tone tone = Tone::plain) {
    std::string field(word);
    field.resize(13, ' ');
    lines.push_back({{"  " + field, tone}, {means}});
  };
  add("SEEMS", "it was on the CPU, whoever was served; what top(1) shows");
  add("USER", "its own code", Tone::user);
  add("OWN", "the kernel, in its context: system calls, faults", Tone::own);
  add("ASYNC", "the kernel for it elsewhere: interrupts, softirqs, kworkers", Tone::async);
  add("COSTS", "what it really costs: USER + OWN + ASYNC", Tone::strong);
  add("STOLEN", "it was on the CPU, and the kernel worked for another");
  add("FOR OTHERS", "part of COSTS, for its clients as a server (--clients)");
  add("WITH SERVERS", "COSTS without FOR OTHERS, with what servers did for it");
  add("WHY", "by what work it was served (ASYNC), for whom it worked (STOLEN)");
  lines.push_back({{"  All in percent of one CPU, of the last interval.", Tone::dim}});
  for (const Column column : columns_of(false, resources))
    if (resource_of(column) != Resource::cpu)
      add(title_of(column, By::pid).data(), meaning_of(column));
  if (!resources.empty())
    add("all:", "the same of the whole machine, also what was for no process");
  lines.emplace_back();
  add("up, down", "select a row; also j, k, PgUp, PgDn, Home, End");
  add("Enter", "the row's own page: sources, who works for it, hot stacks");
  add("q, Esc", "back; q in the list ends it");
  add("< >", "sort by the column to the left, to the right;  r  the other way");
  add("/", "only rows with this in name, program or control group; Esc: all");
  add("t", "tree: children below their parents");
  add("H", "threads");
  add("c, g", "control groups; the next way to group: comm, exe, container, unit");
  add("f, Space", "freeze what is on the screen, and go on");
  add("w", "save what is on the screen as a profile, for pkprof report");
  lines.emplace_back();
  return lines;
}

}  // namespace pkprof::top
