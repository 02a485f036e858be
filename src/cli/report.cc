// SPDX-License-Identifier: Apache-2.0
// pkprof report.
#include <memory>
#include <string>

#include "cli/commands.h"
#include "cli/terminal.h"
#include "model/pprof.h"
#include "report/flat_text.h"
#include "report/ledger_text.h"
#include "report/report_json.h"
#include "report/tree_text.h"

namespace pkprof {
namespace {

struct Options {
  std::string file = "pkprof.pb.gz";
  std::string view = "ledger";
  std::vector<uint32_t> pids;
  std::string by = "pid";
  bool json = false;
  size_t rows = 0;
  double threshold = 0.5;
};

int show(const Options& o) {
  const By by = by_from_string(o.by).value_or(By::pid);
  if (o.view == "flat" && by != By::pid && !o.json)
    return complain("--by is for the ledger and the tree: functions are not of one process",
                    exit_usage);
  const auto profile = read_profile(o.file);
  if (!profile) return complain(profile.error().message, exit_failure);
  ReportOptions r = terminal_options();
  r.pids = o.pids;
  r.by = by;
  r.limit = o.rows;
  r.threshold = o.threshold;
  if (o.json) return print(report_json(*profile, r) + "\n") ? 0 : exit_failure;
  const auto text_of = o.view == "flat" ? flat_text : o.view == "tree" ? tree_text : ledger_text;
  return print(text_of(*profile, r)) ? 0 : exit_failure;
}

}  // namespace

void add_by_option(ArgParser& parser, std::string& by) {
  std::vector<std::string> names;
  for (const By one : every_by) names.emplace_back(to_string(one));
  parser.add("--by", by, "Rows: pid, thread, comm, exe, cgroup, container or unit")
      .type("WHAT")
      .one_of(names);
}

void add_report(ArgParser& parser, CommandLine& line) {
  auto options = std::make_shared<Options>();
  ArgParser sub = parser.subcommand("report", "Show a recorded profile; needs no privilege");
  sub.add("file", options->file, "Profile written by `pkprof record`").type("FILE").show_default();
  sub.add("--view", options->view, "ledger, flat or tree")
      .type("VIEW")
      .one_of({"ledger", "flat", "tree"})
      .show_default();
  sub.add("--pid", options->pids, "Only what these processes were served")
      .separated_by(',')
      .type("PID[,PID...]");
  add_by_option(sub, options->by);
  sub.add("-n,--rows", options->rows, "At most that many rows").type("N");
  sub.add("--threshold", options->threshold, "Sum up tree branches below, in percent")
      .type("PERCENT")
      .range(0.0, 100.0)
      .show_default();
  sub.add("--json", options->json, "The ledger as one JSON object");
  sub.when_used([options, &line] { line.action = [options] { return show(*options); }; });
}

}  // namespace pkprof
