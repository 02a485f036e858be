// SPDX-License-Identifier: Apache-2.0
// pkprof stat.
#include <memory>

#include "cli/recording.h"
#include "cli/terminal.h"
#include "model/merge.h"
#include "report/clients.h"
#include "report/ledger/ledger_text.h"
#include "report/usage/resources.h"

namespace pkprof {
namespace {

struct Options {
  RecordingOptions recording;
  std::string by = "pid";
  bool json = false;
  size_t rows = 0;
};

bool show(const Options& o, const Profile& profile) {
  ReportOptions r = terminal_options();
  r.limit = o.rows;
  r.sources = !o.recording.record.target.all;
  const By by = by_from_string(o.by).value_or(By::pid);
  Profile cpu = of_resource(profile, Resource::cpu);
  r.by = charge_as_asked(cpu, by);
  return print(o.json ? report_json_with(profile, cpu, r)
                      : ledger_text(cpu, r) + resources_text(profile, r));
}

int measure(Options& o, const CommandLine& line) {
  bool shown = true;
  if (by_from_string(o.by) == By::thread) o.recording.record.threads = true;
  if (by_from_string(o.by) == By::client) o.recording.clients = true;
  o.recording.record.measure = true;
  o.recording.record.each = [&](const Profile& profile) { return shown = show(o, profile); };
  int status = 0;
  auto recording = record_as_asked(o.recording, line, status);
  if (!recording) return status;
  if (shown && recording->profile.meta.duration_ns) shown = show(o, recording->profile);
  return shown ? status : exit_failure;
}

}  // namespace

void add_stat(ArgParser& parser, CommandLine& line) {
  auto options = std::make_shared<Options>();
  ArgParser sub = parser.subcommand("stat", "Measure whom CPU time is for, by entry and exit");
  add_recording_options(sub, options->recording);
  add_resources_option(sub, options->recording);
  add_user_option(sub, options->recording.record.target.user);
  add_quiet_option(sub, options->recording);
  sub.add("--interval", options->recording.record.interval, "Show it every so often")
      .type("SECONDS")
      .range(0.1, 86400.0);
  add_by_option(sub, options->by);
  sub.add("-n,--rows", options->rows, "At most that many rows").type("N");
  sub.add("--json", options->json, "One JSON object for each interval, or for all");
  sub.examples({"pkprof stat --interval 1", "pkprof stat -- make -j8"});
  sub.when_used(
      [options, &line] { line.action = [options, &line] { return measure(*options, line); }; });
}

}  // namespace pkprof
