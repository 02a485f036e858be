// SPDX-License-Identifier: Apache-2.0
#include "collect/interrupts.h"

#include <algorithm>
#include <fstream>

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

void UnseenInterrupts::estimate(Counts& counts, uint64_t on_ns, uint64_t off_ns) {
  owed_ns_ += off_ns;
  if (owed_ns_ == 0 || on_ns < enough_ns) return;
  struct Sum {
    uint64_t seen = 0;     // in interrupts
    uint64_t sampled = 0;  // in all else
  };
  std::unordered_map<uint64_t, Sum> by_ran_on;
  for (const auto& [key, count] : counts) {
    Sum& sum = by_ran_on[key.ran_on];
    (key.kind == PK_INTERRUPT ? sum.seen : sum.sampled) += count.ns;
  }
  const double unseen = static_cast<double>(owed_ns_) / static_cast<double>(on_ns);
  owed_ns_ = 0;
  // Whole nanoseconds are taken from rows one by one, so that what is given is what was taken.
  struct Part {
    uint64_t want;  // to be moved to interrupts
    uint64_t moved = 0;
    uint64_t given = 0;
    uint64_t seen = 0;  // of the rows that were given their part already
  };
  std::unordered_map<uint64_t, Part> parts;
  for (const auto& [ran_on, sum] : by_ran_on) {
    const auto wanted = static_cast<uint64_t>(static_cast<double>(sum.seen) * unseen);
    parts.emplace(ran_on, Part{.want = std::min(wanted, sum.sampled)});
  }
  for (auto& [key, count] : counts) {
    if (key.kind == PK_INTERRUPT) continue;
    Part& part = parts.at(key.ran_on);
    const double share =
        static_cast<double>(part.want) / static_cast<double>(by_ran_on.at(key.ran_on).sampled);
    const auto take =
        std::min<uint64_t>(count.ns, static_cast<uint64_t>(static_cast<double>(count.ns) * share));
    count.ns -= take;
    part.moved += take;
  }
  for (auto& [key, count] : counts) {
    if (key.kind != PK_INTERRUPT) continue;
    Part& part = parts.at(key.ran_on);
    const uint64_t all = by_ran_on.at(key.ran_on).seen;
    part.seen += count.ns;
    const auto up_to = part.seen == all ? part.moved
                                        : static_cast<uint64_t>(static_cast<double>(part.moved) *
                                                                static_cast<double>(part.seen) /
                                                                static_cast<double>(all));
    count.ns += up_to - part.given;
    part.given = up_to;
  }
}

}  // namespace pkprof
