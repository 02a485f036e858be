// SPDX-License-Identifier: Apache-2.0
#include "cost/cost.h"

#include <bpf/bpf.h>
#include <sys/resource.h>

#include <algorithm>

namespace pkprof {
namespace {

constexpr uint64_t enough_runs = 10;  // of a window that counts
constexpr size_t most_windows = 16;   // that are remembered

uint64_t used_ns() {
  rusage r{};
  getrusage(RUSAGE_SELF, &r);
  const auto ns = [](const timeval& t) {
    return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 +
           static_cast<uint64_t>(t.tv_usec) * 1000;
  };
  return ns(r.ru_utime) + ns(r.ru_stime);
}

// Of an even number the lower one: what is wrong with one is too long, never too short.
template <typename T>
T median(std::vector<T>& v) {
  const size_t middle = (v.size() - 1) / 2;
  std::nth_element(v.begin(), v.begin() + static_cast<ptrdiff_t>(middle), v.end());
  return v[middle];
}

}  // namespace

CostMeter::CostMeter(ByGroup hook_programs, HookOverhead overhead)
    : hooks_(std::move(hook_programs)), overhead_(overhead), used_at_start_(used_ns()) {}

void CostMeter::set_programs(ByGroup hook_programs) {
  close();
  hooks_ = std::move(hook_programs);
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

void CostMeter::open() {
  if (is_open()) return;
  stats_ = Fd(bpf_enable_stats(BPF_STATS_RUN_TIME));
  if (!stats_.valid()) return;
  for (size_t g = 0; g < hook_groups; ++g) hooks_at_open_[g] = runs_of(hooks_[g]);
}

void CostMeter::close() {
  if (!is_open()) return;
  stats_.reset();
  bool counts = false;
  for (size_t g = 0; g < hook_groups; ++g) {
    const std::vector<Runs> now = runs_of(hooks_[g]);
    uint64_t count = 0;
    uint64_t ns = 0;
    for (size_t i = 0; i < now.size(); ++i) {
      const uint64_t runs = now[i].count - hooks_at_open_[g][i].count;
      count += runs;
      ns += now[i].ns - hooks_at_open_[g][i].ns;
    }
    if (count < enough_runs) continue;
    counts = true;
    std::vector<double>& windows = each_ns_[g];
    if (windows.size() == most_windows) windows.erase(windows.begin());
    windows.push_back(static_cast<double>(ns) / static_cast<double>(count));
  }
  windows_ += counts;
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

}  // namespace pkprof
