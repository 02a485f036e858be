// SPDX-License-Identifier: Apache-2.0
// pkprof record, pkprof run.
#include <cmath>
#include <memory>
#include <optional>

#include "cli/commands.h"
#include "cli/terminal.h"
#include "collect/session.h"
#include "model/pprof.h"
#include "report/ledger_text.h"

namespace pkprof {
namespace {

struct Options {
  RecordOptions record;
  std::string output = "pkprof.pb.gz";
  bool all = false;
  std::string by = "pid";  // run
};

void add_target_options(CLI::App& sub, Options& o) {
  sub.add_flag("-a,--all", o.all, "Every process (the default without a command)");
  sub.add_option("-p,--pid", o.record.target.pids, "Processes, with their children")
      ->delimiter(',')
      ->type_name("PID[,PID...]");
  sub.add_option("--cgroup", o.record.target.cgroup, "Processes of a cgroup, with all below it")
      ->type_name("PATH");
  sub.add_option("-F,--frequency", o.record.frequency_hz, "Samples per second and CPU")
      ->type_name("HZ")
      ->check(CLI::Range(1, 20000))
      ->capture_default_str();
  sub.add_option("-d,--duration", o.record.seconds, "Stop after that many seconds")
      ->type_name("SECONDS")
      ->check(CLI::PositiveNumber);
  sub.add_option_function<double>(
         "--budget", [&o](double percent) { o.record.budget = percent / 100; },
         "Of each CPU's time, what the hooks may take; above, they are on for a part of the time")
      ->type_name("PERCENT")
      ->check(CLI::Range(0.01, 100.0))
      ->default_str("1");
  sub.add_flag_callback(
      "--no-attribution", [&o] { o.record.hooks = false; },
      "Sample only: no hooks, asynchronous work stays unclaimed");
  sub.add_flag("--threads", o.record.threads, "Tell threads apart, too (report --by thread)");
  sub.footer(
      "COMMAND and its arguments stand behind --; without one, recording ends with -d or "
      "at an interrupt (Ctrl-C).");
}

// The target as the options together give it.
void settle_target(Options& o, const CommandLine& line) {
  Target& t = o.record.target;
  t.command = line.command;
  t.all = o.all || (t.pids.empty() && t.cgroup.empty() && t.command.empty());
}

// Nothing where it has complained; `status` is then how to end.
std::optional<Recording> record_as_asked(Options& options, const CommandLine& line, int& status) {
  settle_target(options, line);
  auto recording = record(options.record);
  if (!recording) {
    status = complain(recording.error().message, exit_failure);
    return {};
  }
  status = recording->command_status;
  if (recording->command_error.empty()) return std::move(*recording);
  complain(recording->command_error, status);
  return {};
}

}  // namespace

void add_record(CLI::App& app, CommandLine& line) {
  auto options = std::make_shared<Options>();
  CLI::App* sub = app.add_subcommand("record", "Record a profile into a file (pprof format)");
  add_target_options(*sub, *options);
  sub->add_option("-o,--output", options->output, "File to write")
      ->type_name("FILE")
      ->capture_default_str();
  sub->callback([options, &line] {
    line.action = [options, &line] {
      int status = 0;
      const auto recording = record_as_asked(*options, line, status);
      if (!recording) return status;
      if (auto r = write_profile(recording->profile, options->output); !r)
        return complain(r.error().message, exit_failure);
      return status;
    };
  });
}

void add_run(CLI::App& app, CommandLine& line) {
  auto options = std::make_shared<Options>();
  options->output.clear();
  CLI::App* sub = app.add_subcommand("run", "Record, then show the ledger");
  add_target_options(*sub, *options);
  sub->add_option("-o,--output", options->output, "Keep the profile in this file, too")
      ->type_name("FILE");
  add_by_option(*sub, options->by);
  sub->callback([options, &line] {
    line.action = [options, &line] {
      const By by = by_from_string(options->by).value_or(By::pid);
      if (by == By::thread) options->record.threads = true;
      int status = 0;
      const auto recording = record_as_asked(*options, line, status);
      if (!recording) return status;
      if (!options->output.empty())
        if (auto r = write_profile(recording->profile, options->output); !r)
          return complain(r.error().message, exit_failure);
      ReportOptions how = terminal_options();
      how.by = by;
      if (!print(ledger_text(recording->profile, how))) return exit_failure;
      return status;
    };
  });
}

}  // namespace pkprof
