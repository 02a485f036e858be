// SPDX-License-Identifier: Apache-2.0
// pkprof record, pkprof run.
#include <memory>

#include "cli/recording.h"
#include "cli/terminal.h"
#include "model/merge.h"
#include "model/pprof/pprof.h"
#include "report/clean.h"
#include "report/clients.h"
#include "report/format.h"
#include "report/ledger/ledger_text.h"
#include "report/usage/resources.h"

namespace pkprof {
namespace {

struct Options {
  RecordingOptions recording;
  std::string output = "pkprof.pb.gz";
  std::string by = "pid";  // run
};

}  // namespace

void add_record(ArgParser& parser, CommandLine& line) {
  auto options = std::make_shared<Options>();
  ArgParser sub = parser.subcommand("record", "Record a profile into a file (pprof format)");
  add_recording_options(sub, options->recording);
  add_resources_option(sub, options->recording);
  add_user_option(sub, options->recording.record.target.user);
  sub.add("--inlines", options->recording.record.inlines,
          "Functions that the compiler inlined are frames, too: needs debug information");
  add_control_options(sub, options->recording);
  add_quiet_option(sub, options->recording);
  sub.add("-o,--output", options->output, "File to write").type("FILE").show_default();
  sub.examples({"pkprof record -d 10", "pkprof record -o make.pb.gz -- make -j8"});
  sub.when_used([options, &line] {
    line.action = [options, &line] {
      int status = 0;
      const auto recording = record_as_asked(options->recording, line, status);
      if (!recording) return status;
      if (auto r = write_profile(recording->profile, options->output); !r)
        return complain(r.error().message, exit_failure);
      if (options->output == "-" || options->output == "/dev/stdout") return status;
      const Meta& meta = recording->profile.meta;
      tell(options->recording,
           std::to_string(meta.samples_taken) + " samples of " + duration_text(meta.duration_ns) +
               "; see them with: pkprof report" +
               (options->output == Options().output ? "" : " " + clean(options->output)));
      return status;
    };
  });
}

void add_run(ArgParser& parser, CommandLine& line) {
  auto options = std::make_shared<Options>();
  options->output.clear();
  ArgParser sub = parser.subcommand("run", "Record, then show the ledger");
  add_recording_options(sub, options->recording);
  add_resources_option(sub, options->recording);
  add_user_option(sub, options->recording.record.target.user);
  sub.add("--inlines", options->recording.record.inlines,
          "Functions that the compiler inlined are frames, too: needs debug information");
  add_control_options(sub, options->recording);
  add_quiet_option(sub, options->recording);
  sub.add("-o,--output", options->output, "Keep the profile in this file, too").type("FILE");
  add_by_option(sub, options->by);
  sub.examples({"pkprof run -d 10", "pkprof run --by comm -- make -j8"});
  sub.when_used([options, &line] {
    line.action = [options, &line] {
      const By by = by_from_string(options->by).value_or(By::pid);
      if (by == By::thread) options->recording.record.threads = true;
      int status = 0;
      if (by == By::client) options->recording.clients = true;
      auto recording = record_as_asked(options->recording, line, status);
      if (!recording) return status;
      if (!options->output.empty())
        if (auto r = write_profile(recording->profile, options->output); !r)
          return complain(r.error().message, exit_failure);
      ReportOptions how = terminal_options();
      how.by = by;
      const std::string others = resources_text(recording->profile, how);
      Profile cpu = of_resource(std::move(recording->profile), Resource::cpu);
      how.by = charge_as_asked(cpu, by);
      if (!print(ledger_text(cpu, how) + others)) return exit_failure;
      return status;
    };
  });
}

}  // namespace pkprof
