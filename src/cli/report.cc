// SPDX-License-Identifier: Apache-2.0
// pkprof report.
#include <map>
#include <memory>
#include <set>
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

enum class View { ledger, flat, tree };

struct Options {
  std::string file = "pkprof.pb.gz";
  View view = View::ledger;
  std::vector<uint32_t> pids;
  std::string by = "pid";
  bool json = false;
  size_t rows = 0;
  double threshold = 0.5;
};

int show(const Options& o) {
  const By by = by_from_string(o.by).value_or(By::pid);
  if (o.view == View::flat && by != By::pid && !o.json)
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
  std::string text;
  switch (o.view) {
    case View::ledger:
      text = ledger_text(*profile, r);
      break;
    case View::flat:
      text = flat_text(*profile, r);
      break;
    case View::tree:
      text = tree_text(*profile, r);
      break;
  }
  return print(text) ? 0 : exit_failure;
}

}  // namespace

void add_by_option(CLI::App& sub, std::string& by) {
  std::set<std::string> names;
  for (const By one : every_by) names.emplace(to_string(one));
  sub.add_option("--by", by, "Rows: pid, thread, comm, exe, cgroup, container or unit")
      ->type_name("WHAT")
      ->check(CLI::IsMember(names));
}

void add_report(CLI::App& app, CommandLine& line) {
  auto options = std::make_shared<Options>();
  CLI::App* sub = app.add_subcommand("report", "Show a recorded profile; needs no privilege");
  sub->add_option("file", options->file, "Profile written by `pkprof record`")
      ->type_name("FILE")
      ->capture_default_str();
  const std::map<std::string, View> views{
      {"ledger", View::ledger}, {"flat", View::flat}, {"tree", View::tree}};
  sub->add_option("--view", options->view, "ledger, flat or tree")
      ->type_name("VIEW")
      ->transform(CLI::CheckedTransformer(views));
  sub->add_option("--pid", options->pids, "Only what these processes were served")
      ->delimiter(',')
      ->type_name("PID[,PID...]");
  add_by_option(*sub, options->by);
  sub->add_option("-n,--rows", options->rows, "At most that many rows")->type_name("N");
  sub->add_option("--threshold", options->threshold, "Sum up tree branches below, in percent")
      ->type_name("PERCENT")
      ->check(CLI::Range(0.0, 100.0))
      ->capture_default_str();
  sub->add_flag("--json", options->json, "The ledger as one JSON object");
  sub->callback([options, &line] { line.action = [options] { return show(*options); }; });
}

}  // namespace pkprof
