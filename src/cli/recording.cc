// SPDX-License-Identifier: Apache-2.0
#include "cli/recording.h"

namespace pkprof {
namespace {

// The target as the options together give it.
void settle_target(RecordingOptions& o, const CommandLine& line) {
  Target& t = o.record.target;
  t.command = line.command;
  t.all = o.all || (t.pids.empty() && t.cgroup.empty() && t.command.empty());
}

}  // namespace

void add_recording_options(CLI::App& sub, RecordingOptions& o) {
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

std::optional<Recording> record_as_asked(RecordingOptions& options, const CommandLine& line,
                                         int& status) {
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

}  // namespace pkprof
