// SPDX-License-Identifier: Apache-2.0
#include "collect/so_far.h"

#include <algorithm>
#include <numeric>

namespace pkprof {

SoFar SoFar::look(const KernelSide& kernel, const BudgetKeeper& budget, uint64_t now) {
  const pk_stats stats = kernel.stats();
  SoFar so_far;
  so_far.samples = stats.samples;
  so_far.lost = stats.lost_samples;
  so_far.timed = stats.timed;
  so_far.timed_ns = stats.timed_ns;
  for (size_t group = 0; group < hook_groups; ++group) {
    const auto runs = kernel.hook_runs(static_cast<HookGroup>(group));
    so_far.runs[group] = std::accumulate(runs.begin(), runs.end(), uint64_t{0});
  }
  so_far.user_ns = budget.user_ns();
  so_far.watched_ns = budget.watched_ns(HookGroup::work, now);
  so_far.disks_watched_ns = budget.watched_ns(HookGroup::disks, now);
  so_far.ticks = budget.ticks(now);
  return so_far;
}

uint64_t kernel_cost_ns(const SoFar& from, const SoFar& to, const BudgetKeeper& budget,
                        uint64_t interrupt_ns) {
  double ns = 0;
  for (size_t group = 0; group < hook_groups; ++group)
    ns += static_cast<double>(to.runs[group] - from.runs[group]) *
          budget.hook_ns(static_cast<HookGroup>(group));
  double sample_ns = static_cast<double>(interrupt_ns);
  if (to.timed > from.timed)
    sample_ns += static_cast<double>(to.timed_ns - from.timed_ns) /
                 static_cast<double>(to.timed - from.timed);
  return static_cast<uint64_t>(ns + static_cast<double>(to.samples - from.samples) * sample_ns);
}

void tell(const SoFar& from, const SoFar& to, Meta& meta) {
  meta.samples_taken = to.samples - from.samples;
  meta.samples_lost = to.lost - from.lost;
  meta.cost_user_ns = to.user_ns - from.user_ns;
  meta.unwatched_ns =
      meta.duration_ns - std::min(meta.duration_ns, to.watched_ns - from.watched_ns);
  meta.counters = to.counters;
  for (auto& [name, count] : meta.counters)
    if (const auto before = from.counters.find(name); before != from.counters.end())
      count -= std::min(count, before->second);
}

}  // namespace pkprof
