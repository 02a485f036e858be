// SPDX-License-Identifier: Apache-2.0
#include "attribution/interrupts.h"

#include <algorithm>
#include <fstream>

namespace pkprof {

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

}  // namespace pkprof
