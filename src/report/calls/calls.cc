// SPDX-License-Identifier: Apache-2.0
#include "report/calls/calls.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "model/source.h"

namespace pkprof {

CallCounts count_calls(const Profile& profile, const ReportOptions& options) {
  CallCounts counts{.table = functions_of(profile)};
  Groups groups(profile, options.by, options.pids);
  // Whose: a group, or behind those a label that is of no process.
  std::map<std::tuple<uint64_t, FunctionId, FunctionId>, CallsRow> sums;
  std::set<FunctionId> called;
  for (const auto& [key, value] : profile.samples()) {
    if (profile.text(key.source) != counted_calls) continue;
    const auto frames = profile.frames_of(key.stack);
    const Label& served = profile.labels()[key.served];
    const bool shown = options.pids.empty() || is_selected(served, options.pids);
    if (frames.empty() || !shown) {
      counts.left_out += value.calls;
      continue;
    }
    const FunctionId function = counts.table.of_frame[frames[0]];
    const FunctionId caller = frames.size() > 1 ? counts.table.of_frame[frames[1]] : UINT32_MAX;
    const bool process = served.kind == LabelKind::process;
    const GroupId group = process ? groups.of(key.served, key.served_thread) : 0;
    const uint64_t whose = process ? group : uint64_t{1} << 32 | key.served;
    CallsRow& row =
        sums.try_emplace({whose, function, caller}, CallsRow{key.served, group, function, caller})
            .first->second;
    row.calls += value.calls;
    called.insert(function);
    counts.calls += value.calls;
  }
  for (const auto& [key, row] : sums) counts.rows.push_back(row);
  std::ranges::stable_sort(counts.rows, std::greater(), &CallsRow::calls);
  counts.groups = groups.all();
  counts.functions = called.size();
  return counts;
}

std::string CallCounts::served(const Profile& profile, By by, const CallsRow& row) const {
  const Label& label = profile.labels()[row.label];
  if (label.kind != LabelKind::process) return label.name();
  return group_title(profile, by, groups[row.served]);
}

}  // namespace pkprof
