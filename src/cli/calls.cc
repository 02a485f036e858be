// SPDX-License-Identifier: Apache-2.0
// pkprof calls.
#include <memory>

#include "calls/call_targets.h"
#include "cli/recording.h"
#include "cli/terminal.h"
#include "model/pprof/pprof.h"
#include "report/calls/calls_json.h"
#include "report/calls/calls_text.h"

namespace pkprof {
namespace {

struct Options {
  RecordingOptions recording;
  std::vector<std::string> functions;
  std::string input;
  std::string output;
  std::string by = "pid";
  size_t rows = 40;
  bool json = false;
};

// What is named, or is hot in the profile that is. Empty: what a look will show as hot.
Result<std::vector<std::string>> functions_of(const Options& o) {
  if (o.input.empty()) return o.functions;
  const auto profile = read_resource(o.input, "cpu");
  if (!profile) return std::unexpected(profile.error());
  std::vector<std::string> functions = hot_functions(*profile);
  if (functions.empty()) return fail(o.input + ": none of its time was in the kernel");
  functions.insert(functions.end(), o.functions.begin(), o.functions.end());
  return functions;
}

int count(Options& o, const CommandLine& line) {
  auto functions = functions_of(o);
  if (!functions) return complain(functions.error().message, exit_failure);
  if (by_from_string(o.by) == By::thread) o.recording.record.threads = true;
  o.recording.record.calls = CallOptions{.functions = std::move(*functions)};
  int status = 0;
  const auto recording = record_as_asked(o.recording, line, status);
  if (!recording) return status;
  if (!o.output.empty())
    if (auto r = write_profile(recording->profile, o.output); !r)
      return complain(r.error().message, exit_failure);
  ReportOptions how = terminal_options();
  how.by = by_from_string(o.by).value_or(By::pid);
  how.limit = o.rows;
  const std::string text =
      o.json ? calls_json(recording->profile, how) : calls_text(recording->profile, how);
  return print(text) ? status : exit_failure;
}

}  // namespace

void add_calls(ArgParser& parser, CommandLine& line) {
  auto options = std::make_shared<Options>();
  ArgParser sub = parser.subcommand("calls", "Count calls of kernel functions, and for whom");
  add_target_options(sub, options->recording);
  add_user_option(sub, options->recording.record.target.user);
  add_quiet_option(sub, options->recording);
  sub.add("--functions", options->functions,
          "Functions, or patterns with * ? [] (default: what is hot in the first second)")
      .separated_by(',')
      .type("GLOB[,GLOB...]");
  sub.add("-i,--input", options->input, "Functions that are hot in this profile").type("FILE");
  sub.add("-o,--output", options->output, "Keep the profile in this file, too").type("FILE");
  add_by_option(sub, options->by);
  sub.add("-n,--rows", options->rows, "At most that many rows; 0: all").type("N").show_default();
  sub.add("--json", options->json, "One JSON object");
  sub.examples({"pkprof calls -d 5", "pkprof calls --functions 'vfs_*' -- ls -l"});
  sub.when_used(
      [options, &line] { line.action = [options, &line] { return count(*options, line); }; });
}

}  // namespace pkprof
