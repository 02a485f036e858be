// SPDX-License-Identifier: Apache-2.0
// pkprof hist.
#include "hist/hist.h"

#include <memory>

#include "cli/commands.h"
#include "cli/terminal.h"
#include "report/histogram/address_range.h"
#include "report/histogram/histogram_json.h"
#include "report/histogram/histogram_text.h"

namespace pkprof {
namespace {

struct Options {
  HistOptions recording;
  HistogramOptions histogram;
  bool json = false;
};

// A program that ends before the clock ticks is no failure.
constexpr const char* too_short =
    "No sample: the program ended before the clock ticked. Faster: -F HZ; more often: --repeat "
    "N.\n";

int show(const Options& o, HistRecording& recording) {
  const auto file = histogram_file(recording.profile, o.histogram);
  if (!file) return complain(file.error().message, exit_failure);
  const auto code = recording.code_of(*file);
  const auto histogram = histogram_of(recording.profile, o.histogram, code ? &*code : nullptr);
  if (!histogram) return complain(histogram.error().message, exit_failure);
  std::string text;
  if (o.json) {
    text = histogram_json(recording.profile, *histogram);
  } else {
    text = histogram_text(recording.profile, *histogram, terminal_options());
    if (histogram->all.samples == 0) text += too_short;
  }
  return print(text) ? recording.command_status : exit_failure;
}

int run(Options& o, const CommandLine& line) {
  if (line.command.empty()) return complain("hist runs a command: name it behind --", exit_usage);
  if (const auto range = parse_range(o.histogram.range); range && !*range)
    return complain(range->error().message, exit_usage);
  o.recording.command = line.command;
  auto recording = record_hist(o.recording);
  if (!recording) return complain(recording.error().message, exit_failure);
  if (!recording->command_error.empty())
    return complain(recording->command_error, recording->command_status);
  return show(o, *recording);
}

}  // namespace

void add_hist(ArgParser& parser, CommandLine& line) {
  auto options = std::make_shared<Options>();
  ArgParser sub = parser.subcommand("hist", "Run a program, draw where in its code the time goes");
  add_histogram_options(sub, options->histogram);
  sub.add("-n,--rows", options->histogram.rows, "Rows; 0: one for each address that has samples")
      .type("N")
      .range(0, 1'000'000)
      .show_default();
  sub.add("-F,--frequency", options->recording.frequency_hz, "Samples per second of its time")
      .type("HZ")
      .positive()
      .show_default();
  sub.add("--repeat", options->recording.repeat, "Run it that many times, one after the other")
      .type("N")
      .positive();
  add_user_option(sub, options->recording.user);
  sub.add("--json", options->json, "As one JSON object");
  sub.footer("The command and its arguments stand behind --.");
  sub.examples({"pkprof hist -- ./program", "pkprof hist -r main -n 0 -- ./program"});
  sub.when_used(
      [options, &line] { line.action = [options, &line] { return run(*options, line); }; });
}

}  // namespace pkprof
