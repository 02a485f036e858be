// SPDX-License-Identifier: Apache-2.0
// pkprof start, stop, reset, dump, status.
#include "record/held.h"

#include <time.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/terminal.h"
#include "model/pprof/pprof.h"
#include "report/format.h"

namespace pkprof {
namespace {

std::string local_time(uint64_t unix_ns) {
  const auto seconds = static_cast<time_t>(unix_ns / 1'000'000'000);
  tm t{};
  char text[64];
  localtime_r(&seconds, &t);
  return {text, strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &t)};
}

std::string as_text(const HeldStatus& s) {
  std::string out = s.stopped ? "stopped, and not written yet: `pkprof stop` tries again\n"
                              : "recording since " + local_time(s.started_at) + ", for " +
                                    duration_text(s.duration_ns) + "\n";
  out += std::to_string(s.cpus) + " CPUs at " + std::to_string(s.frequency_hz) + " Hz" +
         (s.threads ? ", by thread" : "") + ": " + std::to_string(s.samples) +
         " samples; it takes " + decimal(100 * s.cost, 2) + " % of the CPUs' time\n";
  if (s.resumed) out += "and what was counted before the last halt\n";
  out += std::to_string(s.rows) + " rows of " + std::to_string(s.most_rows) + " in use\n";
  for (const std::string& sentence : s.degraded) out += "  " + sentence + "\n";
  for (const auto& [name, count] : s.counters)
    if (count) out += "  " + name + ": " + std::to_string(count) + "\n";
  return out;
}

std::string as_json(const HeldStatus& s) {
  const nlohmann::ordered_json out{
      {"schema", "pkprof.status/1"},    {"stopped", s.stopped},
      {"resumed", s.resumed},           {"start_unix_ns", s.started_at},
      {"duration_ns", s.duration_ns},   {"cpus", s.cpus},
      {"frequency_hz", s.frequency_hz}, {"threads", s.threads},
      {"samples", s.samples},           {"rows", s.rows},
      {"most_rows", s.most_rows},       {"cost", s.cost},
      {"degraded", s.degraded},         {"counters", s.counters}};
  return out.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace) + "\n";
}

int dump(const std::string& path) {
  const auto profile = dump_held();
  if (!profile) return complain(profile.error().message, exit_failure);
  if (auto r = write_profile(*profile, path); !r) return complain(r.error().message, exit_failure);
  return 0;
}

int stop(const std::string& path) {
  const auto kept = stop_held(path);
  if (!kept) return complain(kept.error().message, exit_failure);
  if (*kept) return 0;
  return complain(
      "stopped, but what was counted could not be read: it was started by another "
      "build of pkprof, or its start was killed",
      exit_failure);
}

int show_status(bool json) {
  const auto status = held_status();
  if (!status) return complain(status.error().message, exit_failure);
  return print(json ? as_json(*status) : as_text(*status)) ? 0 : exit_failure;
}

}  // namespace

void add_start(ArgParser& parser, CommandLine& line) {
  auto options = std::make_shared<HeldOptions>();
  ArgParser sub = parser.subcommand("start", "Record from here on, with no process in between");
  sub.add("-F,--frequency", options->frequency_hz, "Samples per second and CPU")
      .type("HZ")
      .range(1, 20000)
      .show_default();
  sub.add("--threads", options->threads, "Tell threads apart, too (report --by thread)");
  sub.examples({"pkprof start && sleep 60 && pkprof dump && pkprof stop"});
  sub.when_used([options, &line] {
    line.action = [options] {
      const auto r = start_held(*options);
      return r ? 0 : complain(r.error().message, exit_failure);
    };
  });
}

void add_stop(ArgParser& parser, CommandLine& line) {
  auto output = std::make_shared<std::string>();
  ArgParser sub = parser.subcommand("stop", "End what `start` began; `dump` still has it");
  sub.add("-o,--output", *output, "Write the profile to this file, and keep nothing").type("FILE");
  sub.when_used([output, &line] { line.action = [output] { return stop(*output); }; });
}

void add_reset(ArgParser& parser, CommandLine& line) {
  ArgParser sub = parser.subcommand("reset", "Begin counting anew");
  sub.when_used([&line] {
    line.action = [] {
      const auto r = reset_held();
      return r ? 0 : complain(r.error().message, exit_failure);
    };
  });
}

void add_dump(ArgParser& parser, CommandLine& line) {
  auto output = std::make_shared<std::string>("pkprof.pb.gz");
  ArgParser sub = parser.subcommand("dump", "Write what was counted since `start` or `reset`");
  sub.add("-o,--output", *output, "File to write").type("FILE").show_default();
  sub.examples({"pkprof dump -o hour.pb.gz && pkprof reset"});
  sub.when_used([output, &line] { line.action = [output] { return dump(*output); }; });
}

void add_status(ArgParser& parser, CommandLine& line) {
  auto json = std::make_shared<bool>(false);
  ArgParser sub =
      parser.subcommand("status", "What `start` began: how long, how much, at what cost");
  sub.add("--json", *json, "As one JSON object");
  sub.when_used([json, &line] { line.action = [json] { return show_status(*json); }; });
}

}  // namespace pkprof
