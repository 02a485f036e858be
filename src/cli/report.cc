// SPDX-License-Identifier: Apache-2.0
// pkprof report.
#include <memory>
#include <string>

#include "cli/commands.h"
#include "cli/terminal.h"
#include "model/pprof.h"
#include "report/flat_text.h"
#include "report/graph_text.h"
#include "report/ledger_text.h"
#include "report/listing_json.h"
#include "report/report_json.h"
#include "report/tree_text.h"

namespace pkprof {
namespace {

struct Options {
  std::string file = "pkprof.pb.gz";
  std::string view = "ledger";
  std::vector<uint32_t> pids;
  std::string by;  // "" is pid, and functions of all processes together
  bool json = false;
  size_t rows = 0;
  double threshold = 0.5;
};

using Report = std::string (*)(const Profile&, const ReportOptions&);

Report report_of(const std::string& view, bool json) {
  if (view == "flat") return json ? flat_json : flat_text;
  if (view == "graph") return json ? graph_json : graph_text;
  if (json) return report_json;
  return view == "tree" ? tree_text : ledger_text;
}

int show(const Options& o) {
  const auto profile = read_profile(o.file);
  if (!profile) return complain(profile.error().message, exit_failure);
  ReportOptions r = terminal_options();
  r.pids = o.pids;
  r.by = by_from_string(o.by).value_or(By::pid);
  r.apart = !o.by.empty();
  r.limit = o.rows;
  r.threshold = o.threshold;
  return print(report_of(o.view, o.json)(*profile, r)) ? 0 : exit_failure;
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
  sub.add("--view", options->view, "ledger, flat, graph or tree")
      .type("VIEW")
      .one_of({"ledger", "flat", "graph", "tree"})
      .show_default();
  sub.add("--pid", options->pids, "Only what these processes were served")
      .separated_by(',')
      .type("PID[,PID...]");
  add_by_option(sub, options->by);
  sub.add("-n,--rows", options->rows, "At most that many rows").type("N");
  sub.add("--threshold", options->threshold,
          "Sum up what is below in the tree and the graph, in percent")
      .type("PERCENT")
      .range(0.0, 100.0)
      .show_default();
  sub.add("--json", options->json,
          "One JSON object: the ledger, or with --view flat or graph that one");
  sub.when_used([options, &line] { line.action = [options] { return show(*options); }; });
}

}  // namespace pkprof
