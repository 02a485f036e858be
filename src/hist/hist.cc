// SPDX-License-Identifier: Apache-2.0
// The clock starts with the program's first instruction, so its first tick is a period later: the
// same instruction in every run of a program that always does the same. Where it is run more than
// once the clocks run before, and the child lets each of them get to another point of its period
// before it becomes the program.
#include "hist/hist.h"

#include <poll.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <random>
#include <unordered_map>

#include "base/clock.h"
#include "base/signals.h"
#include "hist/ip_sampler.h"
#include "probe/facts.h"
#include "process/child.h"
#include "symbol/symbolizer.h"

namespace pkprof {
namespace {

constexpr int drain_interval_ms = 100;
constexpr uint64_t the_process = 1;  // for UserSymbols, in every run

uint64_t nanoseconds(const timeval& t) {
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_usec) * 1'000;
}

struct CpuTime {
  uint64_t user_ns = 0;
  uint64_t system_ns = 0;
};

// Of all children that have ended: the command's, in all its runs, and its own children's.
CpuTime time_of_children() {
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  return {nanoseconds(usage.ru_utime), nanoseconds(usage.ru_stime)};
}

uint64_t thread_ns() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
}

// Takes from each CPU's clock a random part of its period, by computing there. In the child.
void shuffle_clocks(uint64_t period_ns, uint64_t seed) {
  std::mt19937_64 random(seed);
  cpu_set_t all;
  if (sched_getaffinity(0, sizeof all, &all) != 0) return;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &all)) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    if (sched_setaffinity(0, sizeof one, &one) != 0) continue;
    const uint64_t end = thread_ns() + random() % period_ns;
    while (thread_ns() < end) {
    }
  }
  sched_setaffinity(0, sizeof all, &all);
}

}  // namespace

struct HistRecording::Symbols {
  UserSymbols user{{.names = true}};
};

class HistSession {
 public:
  explicit HistSession(const HistOptions& options) : options_(options) {}
  Result<HistRecording> run();

