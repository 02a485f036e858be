// SPDX-License-Identifier: Apache-2.0
#include "targets.h"

namespace pkprof::overhead {
namespace {

// Of fewer values even the smallest and the largest do not enclose the median with 95 % confidence.
constexpr size_t kFewestTurns = 6;

}  // namespace

std::vector<Target> targets_for(const std::string& workload) {
  // A packet costs so little in a flood that a hook on it cannot hide.
  return {{workload, "pkprof", "perf", workload == "udp" ? 0.02 : 0.01}};
}

std::string verdict(const Target& target, const Gap& gap) {
  if (gap.turns < kFewestTurns) return "too few";
  const bool met = gap.median <= target.limit;
  const bool certain = met ? gap.to <= target.limit : gap.from > target.limit;
  return std::string(met ? "met" : "missed") + (certain ? "" : ", not certain");
}

}  // namespace pkprof::overhead
