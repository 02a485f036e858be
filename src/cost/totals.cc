// SPDX-License-Identifier: Apache-2.0
#include "cost/totals.h"

#include <algorithm>
#include <numeric>

namespace pkprof {

Totals Totals::read(const KernelSide& kernel, const BudgetKeeper& budget) {
  const pk_stats stats = kernel.stats();
  Totals totals;
  totals.samples = stats.samples;
  totals.lost = stats.lost_samples;
  const std::vector<double> clock_ns = kernel.clock_ns();
  totals.clock_ns = std::accumulate(clock_ns.begin(), clock_ns.end(), 0.0);
  for (size_t group = 0; group < hook_groups; ++group) {
    const auto runs = kernel.hooks().runs(static_cast<HookGroup>(group));
    totals.runs[group] = std::accumulate(runs.begin(), runs.end(), uint64_t{0});
  }
  totals.user_ns = budget.user_ns();
  return totals;
}

uint64_t kernel_cost_ns(const Totals& from, const Totals& to, const BudgetKeeper& budget) {
  double ns = to.clock_ns - from.clock_ns;
  for (size_t group = 0; group < hook_groups; ++group)
    ns += static_cast<double>(to.runs[group] - from.runs[group]) *
          budget.hook_ns(static_cast<HookGroup>(group));
  return static_cast<uint64_t>(std::max(ns, 0.0));
}

void add_difference(const Totals& from, const Totals& to, Meta& meta) {
  meta.samples_taken = to.samples - from.samples;
  meta.samples_lost = to.lost - from.lost;
  meta.cost_user_ns = to.user_ns - from.user_ns;
  meta.counters = to.counters;
  for (auto& [name, count] : meta.counters)
    if (const auto before = from.counters.find(name); before != from.counters.end())
      count -= std::min(count, before->second);
}

}  // namespace pkprof
