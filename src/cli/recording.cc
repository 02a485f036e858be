// SPDX-License-Identifier: Apache-2.0
#include "cli/recording.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>

#include "naming/later_names.h"
#include "report/clean.h"
#include "report/format.h"

namespace pkprof {
namespace {

constexpr const char* erase_line = "\r\x1b[K";

std::string line_of(const Progress& now) {
  std::string text = (now.paused ? "paused: " : "recording: ") + duration_text(now.duration_ns) +
                     ", " + std::to_string(now.samples) + " samples";
  if (now.lost) text += ", " + std::to_string(now.lost) + " lost";
  return text + ", itself " + decimal(100 * now.cost, 1) + "% of a CPU; Ctrl-C ends it";
}

bool is_told(const RecordingOptions& o) {
  return !o.quiet && isatty(STDERR_FILENO);
}

constexpr std::array usage_of = {std::pair(Resource::lock, uint32_t{PK_USAGE_LOCK}),
                                 std::pair(Resource::disk, uint32_t{PK_USAGE_DISK}),
                                 std::pair(Resource::net, uint32_t{PK_USAGE_NET}),
                                 std::pair(Resource::memory, uint32_t{PK_USAGE_MEMORY})};

// What the options say together.
void settle(RecordingOptions& o, const CommandLine& line) {
  o.record.budget = o.budget_percent / 100;
  o.record.hooks = !o.sample_only;
  if (o.clients || o.client_ports)
    o.record.clients = PK_CLIENTS_WANTED | (o.client_ports ? uint32_t{PK_CLIENTS_PORTS} : 0U);
  for (const Resource asked : asked_resources(o)) {
    o.record.waits |= asked == Resource::wait;
    for (const auto& [resource, wanted] : usage_of)
      if (asked == resource) o.record.usage |= wanted;
  }
  Target& t = o.record.target;
  t.command = line.command;
  t.all = o.all || (t.pids.empty() && t.cgroup.empty() && t.command.empty());
}

// The one that is asked for, if one is.
Result<std::unique_ptr<Control>> control_of(const RecordingOptions& o) {
  if (o.control.empty() && o.record.begins_paused)
    return fail("--paused without --control: nothing could have it go on");
  if (o.control.empty()) return {};
  auto opened = Control::open(
      o.control, [](const std::string& sentence) { complain(sentence, exit_failure); });
  if (!opened) return std::unexpected(opened.error());
  return std::make_unique<Control>(std::move(*opened));
}

std::string mebibytes(uint64_t bytes) {
  return decimal(static_cast<double>(bytes) / (1 << 20), 1) + " MiB";
}

// As long as nobody wants it to end. What is asked for meanwhile is taken for that alone: the
// recording is there, and is kept.
void name_later(const RecordingOptions& options, Profile& profile) {
  constexpr uint64_t most_ns = 60'000'000'000;
  sigset_t ends;
  sigset_t before;
  sigemptyset(&ends);
  for (const int number : {SIGINT, SIGTERM}) sigaddset(&ends, number);
  pthread_sigmask(SIG_BLOCK, &ends, &before);
  const timespec at_once{};
  bool shown = false;
  fetch_names(profile, most_ns, [&](const std::string& file, uint64_t got, uint64_t all) {
    if (is_told(options)) {
      shown = true;
      std::fprintf(stderr, "%snames from debuginfod: %s, %s%s; Ctrl-C does without", erase_line,
                   clean(file).c_str(), mebibytes(got).c_str(),
                   all ? (" of " + mebibytes(all)).c_str() : "");
    }
    return sigtimedwait(&ends, nullptr, &at_once) < 0;
  });
  if (shown) std::fputs(erase_line, stderr);
  while (sigtimedwait(&ends, nullptr, &at_once) > 0) continue;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace

void add_target_options(ArgParser& parser, RecordingOptions& o) {
  parser.add("-a,--all", o.all, "Every process (the default without a command)");
  parser.add("-p,--pid", o.record.target.pids, "Processes, with their children")
      .separated_by(',')
      .type("PID[,PID...]");
  parser.add("--cgroup", o.record.target.cgroup, "Processes of a cgroup, with all below it")
      .type("PATH");
  parser.add("-F,--frequency", o.record.frequency_hz, "Samples per second and CPU")
      .type("HZ")
      .range(1, 20000)
      .show_default();
  parser.add("-d,--duration", o.record.seconds, "Stop after that many seconds").seconds();
  parser.add("--threads", o.record.threads, "Tell threads apart, too (report --by thread)");
  parser.add("--clients", o.clients,
             "Charge what servers do to their clients, too (report --view clients, --by client)");
  parser.add("--client-ports", o.client_ports,
             "--clients, and clients on other machines by their ports");
  parser.footer(
      "COMMAND and its arguments stand behind --; without one, recording ends with -d or "
      "at an interrupt (Ctrl-C).");
}

void add_recording_options(ArgParser& parser, RecordingOptions& o) {
  add_target_options(parser, o);
  parser
      .add("--budget", o.budget_percent,
           "Of any CPU's time, what pkprof may take in all; above it, it watches in windows")
      .type("PERCENT")
      .range(0.01, 100.0)
      .show_default();
  parser.add("--no-attribution", o.sample_only,
             "Sample only: no hooks, asynchronous work stays unclaimed");
}

void add_resources_option(ArgParser& parser, RecordingOptions& o) {
  parser
      .add("--resource", o.resources,
           "What is recorded besides CPU time: wait (what threads wait for off the CPU), lock, "
           "disk, "
           "net, memory; all")
      .separated_by(',')
      .type("NAME[,NAME...]")
      .one_of({"cpu", "wait", "lock", "disk", "net", "memory", "all"});
}

std::vector<Resource> asked_resources(const RecordingOptions& o) {
  std::vector<Resource> asked;
  for (const Resource resource : every_resource) {
    const bool named = std::ranges::any_of(o.resources, [resource](const std::string& name) {
      return name == "all" || name == to_string(resource);
    });
    if (named && resource != Resource::cpu) asked.push_back(resource);
  }
  return asked;
}

void add_user_option(ArgParser& parser, std::string& user) {
  parser.add("--user", user, "Whom the command runs as: a name or a number").type("USER");
}

void add_control_options(ArgParser& parser, RecordingOptions& o) {
  parser
      .add("--control", o.control,
           "Pause and go on as is written there: enable, disable, stop or ping, a line each")
      .type("fifo:CTL[,ACK]");
  parser.add("--paused", o.record.begins_paused,
             "Begin paused, up to the first enable that --control brings");
}

void add_quiet_option(ArgParser& parser, RecordingOptions& o) {
  parser.add("-q,--quiet", o.quiet, "Say nothing of how it goes");
}

Result<Recording> record_with(RecordingOptions& options, const CommandLine& line) {
  settle(options, line);
  return record(options.record);
}

std::optional<Recording> record_as_asked(RecordingOptions& options, const CommandLine& line,
                                         int& status) {
  if (options.sample_only &&
      (options.clients || options.client_ports || !options.resources.empty())) {
    status = complain(
        "--no-attribution is without hooks: --clients and --resource have nothing to go by",
        exit_usage);
    return {};
  }
  auto control = control_of(options);
  if (!control) {
    status = complain(control.error().message, exit_usage);
    return {};
  }
  options.record.control = control->get();
  const bool shown = is_told(options) && line.command.empty() && options.record.interval <= 0;
  if (shown)
    options.record.progress = [](const Progress& now) {
      std::fprintf(stderr, "%s%s", erase_line, line_of(now).c_str());
    };
  auto recording = record_with(options, line);
  if (shown) std::fputs(erase_line, stderr);
  if (!recording) {
    status = complain(recording.error().message, exit_failure);
    return {};
  }
  status = recording->command_status;
  if (recording->command_error.empty()) {
    name_later(options, recording->profile);
    return std::move(*recording);
  }
  complain(recording->command_error, status);
  return {};
}

void tell(const RecordingOptions& options, const std::string& text) {
  if (is_told(options)) std::fprintf(stderr, "%s\n", text.c_str());
}

}  // namespace pkprof
