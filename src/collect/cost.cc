// SPDX-License-Identifier: Apache-2.0
#include "collect/cost.h"

#include <bpf/bpf.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "collect/clock.h"

namespace pkprof {
namespace {

constexpr uint64_t enough_runs = 10;  // of a window that counts
// A program that runs no more often, per second and on all CPUs, takes less than it would cost to
// take its hook out and put it in again once a second.
constexpr double hardly_any_hz = 2500;
constexpr size_t most_windows = 16;  // that are remembered

uint64_t used_ns() {
  rusage r{};
  getrusage(RUSAGE_SELF, &r);
  const auto ns = [](const timeval& t) {
    return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 +
           static_cast<uint64_t>(t.tv_usec) * 1000;
  };
  return ns(r.ru_utime) + ns(r.ru_stime);
}

template <typename T>
T median(std::vector<T>& v) {
  std::nth_element(v.begin(), v.begin() + static_cast<ptrdiff_t>(v.size() / 2), v.end());
  return v[v.size() / 2];
}

// A fixed amount of arithmetic, some 2 ms. Returns the time it took, by the clock on the wall: of a
// thread's CPU time the kernel takes off what it takes for the host's, now and then too much.
uint64_t timed_work() {
  const uint64_t start = monotonic_ns();
  uint64_t x = start | 1;
  for (int i = 0; i < 1'500'000; ++i) x = x * 6364136223846793005ULL + 1442695040888963407ULL;
  volatile uint64_t keep = x;
  (void)keep;
  return monotonic_ns() - start;
}

// Of this thread's time, what a clock's interrupts take that has this period. Nothing: there is no
// such clock.
std::optional<double> share_of_clock(uint64_t period_ns, int rounds) {
  perf_event_attr attr{};
  attr.size = sizeof(attr);
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_CPU_CLOCK;
  attr.sample_period = period_ns;
  attr.disabled = 1;
  const Fd clock(
      static_cast<int>(syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC)));
  if (!clock.valid()) return {};
  // The shortest times: all else that comes in between adds to them.
  uint64_t with = UINT64_MAX;
  uint64_t without = UINT64_MAX;
  for (int i = 0; i < rounds; ++i) {
    without = std::min(without, timed_work());
    ioctl(clock.get(), PERF_EVENT_IOC_ENABLE, 0);
    with = std::min(with, timed_work());
    ioctl(clock.get(), PERF_EVENT_IOC_DISABLE, 0);
  }
  return with > without ? static_cast<double>(with - without) / static_cast<double>(with) : 0;
}

}  // namespace

CostMeter::CostMeter(ByGroup hook_programs, HookOverhead overhead)
    : hooks_(std::move(hook_programs)), overhead_(overhead), used_at_start_(used_ns()) {}

void CostMeter::watch(HookGroup group, std::vector<int> programs) {
  close();
  hooks_[static_cast<size_t>(group)] = std::move(programs);
  forget_idle(group);
}

CostMeter::Runs CostMeter::runs_of(int program) {
  bpf_prog_info info{};
  uint32_t size = sizeof(info);
  if (bpf_obj_get_info_by_fd(program, &info, &size)) return {};
  return {info.run_time_ns, info.run_cnt};
}

std::vector<CostMeter::Runs> CostMeter::runs_of(const std::vector<int>& programs) {
  std::vector<Runs> each;
  each.reserve(programs.size());
  for (const int fd : programs) each.push_back(runs_of(fd));
  return each;
}

void CostMeter::open(std::vector<HookGroup> paused) {
  if (is_open()) return;
  paused_ = std::move(paused);
  stats_ = Fd(bpf_enable_stats(BPF_STATS_RUN_TIME));
  if (!stats_.valid()) return;
  opened_ = monotonic_ns();
  for (size_t g = 0; g < hook_groups; ++g) hooks_at_open_[g] = runs_of(hooks_[g]);
}

void CostMeter::close() {
  if (!is_open()) return;
  stats_.reset();
  const double hardly_any = hardly_any_hz * static_cast<double>(monotonic_ns() - opened_) / 1e9;
  for (size_t g = 0; g < hook_groups; ++g) {
    if (std::ranges::find(paused_, static_cast<HookGroup>(g)) != paused_.end()) continue;
    const std::vector<Runs> now = runs_of(hooks_[g]);
    uint64_t count = 0;
    uint64_t ns = 0;
    std::vector<int> idle;
    for (size_t i = 0; i < now.size(); ++i) {
      const uint64_t runs = now[i].count - hooks_at_open_[g][i].count;
      count += runs;
      ns += now[i].ns - hooks_at_open_[g][i].ns;
      if (static_cast<double>(runs) <= hardly_any) idle.push_back(hooks_[g][i]);
    }
    if (count < enough_runs) continue;
    idle_[g] = std::move(idle);
    std::vector<double>& windows = each_ns_[g];
    if (windows.size() == most_windows) windows.erase(windows.begin());
    windows.push_back(static_cast<double>(ns) / static_cast<double>(count));
  }
}

double CostMeter::hook_ns(HookGroup group) const {
  const auto dispatch = static_cast<double>(overhead_.dispatch_ns);
  std::vector<double> windows = each_ns_[static_cast<size_t>(group)];
  if (windows.empty()) return dispatch;
  // In some windows the host took the CPU in the middle of a run.
  return dispatch + std::max(median(windows) - static_cast<double>(overhead_.timing_ns), 0.0);
}

uint64_t CostMeter::user_ns() const {
  return used_ns() - used_at_start_;
}

uint64_t CostMeter::measure_interrupt() {
  // The faster the clock, the better its interrupts are told from what else there is. Where each
  // takes long, as on an emulated CPU, a fast one would leave the work no time to end.
  struct Clock {
    uint64_t period_ns;
    int rounds;
  };
  constexpr Clock clocks[] = {{1'000'000, 8}, {200'000, 8}, {50'000, 10}};
  constexpr double enough = 0.2;
  uint64_t interrupt_ns = 0;
  constexpr int confirmations = 3;
  for (const auto& [period_ns, rounds] : clocks) {
    auto share = share_of_clock(period_ns, rounds);
    // On a CPU that is flooded with packets much comes in between. Of a slow clock a large share is
    // more likely that.
    for (int i = 0; share && *share >= enough && i < confirmations; ++i)
      share = std::min(share, share_of_clock(period_ns, rounds));
    if (!share) return 0;
    interrupt_ns = static_cast<uint64_t>(*share * static_cast<double>(period_ns));
    if (*share >= enough) break;
  }
  return interrupt_ns;
}

}  // namespace pkprof
