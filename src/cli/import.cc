// SPDX-License-Identifier: Apache-2.0
// pkprof import.
#include <memory>

#include "cli/commands.h"
#include "cli/terminal.h"
#include "import/import.h"
#include "model/pprof/pprof.h"
#include "report/clean.h"

namespace pkprof {
namespace {

struct Options {
  std::string file = "-";
  std::string output = "pkprof.pb.gz";
  std::string event;
};

int import(const Options& o) {
  const auto profile = import_file(o.file, o.event);
  if (!profile) return complain(profile.error().message, exit_failure);
  if (const auto written = write_profile(*profile, o.output); !written)
    return complain(written.error().message, exit_failure);
  if (o.output == "-" || o.output == "/dev/stdout") return 0;
  const std::string output = clean(o.output);
  const std::string text = std::to_string(profile->meta.samples_taken) + " samples into " + output +
                           "; see them with: pkprof report" +
                           (o.output == Options().output ? "" : " " + output) + "\n";
  return print(text) ? 0 : exit_failure;
}

}  // namespace

void add_import(ArgParser& parser, CommandLine& line) {
  auto options = std::make_shared<Options>();
  ArgParser sub = parser.subcommand("import", "Make a profile of what others recorded");
  sub.add("file", options->file,
          "What `perf script` printed, or a pprof file; - or nothing: standard input")
      .type("FILE");
  sub.add("-o,--output", options->output, "Where to; - is standard output")
      .type("FILE")
      .show_default();
  sub.add(
         "--event", options->event,
         "Of several events in what perf printed, the one to take; a clock otherwise, or the first")
      .type("NAME");
  sub.examples({"perf script | pkprof import && pkprof report --view flat"});
  sub.when_used([options, &line] { line.action = [options] { return import(*options); }; });
}

}  // namespace pkprof
