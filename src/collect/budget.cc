// SPDX-License-Identifier: Apache-2.0
#include "collect/budget.h"

#include <algorithm>

namespace pkprof {
namespace {

constexpr double always_turn_ns = 1e9;    // how often is looked at hooks that are on throughout
constexpr double cycle_ns = 1e9;          // a turn and its pause, where the turn is long enough
constexpr double longest_cycle_ns = 4e9;  // so that what is new is seen soon
constexpr double longer_each_time = 2;
constexpr double part_of_turning = 0.1;  // of what the hooks may take
constexpr double least_samples = 20;     // of a turn that this does not make too long
constexpr double fewest_samples = 4;     // of any: the first after a pause does not count

// Of any CPU.
uint64_t most_runs(std::span<const uint64_t> runs, std::span<const uint64_t> before) {
  uint64_t most = 0;
  for (size_t cpu = 0; cpu < runs.size(); ++cpu)
    most = std::max(most, runs[cpu] - (cpu < before.size() ? before[cpu] : 0));
  return most;
}

}  // namespace

Budget::Budget(double share, uint64_t period_ns, uint64_t seed)
    : random_(static_cast<std::minstd_rand::result_type>(seed | 1)) {
  set(share, period_ns);
}

void Budget::set(double share, uint64_t period_ns) {
  const auto period = static_cast<double>(period_ns);
  share_ = share;
  shortest_ns_ = std::max(std::min(least_samples * period, cycle_ns / 2), fewest_samples * period);
}

void Budget::pass_over(std::span<const uint64_t> from, std::span<const uint64_t> to) {
  for (std::vector<uint64_t>* before : {&runs_, &spent_from_}) {
    before->resize(std::max(before->size(), to.size()));
    for (size_t cpu = 0; cpu < to.size(); ++cpu) (*before)[cpu] += to[cpu] - from[cpu];
  }
}

Budget::Turn Budget::anew() {
  rate_ = 0;
  cycle_ns_ = 0;
  return {static_cast<uint64_t>(shortest_ns_), 0};
}

Budget::Turn Budget::first() const {
  return {static_cast<uint64_t>(std::max(cycle_ns / 10, shortest_ns_)), 0};
}

bool Budget::is_spent(std::span<const uint64_t> runs, double run_ns) const {
  return static_cast<double>(most_runs(runs, spent_from_)) * run_ns > share_ * always_turn_ns;
}

Budget::Turn Budget::next(std::span<const uint64_t> runs, double run_ns, uint64_t on_ns,
                          uint64_t turning_ns) {
  const uint64_t most = most_runs(runs, runs_);
  runs_.assign(runs.begin(), runs.end());
  spent_from_ = runs_;
  if (on_ns > 0) {
    // What a run costs is an estimate; all of them cannot take more than all of the time.
    const double now =
        std::min(static_cast<double>(most) * run_ns / static_cast<double>(on_ns), 1.0);
    // A burst is met at once; that it is over must show twice.
    rate_ = now > rate_ ? now : (rate_ + now) / 2;
  }
  duty_ = rate_ > share_ ? share_ / rate_ : 1;
  const bool worth_turning = (rate_ - share_) * longest_cycle_ns > static_cast<double>(turning_ns);
  if (duty_ > 0.95 || !worth_turning) {
    duty_ = 1;
    cycle_ns_ = 0;
    return {static_cast<uint64_t>(always_turn_ns), 0};
  }
  const double cheap = static_cast<double>(turning_ns) / (part_of_turning * share_);
  const double wanted =
      std::clamp(std::max(shortest_ns_ / duty_, cheap), cycle_ns, longest_cycle_ns);
  cycle_ns_ = cycle_ns_ > 0 ? std::min(wanted, cycle_ns_ * longer_each_time) : cycle_ns;
  const double on = std::max(cycle_ns_ * duty_, shortest_ns_);
  const double factor = std::uniform_real_distribution<double>(0.5, 1.5)(random_);
  // Where the turn cannot be shorter, the pause is longer than the cycle allows.
  const double off = on / duty_ - on;
  return {static_cast<uint64_t>(on * factor), static_cast<uint64_t>(off * factor)};
}

}  // namespace pkprof
