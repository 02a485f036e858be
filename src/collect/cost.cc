// SPDX-License-Identifier: Apache-2.0
#include "collect/cost.h"

#include <bpf/bpf.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "collect/clock.h"

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

// A fixed amount of arithmetic, some 2 ms. Returns the time it took.
uint64_t timed_work() {
  const uint64_t start = monotonic_ns();
  uint64_t x = start | 1;
  for (int i = 0; i < 1'500'000; ++i) x = x * 6364136223846793005ULL + 1442695040888963407ULL;
  volatile uint64_t keep = x;
  (void)keep;
  return monotonic_ns() - start;
}

}  // namespace

CostMeter::CostMeter(std::vector<int> program_fds)
    : programs_(std::move(program_fds)), used_at_start_(used_ns()) {}

uint64_t CostMeter::run_time() const {
  uint64_t sum = 0;
  for (const int fd : programs_) {
    bpf_prog_info info{};
    uint32_t size = sizeof(info);
    if (!bpf_obj_get_info_by_fd(fd, &info, &size)) sum += info.run_time_ns;
  }
  return sum;
}

void CostMeter::open() {
  stats_ = Fd(bpf_enable_stats(BPF_STATS_RUN_TIME));
  if (!stats_.valid()) return;
  run_at_open_ = run_time();
  opened_at_ = monotonic_ns();
}

void CostMeter::close() {
  if (!stats_.valid()) return;
  window_ns_ += monotonic_ns() - opened_at_;
  run_ns_ += run_time() - run_at_open_;
  stats_.reset();
}

uint64_t CostMeter::programs_ns(uint64_t duration_ns) const {
  if (!window_ns_) return 0;
  return static_cast<uint64_t>(static_cast<double>(run_ns_) / static_cast<double>(window_ns_) *
                               static_cast<double>(duration_ns));
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
