// SPDX-License-Identifier: Apache-2.0
#include "collect/interrupts.h"

#include <algorithm>
#include <fstream>
#include <ranges>
#include <utility>

namespace pkprof {
namespace {

constexpr uint64_t enough_ns = 10'000'000;  // of time with the hooks on, to go by

}  // namespace

const std::string& InterruptNames::of(uint16_t number) {
  const auto [it, fresh] = names_.try_emplace(number);
  if (fresh) {
    std::ifstream in("/sys/kernel/irq/" + std::to_string(number) + "/actions");
    std::getline(in, it->second);
    if (it->second.empty()) it->second = std::to_string(number);
  }
  return it->second;
}

bool call_of_kernel(std::string_view function) {
  static constexpr std::string_view of_kernel[] = {
      "nohz_csd_func",        "nohz_full_kick_func", "rcu_exp_handler", "rcu_barrier_handler",
      "rcu_cpu_stall_check",  "tick_nohz_full_kick", "hrtick_func",     "__hrtick_start",
      "retrigger_next_event", "do_nothing",
  };
  return function.empty() || std::ranges::find(of_kernel, function) != std::end(of_kernel);
}

// How much of a process's time fell into the turn is not known. It is taken for as much as can be:
// who was interrupted once and hardly sampled is not to lose what it does in a pause.
void UnseenInterrupts::learn(const Counts& counts, const Sums& sums, double on_ns, double all_ns) {
  taken_.clear();
  for (const auto& [key, count] : counts)
    if (key.kind == PK_INTERRUPT && count.ns) taken_[key.ran_on].rows.emplace_back(key, count);
  for (auto& [ran_on, taken] : taken_) {
    const Sum& sum = sums.at(ran_on);
    const auto seen = static_cast<double>(sum.seen);
    const double its = seen + static_cast<double>(sum.sampled);
    taken.in_turn = seen / on_ns;
    taken.part = seen / std::max(its * on_ns / all_ns,
                                 std::min(on_ns, std::max(its, static_cast<double>(enough_ns))));
  }
}

void UnseenInterrupts::tell_learned(const Parties::Of& parties_of) {
  for (Taken& taken : std::views::values(taken_)) {
    Counts told;
    for (const auto& [key, count] : taken.rows)
      for (const auto& [to, part] : by_party(key, parties_of))
        told.emplace_back(to,
                          pk_count{static_cast<uint64_t>(part * static_cast<double>(count.ns)), 0});
    taken.rows = std::move(told);
  }
}

void UnseenInterrupts::estimate(Counts& counts, uint64_t on_ns, uint64_t off_ns) {
  Sums sums;
  for (const auto& [key, count] : counts) {
    Sum& sum = sums[key.ran_on];
    (key.kind == PK_INTERRUPT ? sum.seen : sum.sampled) += count.ns;
  }
  const auto all_ns = static_cast<double>(on_ns + off_ns);
  // A turn that is much shorter than the last one says less.
  const bool fresh = on_ns >= enough_ns && on_ns >= learned_ns_ / 2;
  if (fresh) {
    learn(counts, sums, static_cast<double>(on_ns), all_ns);
    learned_ = true;
    learned_ns_ = on_ns;
  } else if (on_ns) {
    learned_ns_ /= 2;
  }
  owed_ns_ += off_ns;
  if (owed_ns_ == 0 || !learned_) return;
  const auto off = static_cast<double>(std::exchange(owed_ns_, 0));
  // A pause is as the turn that it stands beside; one by itself, as the last turn's, for those who
  // have the CPU in it. Idle CPUs tell late for how long they were.
  const auto wanted = [&](uint64_t ran_on, const Taken& taken) {
    const Sum& sum = sums.at(ran_on);
    if (fresh || ran_on == PK_IDLE) return taken.in_turn * off;
    return taken.part * static_cast<double>(sum.seen + sum.sampled) * off / all_ns;
  };
  // Whole nanoseconds are taken from rows one by one, so that what is given is what was taken.
  std::unordered_map<uint64_t, uint64_t> moved;
  for (auto& [key, count] : counts) {
    const auto taken = taken_.find(key.ran_on);
    if (key.kind == PK_INTERRUPT || taken == taken_.end()) continue;
    const double share = std::min(
        1.0, wanted(key.ran_on, taken->second) / static_cast<double>(sums.at(key.ran_on).sampled));
    const auto take =
        std::min<uint64_t>(count.ns, static_cast<uint64_t>(static_cast<double>(count.ns) * share));
    count.ns -= take;
    moved[key.ran_on] += take;
  }
  for (const auto& [ran_on, ns] : moved) {
    const Counts& rows = taken_.at(ran_on).rows;
    uint64_t all = 0;
    for (const auto& [key, count] : rows) all += count.ns;
    uint64_t seen = 0;
    uint64_t given = 0;
    for (const auto& [key, count] : rows) {
      seen += count.ns;
      const auto up_to =
          seen == all ? ns
                      : static_cast<uint64_t>(static_cast<double>(ns) * static_cast<double>(seen) /
                                              static_cast<double>(all));
      if (up_to > given) counts.emplace_back(key, pk_count{up_to - given, 0});
      given = std::max(given, up_to);
    }
  }
}

}  // namespace pkprof
