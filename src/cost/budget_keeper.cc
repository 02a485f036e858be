// SPDX-License-Identifier: Apache-2.0
#include "cost/budget_keeper.h"

#include <sched.h>
#include <time.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"

namespace pkprof {
namespace {

constexpr uint64_t keep_interval_ns = 200'000'000;

// Longer than a disk request or an interrupt asked of another CPU takes, mostly.
constexpr timespec lead_in{0, 50'000'000};

constexpr uint64_t cost_window_ns = 10'000'000;
// Between windows, at least. Opening one has the kernel patch itself, which takes a CPU some
// milliseconds: what a run takes is known well enough after the first ones, and only followed then.
// A single one does not do: the host may take the CPU in the middle of a run.
constexpr uint64_t first_cost_interval_ns = 250'000'000;  // twice as long each time, up to
constexpr uint64_t longest_cost_interval_ns = 10'000'000'000;

}  // namespace

BudgetKeeper::BudgetKeeper(KernelSide& kernel, const Options& options, HookOverhead overhead)
    : kernel_(kernel), options_(options), cost_(kernel.programs(), overhead) {}

void BudgetKeeper::begin() {
  const uint64_t now = monotonic_ns();
  windows_.emplace(options_.calls ? 1 : options_.budget, now, now);
  packets_.emplace();
  sending_.emplace();
  windows_->begin(now, spent_ns());
  keep();
}

// Up to now, by CPU, at the prices of now: what was paid before at others stays as it was, once
// prices are sure.
std::vector<uint64_t> BudgetKeeper::spent_ns() {
  const std::vector<double> clock = kernel_.clock_ns();
  paid_.resize(clock.size());
  for (size_t cpu = 0; cpu < clock.size(); ++cpu) {
    Paid& paid = paid_[cpu];
    paid.ns += std::max(clock[cpu] - std::exchange(paid.clock_ns, clock[cpu]), 0.0);
  }
  std::vector<double> unsure_ns(paid_.size());
  for (size_t group = 0; group < hook_groups; ++group) {
    const double run_ns = cost_.hook_ns(static_cast<HookGroup>(group));
    const std::vector<uint64_t> runs = kernel_.hooks().runs(static_cast<HookGroup>(group));
    for (size_t cpu = 0; cpu < std::min(runs.size(), paid_.size()); ++cpu) {
      uint64_t& before = paid_[cpu].runs[group];
      const double ns = run_ns * static_cast<double>(runs[cpu] - before);
      if (!cost_.is_sure()) {
        unsure_ns[cpu] += ns;
        continue;
      }
      paid_[cpu].ns += ns;
      before = runs[cpu];
    }
  }
  // This process runs on one CPU at a time: where it is now.
  const uint64_t process_ns = cost_.user_ns();
  const uint64_t more = process_ns - std::exchange(process_ns_, process_ns);
  if (const int cpu = sched_getcpu(); cpu >= 0 && static_cast<size_t>(cpu) < paid_.size())
    paid_[static_cast<size_t>(cpu)].ns += static_cast<double>(more);
  std::vector<uint64_t> all;
  all.reserve(paid_.size());
  for (size_t cpu = 0; cpu < paid_.size(); ++cpu)
    all.push_back(static_cast<uint64_t>(paid_[cpu].ns + unsure_ns[cpu]));
  return all;
}

void BudgetKeeper::keep_resting(uint64_t now) {
  if (options_.calls) return;
  const pk_stats stats = kernel_.stats();
  uint32_t resting = 0;
  if (packets_->look(stats.network, stats.needed_packets)) resting |= PK_REST_PACKETS;
  if (sending_->look(stats.network, stats.needed_sending)) resting |= PK_REST_SENDING;
  if (taking_.look(kernel_.taken_in_vain(), now)) resting |= PK_REST_TAKING;
  if (arrivals_.look(stats.unix_messages, now)) resting |= PK_REST_ARRIVALS;
  resting = kernel_.hooks().may_rest(resting);
  if (resting == kernel_.hooks().resting()) return;
  cost_.close();  // turning hooks on and off is not to be timed
  unhooked_ += kernel_.hooks().rest(resting);
}

void BudgetKeeper::turn_cost_window(uint64_t now) {
  if (now < cost_window_end_) return;
  if (cost_.is_open()) {
    cost_.close();
    cost_window_end_ = now + cost_interval_ns_;
    return;
  }
  cost_interval_ns_ =
      std::clamp(2 * cost_interval_ns_, first_cost_interval_ns, longest_cost_interval_ns);
  cost_.open();
  cost_window_end_ = now + cost_window_ns;
}

bool BudgetKeeper::keep() {
  const uint64_t now = monotonic_ns();
  const bool watching = kernel_.clocks().enabled();
  bool watch = watching;
  if (now >= next_keep_) {
    next_keep_ = (now / keep_interval_ns + 1) * keep_interval_ns;
    if (watching) keep_resting(now);
    watch = windows_->watch(now, spent_ns());
  }
  if (watching && watch) turn_cost_window(now);
  next_ = watching ? std::min(next_keep_, cost_window_end_) : next_keep_;
  return watch;
}

void BudgetKeeper::turn_off(WhileOff clock) {
  cost_.close();
  kernel_.disable(clock);
  kernel_.hooks().detach();
}

Result<> BudgetKeeper::turn_on() {
  auto attached = kernel_.attach_hooks_again();
  if (!attached) return std::unexpected(attached.error());
  unhooked_ += *attached;
  nanosleep(&lead_in, nullptr);
  return kernel_.enable();
}

void BudgetKeeper::begin_windows() {
  windows_->begin(monotonic_ns(), spent_ns());
  next_keep_ = 0;
  keep();
}

}  // namespace pkprof
