// SPDX-License-Identifier: Apache-2.0
#include "targets.h"

namespace pkprof::overhead {
namespace {

// Of fewer values even the smallest and the largest do not enclose the median with 95 % confidence.
constexpr size_t kFewestTurns = 6;

}  // namespace

std::vector<Target> targets_for(const std::string& workload) {
  std::vector<Target> targets = {{workload, "pkprof", "bare", 0.01},
                                 {workload, "pkprof", "perf", 0.01}};
  // A packet costs so little here that hooks which are on all the time cannot hide.
  if (workload == "udp") targets.push_back({workload, "pkprof-100", "bare", 0.04});
  return targets;
}

std::string verdict(const Target& target, const Gap& gap) {
  if (gap.turns < kFewestTurns) return "too few";
  const bool met = gap.median <= target.limit;
  const bool certain = met ? gap.to <= target.limit : gap.from > target.limit;
  return std::string(met ? "met" : "missed") + (certain ? "" : ", not certain");
}

}  // namespace pkprof::overhead
