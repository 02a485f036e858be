// SPDX-License-Identifier: Apache-2.0
// pkprof export.
#include "export/formats.h"

#include <memory>

#include "cli/commands.h"
#include "cli/terminal.h"
#include "model/pprof/pprof.h"
#include "report/clients.h"

namespace pkprof {
namespace {

struct Options {
  std::string file = "pkprof.pb.gz";
  std::string format;
  std::string of = "served";
  std::string by = "pid";
  std::string resource = "cpu";
  ExportOptions how;
};

int write(Options o) {
  o.how.ran_on = o.of == "ran-on";
  o.how.input = o.file;
  auto profile = (o.format == "html" ? read_for_page : read_resource)(o.file, o.resource);
  if (!profile) return complain(profile.error().message, exit_failure);
  charge_as_asked(*profile, by_from_string(o.by).value_or(By::pid));
  const auto text = export_format(o.format)->write(*profile, o.how);
  if (!text) return complain(text.error().message, exit_failure);
  return print(*text) ? 0 : exit_failure;
}

}  // namespace

void add_export(ArgParser& parser, CommandLine& line) {
  auto options = std::make_shared<Options>();
  ArgParser sub = parser.subcommand("export", "Write a profile in another tool's format");
  sub.add("file", options->file, "Profile written by `pkprof record`").type("FILE").show_default();
  std::vector<std::string> names;
  std::string help;
  for (const ExportFormat* const format : export_formats()) {
    names.emplace_back(format->name);
    if (!help.empty()) help += "; ";
    help += std::string(format->name) + ": " + std::string(format->about);
  }
  sub.add("--to", options->format, help).type("FORMAT").one_of(names).required();
  sub.add("-o,--output", options->how.output,
          "Where to; without it standard output. For gmon a directory, without it the current one")
      .type("PATH");
  sub.add("--of", options->of, "Whose stacks: of who was served, or of who was on the CPU")
      .one_of({"served", "ran-on"});
  add_charge_option(sub, options->by);
  add_resource_option(sub, options->resource);
  sub.add("--pid", options->how.pids, "Only these processes; in gmon and csv the rest is OTHER")
      .separated_by(',')
      .type("PID[,PID...]");
  sub.examples({"pkprof export --to folded | flamegraph.pl > flames.svg",
                "pkprof export --to speedscope -o for-speedscope.json"});
  sub.when_used([options, &line] { line.action = [options] { return write(*options); }; });
}

}  // namespace pkprof
