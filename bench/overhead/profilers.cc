// SPDX-License-Identifier: Apache-2.0
#include "profilers.h"

#include <signal.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>

namespace pkprof::overhead {
namespace {

using namespace std::chrono_literals;
using testnet::Argv;

constexpr auto kAttachLimit = 20s;
// What a sample takes under a load that fills the caches: most of it, to walk a kernel stack.
constexpr const char* kWaitNs = "25000";
constexpr auto kEndLimit = 60s;  // perf reads all that it has recorded once more

void pause(std::chrono::duration<double> time) {
  usleep(static_cast<useconds_t>(time.count() * 1e6));
}

// Is this link of a BPF program to one of perf's events?
bool is_clock_link(const std::string& process, const std::filesystem::path& file) {
  std::ifstream info(process + "/fdinfo/" + file.filename().string());
  for (std::string line; std::getline(info, line);) {
    if (line == "link_type:\tperf") return true;
  }
  return false;
}

// How many of these the process holds: once it samples, it has one on each CPU.
long held_clocks(pid_t pid, Clock clock) {
  const std::string process = "/proc/" + std::to_string(pid);
  std::error_code error;
  long count = 0;
  std::filesystem::directory_iterator files(process + "/fd", error);
  for (; !error && files != std::filesystem::directory_iterator(); files.increment(error)) {
    std::error_code gone;
    count += clock == Clock::link
                 ? is_clock_link(process, files->path())
                 : std::filesystem::read_symlink(files->path(), gone) == "anon_inode:[perf_event]";
  }
  return count;
}

// What `perf sched record` needs, without what else it does.
constexpr const char* sched_events = "sched:sched_switch,sched:sched_waking";

Variant pkprof(VariantInfo info) {
  const std::string result = info.name + ".pb.gz";
  return {std::move(info), "", result, Clock::link, true};
}

}  // namespace

Argv Variant::argv(const Stage& stage, int hz) const {
  const std::string rate = std::to_string(hz);
  const std::string file = stage.dir().file(result);
  const std::string ours = stage.bin("pkprof");
  if (info.name == "bare") return {stage.bin("bare_sampler"), rate};
  if (info.name == "wait") return {stage.bin("bare_sampler"), rate, kWaitNs};
  if (info.name == "pkprof") return {ours, "record", "-a", "-F", rate, "-o", file};
  if (info.name == "pkprof-100") {
    return {ours, "record", "-a", "-F", rate, "--budget", "100", "-o", file};
  }
  if (info.name == "pkprof-clients") {
    return {ours, "record", "-a", "-F", rate, "--budget", "100", "--clients", "-o", file};
  }
  if (info.name == "pkprof-waits") {
    return {ours, "record", "-a", "-F", rate, "--budget", "100", "--resource", "wait", "-o", file};
  }
  if (info.name == "perf-sched") {
    return {find_program("perf"), "record", "-a", "-g", "-e", sched_events, "-o", file};
  }
  if (info.name == "sampler") {
    return {ours, "record", "-a", "-F", rate, "--no-attribution", "-o", file};
  }
  if (info.name == "perf") {
    return {find_program("perf"), "record", "-a", "-g", "-F", rate, "-o", file};
  }
  return {find_program("bpftrace"), "-e",
          "profile:hz:" + rate + " { @[kstack, ustack] = count(); }"};
}

std::vector<Variant> all_variants() {
  return {
      {{kPlain, ""}, "", ""},
      {{"bare", "bare_sampler HZ"}, "", ""},
      {{"wait", "bare_sampler HZ 25000"}, "", ""},
      pkprof({"pkprof", "pkprof record -a -F HZ -o FILE"}),
      pkprof({"pkprof-100", "pkprof record -a -F HZ --budget 100 -o FILE"}),
      pkprof({"pkprof-clients", "pkprof record -a -F HZ --budget 100 --clients -o FILE"}),
      pkprof({"pkprof-waits", "pkprof record -a -F HZ --budget 100 --resource wait -o FILE"}),
      {{"perf-sched", std::string("perf record -a -g -e ") + sched_events + " -o FILE"},
       "perf",
       "perf.data",
       Clock::event,
       false,
       true},
      pkprof({"sampler", "pkprof record -a -F HZ --no-attribution -o FILE"}),
      {{"perf", "perf record -a -g -F HZ -o FILE"}, "perf", "perf.data", Clock::event, false, true},
      {{"bpftrace", "bpftrace -e 'profile:hz:HZ { @[kstack, ustack] = count(); }'"},
       "bpftrace",
       "bpftrace.txt"},
  };
}

Result<Profiler> Profiler::start(const Variant& variant, const Stage& stage, int hz,
                                 double settle) {
  const std::string errors = stage.dir().file(variant.info.name + ".stderr");
  const std::string output = stage.dir().file(variant.info.name + ".stdout");
  Argv argv = {
      "/bin/sh", "-c",   R"(errors=$1 output=$2; shift 2; exec "$@" >"$output" 2>"$errors")",
      "sh",      errors, output};
  const Argv command = variant.argv(stage, hz);
  argv.insert(argv.end(), command.begin(), command.end());
  std::optional<ControlFifos> control;
  if (variant.controlled) {
    auto made = ControlFifos::make(stage.dir().file(variant.info.name));
    if (!made) return std::unexpected(made.error());
    control.emplace(std::move(*made));
    argv.insert(argv.end(), {"--control", control->setting()});
  }
  auto child = testnet::Child::spawn(argv);
  if (!child) return std::unexpected(child.error());
  Profiler profiler(std::move(*child),
                    variant.result.empty() ? "" : stage.dir().file(variant.result), errors);
  profiler.control_ = std::move(control);
  const long cpus = sysconf(_SC_NPROCESSORS_ONLN);
  const auto limit = std::chrono::steady_clock::now() + kAttachLimit;
  while (held_clocks(profiler.child_.pid(), variant.clock) < cpus) {
    if (auto well = profiler.check(); !well) return std::unexpected(well.error());
    if (std::chrono::steady_clock::now() > limit) return fail("it does not begin to sample");
    pause(20ms);
  }
  pause(std::chrono::duration<double>(settle));
  if (auto well = profiler.check(); !well) return std::unexpected(well.error());
  return profiler;
}

Profiler::~Profiler() {
  std::error_code ignored;
  if (!result_.empty()) std::filesystem::remove(result_, ignored);
}

std::string Profiler::complaint() const {
  std::ifstream in(errors_);
  std::string line;
  std::string last;
  while (std::getline(in, line)) {
    if (!line.empty()) last = line;
  }
  return last.empty() ? "" : ": " + last;
}

// Whether it did what it was told, its clocks tell.
Result<> Profiler::turn(bool on) {
  if (!events_) {
    auto events = PerfEvents::of(child_.pid());
    if (!events) return std::unexpected(events.error());
    events_.emplace(std::move(*events));
  }
  const auto before = events_->counted();
  if (!before) return std::unexpected(before.error());
  if (on && *before != counted_) return fail("its clocks ran while it was off");
  if (!on && *before == counted_) return fail("its clocks did not run while it was on");
  if (on)
    if (auto r = events_->enable(true); !r) return r;
  if (control_)
    if (auto r = control_->say(on ? "enable" : "disable"); !r) return r;
  if (on) {
    counted_ = *before;
    return {};
  }
  if (auto r = events_->enable(false); !r) return r;
  const auto after = events_->counted();
  if (!after) return std::unexpected(after.error());
  counted_ = *after;
  return {};
}

Result<> Profiler::check() {
  const auto status = child_.wait(0ms);
  if (!status) return {};  // it is still there
  return fail("it ended with status " + std::to_string(*status) + complaint());
}

Result<> Profiler::stop() {
  if (auto well = check(); !well) return well;
  events_.reset();
  kill(child_.pid(), SIGINT);
  const auto status = child_.wait(kEndLimit);
  if (!status) return fail("it did not end when told to");
  // perf ends by the signal that it was sent.
  if (*status != 0 && *status != 128 + SIGINT) {
    return fail("it ended with status " + std::to_string(*status) + complaint());
  }
  return {};
}

}  // namespace pkprof::overhead
