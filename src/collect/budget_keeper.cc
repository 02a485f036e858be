// SPDX-License-Identifier: Apache-2.0
#include "collect/budget_keeper.h"

#include <algorithm>

namespace pkprof {
namespace {

constexpr uint64_t cost_window_ns = 10'000'000;
// Between windows, at least. Opening one has the kernel patch itself, which takes a CPU some
// milliseconds: what a run takes is known well enough after the first ones, and only followed then.
constexpr uint64_t first_cost_interval_ns = 1'000'000'000;  // twice as long each time, up to
constexpr uint64_t longest_cost_interval_ns = 10'000'000'000;
constexpr uint64_t pace_interval_ns = 200'000'000;

// Of network samples, that may do without hooks: the next socket that is named tells most of those
// whose packet is not known; but what is sent is not told by anything else.
constexpr double hardly_any_packets = 1.0 / 16;
constexpr double hardly_any_sending = 1.0 / 64;

// Of the samples that come in pauses, at most as many more for turns in which the clock hurries.
constexpr double most_for_hurry = 0.25;

constexpr uint64_t others_interval_ns = 1'000'000'000;

// Of the budget. It is a promise of what a load loses, and a load that passes two CPUs, as packets
// and their reader or a request and its answer do, pays on each of them: half of it is for a CPU.
constexpr double aimed_at = 0.5;
// However dear the rest is: with fewer turns than that a short recording of a flood has none.
constexpr double least_for_hooks = 0.25;
constexpr double most_for_sampler = 0.2;

double share_of_sampler(double budget) {
  return budget < 1 ? budget * most_for_sampler : 1;
}

}  // namespace

BudgetKeeper::BudgetKeeper(KernelSide& kernel, const Options& options, HookOverhead overhead)
    : kernel_(kernel),
      options_(options),
      cost_(
          CostMeter::ByGroup{
              kernel.hook_programs(HookGroup::always), kernel.hook_programs(HookGroup::work),
              kernel.hook_programs(HookGroup::disks), kernel.hook_programs(HookGroup::interrupts),
              kernel.hook_programs(HookGroup::measure), kernel.hook_programs(HookGroup::calls)},
          overhead),
      pace_(options.frequency_hz, share_of_sampler(options.budget), 0) {}

void BudgetKeeper::begin(uint64_t now) {
  pace_ = Pace(options_.frequency_hz, share_of_sampler(options_.budget), now);
  for (const HookGroup group : {HookGroup::work, HookGroup::disks, HookGroup::interrupts})
    turns_.emplace(group,
                   Turns(kernel_, segments_, group, 1, 1'000'000'000 / options_.frequency_hz, now));
  packets_.emplace(hardly_any_packets, now);
  sending_.emplace(hardly_any_sending, now);
  share_out();
}

void BudgetKeeper::look_at_rest(const pk_stats& stats, uint64_t now) {
  if (!packets_ || options_.calls) return;  // where calls are counted, each is needed
  uint32_t resting = 0;
  if (packets_->look(stats.network, stats.needed_packets, now)) resting |= PK_REST_PACKETS;
  if (sending_->look(stats.network, stats.needed_sending, now)) resting |= PK_REST_SENDING;
  resting = kernel_.may_rest(resting);
  const uint32_t before = kernel_.resting();
  if (resting == before) return;
  cost_.close();  // turning hooks on and off is not to be timed
  unhooked_ += kernel_.rest(resting);
  if (resting & ~before) turns_.at(HookGroup::work).begin_anew(now);
}

// Of a CPU's time, what this process and the hooks that are always on take of late. The process
// runs on one CPU at a time, which may be the one that pays most for all else.
void BudgetKeeper::look_at_others(uint64_t now) {
  if (now < others_since_ + others_interval_ns) return;
  const uint64_t used = cost_.user_ns();
  const std::vector<uint64_t> ran = kernel_.hook_runs(HookGroup::always);
  if (others_since_) {
    uint64_t most = 0;
    for (size_t cpu = 0; cpu < ran.size(); ++cpu)
      most = std::max(most, ran[cpu] - always_ran_[cpu]);
    const double hooks_ns = static_cast<double>(most) * cost_.hook_ns(HookGroup::always);
    others_take_ = (static_cast<double>(used - process_ns_) + hooks_ns) /
                   static_cast<double>(now - others_since_);
  }
  process_ns_ = used;
  always_ran_ = ran;
  others_since_ = now;
}

// What the sampler, this process and the hooks that are always on leave of the budget is the
// others'. Those on work have a half of it, those on disks and on interrupts a quarter each, and
// each what the others do not take.
void BudgetKeeper::share_out() {
  const uint64_t now = kernel_.now();
  const pk_stats stats = kernel_.stats();
  if (const uint64_t hz = pace_.hz(); pace_.look(kernel_.timed(), now) != hz)
    kernel_.set_frequency(pace_.hz(), pace_.unhurried_hz());
  else
    kernel_.keep_frequency();
  look_at_others(now);
  look_at_rest(stats, now);
  next_pace_ = (now / pace_interval_ns + 1) * pace_interval_ns;  // with the groups' glances
  std::map<HookGroup, double> shares = {
      {HookGroup::work, 1}, {HookGroup::disks, 1}, {HookGroup::interrupts, 1}};
  // Where calls are counted nothing is in proportion: hooks that are off would leave some
  // unclaimed.
  if (options_.budget < 1 && !options_.calls) {
    const double left = std::max(options_.budget * aimed_at - pace_.cost() - others_take_,
                                 options_.budget * least_for_hooks);
    // Where all is measured, those on interrupts are on in any case, beside the budget.
    if (options_.measure) shares.erase(HookGroup::interrupts);
    for (auto& [group, share] : shares) {
      double others = 0;
      for (const auto& [other, unused] : shares)
        if (other != group) others += turns_.at(other).takes();
      share = std::max(left * (group == HookGroup::work ? 0.5 : 0.25), left - others);
    }
  }
  for (const auto& [group, share] : shares) {
    // Interrupts are measured, not sampled: for them the clock does not hurry.
    const bool hurries = group != HookGroup::interrupts && is_scarce(group);
    const uint64_t hz = hurries ? options_.frequency_hz : pace_.unhurried_hz();
    turns_.at(group).set(share, 1'000'000'000 / hz);
  }
}

// Samples in turns tell whom those in pauses are for. Where turns are few they are what is scarce,
// and to take more of them costs next to nothing.
bool BudgetKeeper::is_scarce(HookGroup group) const {
  return turns_.at(group).duty() * static_cast<double>(options_.frequency_hz) <=
         most_for_hurry * static_cast<double>(pace_.unhurried_hz());
}

void BudgetKeeper::hurry_in_scarce_turns(uint64_t now) {
  const uint64_t hz = pace_.hz();
  const auto hurries = [&](HookGroup g) { return turns_.at(g).on() && is_scarce(g); };
  pace_.hurry(hurries(HookGroup::work) || hurries(HookGroup::disks), now);
  if (pace_.hz() != hz) kernel_.set_frequency(pace_.hz(), pace_.unhurried_hz());
}

// What the budget asks for now. Returns when it will ask again.
uint64_t BudgetKeeper::turn(uint64_t now) {
  if (cost_.is_open() && now >= cost_window_end_) cost_.close();
  if (now >= next_pace_) share_out();
  for (auto& [group, t] : turns_) {
    if (!t.is_due(kernel_.now())) continue;
    cost_.close();  // turning hooks on and off is not to be timed
    unhooked_ += t.look(cost_, kernel_.now());
  }
  hurry_in_scarce_turns(kernel_.now());
  uint64_t next = next_pace_;
  for (const auto& [group, t] : turns_) next = std::min(next, t.next());
  open_cost_window();
  return cost_.is_open() ? std::min(next, cost_window_end_) : next;
}

// A turn may be short and seldom: each group has a window when it is on next.
void BudgetKeeper::open_cost_window() {
  const uint64_t now = kernel_.now();
  const auto wants = [&](const auto& turn) {
    return turn.second.on() && now >= next_cost_[turn.first];
  };
  if (cost_.is_open() || std::ranges::none_of(turns_, wants)) return;
  std::vector<HookGroup> paused;
  for (const auto& [group, t] : turns_)
    if (!t.on()) paused.push_back(group);
  cost_.open(std::move(paused));
  cost_window_end_ = now + cost_window_ns;
  for (const auto& [group, t] : turns_) {
    if (t.on()) {
      uint64_t& interval = cost_interval_[group];
      interval = std::clamp(2 * interval, first_cost_interval_ns, longest_cost_interval_ns);
      next_cost_[group] = cost_window_end_ + interval;
    }
  }
}

void BudgetKeeper::pause() {
  paused_at_ns_ = cost_.user_ns();
  cost_.close();
  kernel_.disable();
  paused_at_runs_ = kernel_.hook_runs(HookGroup::always);
  for (auto& [group, t] : turns_) t.pause();
  kernel_.watch(HookGroup::always, false);
}

// What pausing and going on took is nothing that turns could be shorter for.
Result<> BudgetKeeper::go_on(bool anew) {
  unhooked_ += kernel_.watch(HookGroup::always, true);
  for (auto& [group, t] : turns_) unhooked_ += t.go_on(anew);
  if (auto r = kernel_.enable(); !r) return r;
  for (auto& [group, t] : turns_) t.went_on();
  const std::vector<uint64_t> ran = kernel_.hook_runs(HookGroup::always);
  for (size_t cpu = 0; cpu < always_ran_.size(); ++cpu)
    always_ran_[cpu] += ran[cpu] - paused_at_runs_[cpu];
  process_ns_ += cost_.user_ns() - paused_at_ns_;
  hurry_in_scarce_turns(kernel_.now());
  return {};
}

void BudgetKeeper::stop(uint64_t now) {
  for (auto& [group, t] : turns_) t.stop(now);
}

}  // namespace pkprof
