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
  using Figures = std::map<std::string, uint64_t>;
  const auto difference = [](const Figures& before, Figures now) {
    for (auto& [name, count] : now)
      if (const auto it = before.find(name); it != before.end())
        count -= std::min(count, it->second);
    return now;
  };
  meta.counters = difference(from.counters, to.counters);
  meta.user_stacks = difference(from.user_stacks, to.user_stacks);
}

}  // namespace pkprof
