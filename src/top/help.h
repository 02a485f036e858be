// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "top/screen.h"

namespace pkprof::top {

// The page of help: what columns and keys mean, in 80 columns.
[[nodiscard]] inline std::vector<Line> help_lines() {
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
