// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "model/profile.h"
#include "top/column.h"
#include "top/screen.h"

namespace pkprof::top {

// The page of help: what columns and keys mean, in 80 columns. `resources`: those that are shown
// besides CPU time.
[[nodiscard]] inline std::vector<Line> help_lines(std::span<const Resource> resources = {}) {
  std::vector<Line> lines = {{{"For whom is my kernel working?", Tone::strong}}, {}};
  const auto add = [&](std::string field, const char* means, Tone tone = Tone::plain) {
    field.resize(13, ' ');
    lines.push_back({{"  " + field, tone}, {means}});
  };
  for (const Column column :
       {Column::seems, Column::user, Column::own, Column::async, Column::costs, Column::stolen,
        Column::for_others, Column::with_servers})
    add(full_title_of(column), meaning_of(column), tone_of(column));
  add("WHY", "by what work it was served (ASYNC), for whom it worked (STOLEN)");
  lines.push_back({{"  All in percent of one CPU, of the last interval.", Tone::dim}});
  for (const Column column : columns_of(false, resources))
    if (resource_of(column) != Resource::cpu) add(full_title_of(column), meaning_of(column));
  if (!resources.empty())
    add("all:", "the same of the whole machine, also what was for no process");
  lines.emplace_back();
  add("up, down", "select a row; also j, k, PgUp, PgDn, Home, End");
  add("Enter", "the row's own page: sources, who works for it, hot stacks");
  add("q, Esc", "back; q in the list ends it");
  add("< >", "sort by the column to the left, to the right;  r  the other way");
  add("C, F2", "choose the columns: Space shows or hides one, s sorts by it");
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
