// SPDX-License-Identifier: Apache-2.0
// pkprof top.
#include <unistd.h>

#include <ctime>
#include <filesystem>
#include <memory>

#include "cli/recording.h"
#include "cli/terminal.h"
#include "model/pprof/pprof.h"
#include "top/terminal.h"
#include "top/view.h"

namespace pkprof {
namespace {

struct Options {
  RecordingOptions recording;
  std::string by = "pid";
};

// A name that no file has yet.
std::string free_name() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  char stamp[32];
  std::strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", &local);
  std::string name = std::string("pkprof-top-") + stamp + ".pb.gz";
  for (int i = 2; std::filesystem::exists(name); ++i)
    name = std::string("pkprof-top-") + stamp + "-" + std::to_string(i) + ".pb.gz";
  return name;
}

std::string save(const Profile* profile) {
  if (!profile) return "there is nothing yet to save";
  const std::string name = free_name();
  const auto written = write_profile(*profile, name);
  return written ? "saved: pkprof report " + name : written.error().message;
}

// Until the user leaves, or the recording ends by itself.
Result<> watch(Options& o, const CommandLine& line) {
  const ReportOptions how = terminal_options();
  const By by = by_from_string(o.by).value_or(By::pid);
  if (by == By::client) o.recording.clients = true;
  top::View view({.unicode = how.unicode,
                  .by = by,
                  .threads = o.recording.record.threads,
                  .clients = o.recording.clients || o.recording.client_ports,
                  .resources = asked_resources(o.recording)});
  auto terminal = top::Terminal::open(how.style.colour);
  if (!terminal) return std::unexpected(terminal.error());
  const auto draw = [&] { terminal->draw(view.draw(terminal->width(), terminal->height())); };
  bool again = true;
  const auto press_all = [&] {
    while (const auto key = terminal->key()) {
      const top::View::Ask ask = view.press(*key);
      if (ask == top::View::Ask::save) view.say(save(view.shown()));
      if (ask == top::View::Ask::quit) return false;
      again = ask == top::View::Ask::record;
      if (again) return false;
    }
    draw();
    return true;
  };
  o.recording.record.beside = STDIN_FILENO;
  o.recording.record.ready = press_all;
  o.recording.record.each = [&](Profile profile) {
    view.show(std::move(profile));
    draw();
    return true;
  };
  while (std::exchange(again, false)) {
    draw();
    o.recording.record.threads = view.wants_threads();
    if (auto recording = record_with(o.recording, line); !recording)
      return std::unexpected(recording.error());
  }
  return {};
}

int show(Options& o, const CommandLine& line) {
  if (!line.command.empty())
    return complain("top watches what runs, and starts no command: pkprof top -p PID", exit_usage);
  if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
    return complain("top needs a terminal: pkprof stat --interval 1 prints the same as text",
                    exit_failure);
  const auto done = watch(o, line);
  return done ? 0 : complain(done.error().message, exit_failure);
}

}  // namespace

void add_top(ArgParser& parser, CommandLine& line) {
  auto options = std::make_shared<Options>();
  options->recording.record.interval = 1;
  options->recording.record.frequency_hz = 99;  // what it costs is on the screen
  ArgParser sub = parser.subcommand("top", "Watch whom CPU time is for, in a terminal");
  add_recording_options(sub, options->recording);
  sub.add("--interval", options->recording.record.interval, "Seconds between two looks")
      .type("SECONDS")
      .range(0.1, 86400.0)
      .show_default();
  add_resources_option(sub, options->recording);
  add_by_option(sub, options->by);
  sub.footer("It ends with the key q, or with -d.");
  sub.examples(
      {"pkprof top", "pkprof top --by container --interval 5", "pkprof top --resource disk,net"});
  sub.when_used(
      [options, &line] { line.action = [options, &line] { return show(*options, line); }; });
}

}  // namespace pkprof
