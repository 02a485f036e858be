// SPDX-License-Identifier: Apache-2.0
#include "report/calls/calls_json.h"

#include "report/calls/calls.h"
#include "report/json_header.h"

namespace pkprof {

namespace {

// A pid where it is one, "KERNEL", "UNCLAIMED:dropped" and so on where it is none.
void put_served(const Profile& profile, By by, const CallCounts& counts, const CallsRow& row,
                Json& to) {
  const Label& label = profile.labels()[row.label];
  const bool one = by == By::pid || by == By::thread;
  if (label.kind != LabelKind::process || !one) {
    to["served"] = counts.served(profile, by, row);
    return;
  }
  to["served"] = label.pid;
  if (by == By::thread) to["thread"] = counts.groups[row.served].thread;
  to["comm"] = label.comm;
}

}  // namespace

std::string calls_json(const Profile& profile, const ReportOptions& options) {
  const CallCounts counts = count_calls(profile, options);
  Json report = json_header(profile, "pkprof.calls/1", options.by);
  report["functions"] = profile.meta.counted_functions;
  report["means"] = profile.meta.counted_by;
  report["total"] = counts.calls;
  report["left_out"] = counts.left_out;
  Json& rows = report["calls"] = Json::array();
  for (const CallsRow& row : counts.rows) {
    Json to = Json::object();
    put_served(profile, options.by, counts, row, to);
    to["function"] = counts.table.functions[row.function].name;
    if (row.caller != UINT32_MAX) to["caller"] = counts.table.functions[row.caller].name;
    to["calls"] = row.calls;
    rows.push_back(std::move(to));
  }
  return json_line(report);
}

}  // namespace pkprof
