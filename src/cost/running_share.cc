// SPDX-License-Identifier: Apache-2.0
#include "cost/running_share.h"

#include <bpf/bpf.h>

#include <algorithm>

namespace pkprof {
namespace {

constexpr uint64_t window_ns = 10'000'000;
constexpr uint64_t interval_ns = 1'000'000'000;

}  // namespace

RunningShare::Runs RunningShare::runs() const {
  Runs sum;
  for (const int fd : programs_) {
    bpf_prog_info info{};
    uint32_t size = sizeof(info);
    if (bpf_obj_get_info_by_fd(fd, &info, &size)) continue;
    sum.ns += info.run_time_ns;
    sum.count += info.run_cnt;
  }
  return sum;
}

uint64_t RunningShare::turn(uint64_t now) {
  if (now < next_) return next_;
  if (window_.valid()) {
    close(now);
    next_ = now + interval_ns;
    return next_;
  }
  window_ = Fd(bpf_enable_stats(BPF_STATS_RUN_TIME));
  at_open_ = runs();
  opened_ = now;
  next_ = now + (window_.valid() ? window_ns : interval_ns);
  return next_;
}

void RunningShare::close(uint64_t now) {
  if (!window_.valid()) return;
  window_.reset();
  const Runs after = runs();
  const auto count = static_cast<double>(after.count - at_open_.count);
  const double ran = static_cast<double>(after.ns - at_open_.ns) -
                     count * static_cast<double>(overhead_.timing_ns);
  taken_ns_ += std::max(ran, 0.0) + count * static_cast<double>(overhead_.dispatch_ns);
  watched_ns_ += now - opened_;
}

double RunningShare::share() const {
  return watched_ns_ ? taken_ns_ / static_cast<double>(watched_ns_) : 0;
}

}  // namespace pkprof
