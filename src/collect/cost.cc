// SPDX-License-Identifier: Apache-2.0
#include "collect/cost.h"

#include <bpf/bpf.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

namespace pkprof {
namespace {

uint64_t used_ns() {
  rusage r{};
  getrusage(RUSAGE_SELF, &r);
  const auto ns = [](const timeval& t) {
    return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 +
           static_cast<uint64_t>(t.tv_usec) * 1000;
  };
  return ns(r.ru_utime) + ns(r.ru_stime);
}

// This thread's CPU time: others may want the CPU, too.
uint64_t thread_ns() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
}

// A fixed amount of arithmetic, some 2 ms. Returns the time it took.
uint64_t timed_work() {
  const uint64_t start = thread_ns();
  uint64_t x = start | 1;
  for (int i = 0; i < 1'500'000; ++i) x = x * 6364136223846793005ULL + 1442695040888963407ULL;
  volatile uint64_t keep = x;
  (void)keep;
  return thread_ns() - start;
}

}  // namespace

CostMeter::CostMeter(int sampler_program, std::vector<int> hook_programs, uint64_t dispatch_ns)
    : sampler_(sampler_program),
      hooks_(std::move(hook_programs)),
      dispatch_ns_(dispatch_ns),
      used_at_start_(used_ns()) {}

CostMeter::Runs CostMeter::runs_of(int program) {
  bpf_prog_info info{};
  uint32_t size = sizeof(info);
  if (bpf_obj_get_info_by_fd(program, &info, &size)) return {};
  return {info.run_time_ns, info.run_cnt};
}

CostMeter::Runs CostMeter::hook_runs() const {
  Runs sum;
  for (const int fd : hooks_) {
    const Runs r = runs_of(fd);
    sum.ns += r.ns;
    sum.count += r.count;
  }
  return sum;
}

void CostMeter::open() {
  if (is_open()) return;
  stats_ = Fd(bpf_enable_stats(BPF_STATS_RUN_TIME));
  if (!stats_.valid()) return;
  sampler_at_open_ = runs_of(sampler_);
  hooks_at_open_ = hook_runs();
}

void CostMeter::close() {
  if (!is_open()) return;
  stats_.reset();
  const auto add = [](Runs& sum, const Runs& before, const Runs& now) {
    sum.ns += now.ns - before.ns;
    sum.count += now.count - before.count;
  };
  add(sampler_seen_, sampler_at_open_, runs_of(sampler_));
  add(hooks_seen_, hooks_at_open_, hook_runs());
}

double CostMeter::hook_ns() const {
  const Runs& r = hooks_seen_;
  return static_cast<double>(dispatch_ns_) +
         (r.count ? static_cast<double>(r.ns) / static_cast<double>(r.count) : 0);
}

double CostMeter::sampler_ns() const {
  const Runs& r = sampler_seen_;
  return r.count ? static_cast<double>(r.ns) / static_cast<double>(r.count) : 0;
}

uint64_t CostMeter::user_ns() const {
  return used_ns() - used_at_start_;
}

uint64_t CostMeter::measure_interrupt() {
  constexpr uint64_t period = 50'000;
  perf_event_attr attr{};
  attr.size = sizeof(attr);
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_CPU_CLOCK;
  attr.sample_period = period;
  attr.disabled = 1;
  const Fd clock(
      static_cast<int>(syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC)));
  if (!clock.valid()) return 0;
  std::vector<uint64_t> with;
  std::vector<uint64_t> without;
  for (int i = 0; i < 9; ++i) {
    without.push_back(timed_work());
    ioctl(clock.get(), PERF_EVENT_IOC_ENABLE, 0);
    with.push_back(timed_work());
    ioctl(clock.get(), PERF_EVENT_IOC_DISABLE, 0);
  }
  const auto median = [](std::vector<uint64_t>& v) {
    std::nth_element(v.begin(), v.begin() + static_cast<ptrdiff_t>(v.size() / 2), v.end());
    return v[v.size() / 2];
  };
  const uint64_t a = median(without);
  const uint64_t b = median(with);
  return b > a ? (b - a) * period / b : 0;
}

}  // namespace pkprof
