// SPDX-License-Identifier: Apache-2.0
// pkgmon: kgmon's control of a recording, and the pkprof paper's two uses: a command that is
// profiled until it ends, and processes that are for some seconds. What comes out is the files of
// the paper's Figure 4.7 (export/gmon.h).
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <memory>

#include "cli/commands.h"
#include "cli/terminal.h"
#include "export/formats.h"
#include "record/held.h"
#include "record/session.h"

namespace pkprof {
namespace {

struct Options {
  bool begin = false;
  bool halt = false;
  bool dump = false;
  bool reset = false;
  uint64_t frequency_hz = 997;
  std::string directory;

  [[nodiscard]] bool control() const { return begin || halt || dump || reset; }
};

Result<std::string> write_files(const Profile& profile, const Options& o) {
  return export_format("gmon")->write(profile, {.output = o.directory, .pids = {}});
}

// In kgmon's order: what is to be written or forgotten is what was until now.
int control(const Options& o) {
  if (o.dump) {
    const auto profile = dump_held();
    if (!profile) return complain(profile.error().message, exit_failure);
    const auto text = write_files(*profile, o);
    if (!text) return complain(text.error().message, exit_failure);
    if (!print(*text)) return exit_failure;
  }
  if (o.reset) {
    if (const auto r = reset_held(); !r) return complain(r.error().message, exit_failure);
  }
  if (o.halt) {
    const auto kept = stop_held("");
    if (!kept) return complain(kept.error().message, exit_failure);
    if (!*kept) {
      return complain(
          "halted, but what was counted could not be read: it was begun by another build of "
          "pkprof, or the one that began it was killed",
          exit_failure);
    }
  } else if (o.begin) {
    const auto r = start_held({.frequency_hz = o.frequency_hz, .resume = true});
    if (!r) return complain(r.error().message, exit_failure);
  }
  return print(std::string("pkgmon: kernel profiling is ") + (is_held() ? "running" : "off") +
               ".\n")
             ? 0
             : exit_failure;
}

// To stderr, since standard output is the command's.
void tell(const std::string& text) {
  std::fputs(text.c_str(), stderr);
}

int profile(const Options& o, Target target, double seconds) {
  RecordOptions how{.target = std::move(target),
                    .frequency_hz = o.frequency_hz,
                    .seconds = seconds,
                    .stacks_of_others = true};
  how.started = [](uint32_t pid) { tell("pkgmon: process " + std::to_string(pid) + "\n"); };
  const auto recording = record(how);
  if (!recording) return complain(recording.error().message, exit_failure);
  if (!recording->command_error.empty())
    return complain(recording->command_error, recording->command_status);
  const auto text = write_files(recording->profile, o);
  if (!text) return complain(text.error().message, exit_failure);
  tell(*text);
  return recording->command_status;
}

// A word that is nothing but a number.
bool read_number(const std::string& word, uint32_t& number) {
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  return error == std::errc() && end == word.data() + word.size();
}

int run(const Options& o, std::vector<std::string> words, const std::vector<std::string>& dashed) {
  if (o.control()) {
    if (!words.empty() || !dashed.empty())
      return complain("-b, -h, -p and -r are about all of the machine: no command or process",
                      exit_usage);
    if (o.begin && o.halt) return complain("-b and -h: begin or halt?", exit_usage);
    return control(o);
  }
  if (!dashed.empty()) words.insert(words.end(), dashed.begin(), dashed.end());
  if (words.empty()) return control(o);
  if (words[0].starts_with('-') && dashed.empty())
    return complain("no such option: " + words[0] + "; see `pkgmon --help`", exit_usage);

  std::vector<uint32_t> numbers;
  for (const std::string& word : words) {
    uint32_t number = 0;
    if (!dashed.empty() || !read_number(word, number)) break;
    numbers.push_back(number);
  }
  if (numbers.size() != words.size())
    return profile(o, {.pids = {}, .cgroup = "", .command = std::move(words)}, 0);
  const uint32_t seconds = numbers.back();
  numbers.pop_back();
  if (numbers.empty() || seconds == 0)
    return complain("processes, then seconds: pkgmon PID... SECONDS", exit_usage);
  return profile(o, {.pids = std::move(numbers), .cgroup = "", .command = {}}, seconds);
}

}  // namespace

void add_pkgmon(ArgParser& app, CommandLine& line) {
  auto options = std::make_shared<Options>();
  app.long_help_alone();
  app.command_follows();
  app.add("-b,--begin", options->begin,
          "Begin a recording of the whole machine, or go on with the one that was halted");
  app.add("-h,--halt", options->halt, "Halt it, and keep what was counted");
  app.add("-p,--dump", options->dump, "Write gmon.out files of what was counted");
  app.add("-r,--reset", options->reset, "Begin counting anew, or forget what was kept");
  app.add("-F,--frequency", options->frequency_hz, "Samples per second and CPU")
      .type("HZ")
      .range(1, 20000)
      .show_default();
  app.add("-o,--output", options->directory, "Directory for the files; the current one without it")
      .type("DIR");
  app.footer(
      "COMMAND ARGS... behind the options is profiled until it ends; PID... SECONDS, these "
      "processes for so long. Without either and without -b, -h, -p, -r it says whether it runs.");
  line.action = [options, app, &line] { return run(*options, app.rest(), line.command); };
}

}  // namespace pkprof