 private:
  Result<> run_once();
  void wait(Child& child);
  void drain(bool last = false);
  void follow(const ProcessEvent& event);
  void count(const IpSample& sample);
  FrameId frame_of(uint64_t ip);
  void finish(const CpuTime& used);
  [[nodiscard]] UserSymbols& symbols() { return recording_.symbols_->user; }
  [[nodiscard]] uint64_t period_ns() const { return 1'000'000'000 / options_.frequency_hz; }
  [[nodiscard]] const Mapping* mapping_of(FrameId frame) const;

  const HistOptions& options_;
  Signals signals_;
  HistRecording recording_;
  std::optional<IpSampler> sampler_;
  std::random_device random_;
  bool stopped_ = false;  // there is to be no other run
  // The run.
  uint32_t pid_ = 0;
  bool executed_ = false;  // it has become the program
  bool begun_ = false;     // and executed an instruction of it
  std::string exe_;
  std::unordered_map<uint64_t, FrameId> frames_;  // by address, while the mappings stay the same
  // All runs.
  uint32_t first_pid_ = 0;
  std::string comm_;
  struct Key {
    StringId source;
    StackId stack;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    size_t operator()(const Key& k) const { return uint64_t{k.source} << 32 | k.stack; }
  };
  std::unordered_map<Key, uint64_t, KeyHash> counts_;
  uint64_t counted_ = 0;
  uint64_t children_ = 0;
  uint64_t before_ = 0;
  uint64_t lost_ = 0;
  uint64_t throttled_ = 0;
  bool sees_kernel_ = true;
};

const Mapping* HistSession::mapping_of(FrameId frame) const {
  const Profile& p = recording_.profile;
  const MappingId id = p.frames()[frame].mapping;
  return id == no_mapping ? nullptr : &p.mappings()[id];
}

void HistSession::follow(const ProcessEvent& event) {
  if (event.pid != pid_) return;
  if (event.kind == ProcessEvent::Kind::exec) {
    symbols().exec(the_process);
    executed_ = true;
    begun_ = false;
    exe_.clear();
    comm_ = event.comm;
    frames_.clear();
  } else if (event.kind == ProcessEvent::Kind::map && executed_) {
    symbols().add_map(the_process, event.map);
    // The kernel maps the program before its interpreter.
    if (exe_.empty()) exe_ = event.map.file;
    recording_.profile.mapping(
        {.start = event.map.start, .limit = event.map.end, .file = event.map.file});
    frames_.clear();
  }
}

FrameId HistSession::frame_of(uint64_t ip) {
  const auto [it, fresh] = frames_.try_emplace(ip);
  if (!fresh) return it->second;
  const UserFrame found = symbols().find(the_process, ip);
  const UserMap& map = found.map;
  Profile& profile = recording_.profile;
  Frame frame{.kind = FrameKind::user, .address = ip};
  frame.function = profile.string(found.function);
  if (map.end > map.start) {
    const uint64_t vaddr = found.vaddr ? *found.vaddr - (ip - map.start) : no_vaddr;
    frame.mapping =
        profile.mapping({map.start, map.end, map.offset, map.file, found.build_id, vaddr});
  }
  return it->second = profile.frame(frame);
}

void HistSession::count(const IpSample& sample) {
  if (sample.pid != pid_) {
    ++children_;
    return;
  }
  if (!executed_) return;  // our own code
  Profile& profile = recording_.profile;
  StackId stack = 0;
  if (sample.has_ip) {
    const FrameId frame = frame_of(sample.ip);
    // While the kernel is at exec the instruction pointer is still the old program's.
    if (sample.in_kernel && !begun_ && !mapping_of(frame)) {
      ++before_;
      return;
    }
    stack = profile.stack({&frame, 1});
    begun_ = true;
  }
  const char* source = !sample.in_kernel ? "user" : sample.in_system_call ? "syscall" : "kernel";
  ++counts_[{profile.string(source), stack}];
  ++counted_;
}

void HistSession::drain(bool last) {
  for (const IpEvent& event : sampler_->take(last)) {
    if (event.is_sample)
      count(event.sample);
    else
      follow(event.process);
  }
}

// Until it ends or a signal comes. One from the terminal goes to the command as well, which then
// has a moment to end.
void HistSession::wait(Child& child) {
  std::vector<pollfd> fds{{signals_.fd(), POLLIN, 0}};
  for (const int fd : sampler_->poll_fds()) fds.push_back({fd, POLLIN, 0});
  while (!child.ended()) {
    poll(fds.data(), fds.size(), drain_interval_ms);
    for (pollfd& fd : fds)
      if (fd.revents & POLLHUP) fd.fd = -1;  // nothing more to come, and no reason to wake up
    drain();
    if (!(fds[0].revents & POLLIN) || !signals_.take()) continue;
    stopped_ = true;
    poll(fds.data(), 1, drain_interval_ms);
    return;
  }
}

Result<> HistSession::run_once() {
  const uint64_t seed = random_();
  const bool once = options_.repeat == 1;
  std::function<void()> before_exec;
  if (!once) before_exec = [this, seed] { shuffle_clocks(period_ns(), seed); };
  auto child = Child::spawn(options_.command, options_.user, before_exec);
  if (!child) return std::unexpected(child.error());
  auto sampler =
      IpSampler::open(child->pid(), {.frequency_hz = options_.frequency_hz, .from_exec = once});
  if (!sampler) return std::unexpected(sampler.error());
  sampler_.emplace(std::move(*sampler));
  pid_ = static_cast<uint32_t>(child->pid());
  if (first_pid_ == 0) first_pid_ = pid_;
  executed_ = false;
  if (auto r = child->go(); !r) {
    recording_.command_status = child->status();
    recording_.command_error = options_.command[0] + ": " + r.error().message;
    stopped_ = true;
    return {};
  }
  symbols().set_pid(the_process, pid_);
  wait(*child);
  drain(true);
  ++recording_.runs;
  recording_.command_status = child->ended() ? child->status() : 0;
  lost_ += sampler_->lost();
  throttled_ += sampler_->throttled();
  sees_kernel_ = sampler_->sees_kernel();
  sampler_.reset();
  return {};
}

void HistSession::finish(const CpuTime& used) {
  Profile& profile = recording_.profile;
  const LabelId label = profile.label(
      {.kind = LabelKind::process, .pid = first_pid_, .start_ns = 1, .comm = comm_, .exe = exe_});
  // A clock that cannot keep up misses ticks of all code alike: each counts for more then.
  const uint64_t used_ns = used.user_ns + (sees_kernel_ ? used.system_ns : 0);
  const uint64_t expected = used_ns / period_ns();
  const uint64_t ticks = counted_ + before_ + children_ + lost_;
  const bool slow =
      options_.repeat == 1 && ticks && expected >= 100 && ticks < expected - expected / 10;
  const uint64_t sample_ns = slow ? used_ns / ticks : period_ns();
  for (const auto& [key, samples] : counts_)
    profile.add({.ran_on = label, .served = label, .source = key.source, .stack = key.stack},
                {.count = samples, .ns = samples * sample_ns});
  Meta& meta = profile.meta;
  meta.samples_taken = counted_;
  meta.samples_lost = lost_;
  meta.counters = {
      {"samples lost", lost_},
      {"samples of its children, not counted", children_},
      {"samples of exec, before the first instruction, not counted", before_},
      {"times that the kernel paused the clock, which was too fast for it", throttled_},
  };
  if (!sees_kernel_)
    meta.degraded.push_back("only user code could be sampled (kernel.perf_event_paranoid): " +
                            std::to_string(used.system_ns / 1'000'000) +
                            " ms in the kernel are missing");
  if (slow) {
    meta.frequency_hz = 1'000'000'000 / sample_ns;
    meta.degraded.push_back("the clock ticked " + std::to_string(meta.frequency_hz) +
                            " times a second, not " + std::to_string(options_.frequency_hz) +
                            ": it cannot do more here");
  }
  for (const std::string& warning : symbols().warnings()) meta.degraded.push_back(warning);
}

Result<HistRecording> HistSession::run() {
  if (const uint64_t limit = IpSampler::max_frequency_hz(); options_.frequency_hz > limit)
    return fail("-F " + std::to_string(options_.frequency_hz) + ": the kernel's limit is " +
                std::to_string(limit) + " (kernel.perf_event_max_sample_rate, and 100000)");
  Meta& meta = recording_.profile.meta;
  for (const std::string& word : options_.command)
    meta.command += (meta.command.empty() ? "" : " ") + word;
  meta.kernel = kernel_release();
  meta.host = host_name();
  meta.cpus = static_cast<uint32_t>(sysconf(_SC_NPROCESSORS_ONLN));
  meta.frequency_hz = options_.frequency_hz;
  meta.start_unix_ns = unix_ns();
  const uint64_t start = monotonic_ns();
  const CpuTime before = time_of_children();
  for (uint32_t i = 0; i < options_.repeat && !stopped_; ++i)
    if (auto r = run_once(); !r) return std::unexpected(r.error());
  const CpuTime after = time_of_children();
  meta.duration_ns = monotonic_ns() - start;
  finish({after.user_ns - before.user_ns, after.system_ns - before.system_ns});
  return std::move(recording_);
}

HistRecording::HistRecording() : symbols_(std::make_unique<Symbols>()) {}
HistRecording::~HistRecording() = default;
HistRecording::HistRecording(HistRecording&&) noexcept = default;

std::optional<FileCode> HistRecording::code_of(const std::string& file) {
  return symbols_->user.code_of(the_process, file);
}

Result<HistRecording> record_hist(const HistOptions& options) {
  return HistSession(options).run();
}

}  // namespace pkprof
