// SPDX-License-Identifier: Apache-2.0
// What a recording has come to so far: figures that only grow. A profile of an interval has what
// came since the one before.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>

#include "cost/budget_keeper.h"
#include "kernel/kernel_side.h"
#include "model/profile.h"

namespace pkprof {

struct Totals {
  uint64_t samples = 0;
  uint64_t lost = 0;
  double clock_ns = 0;                          // that the sampling clock took, with its samples
  std::array<uint64_t, hook_groups> runs = {};  // of hooks
  uint64_t user_ns = 0;                         // CPU time of this process
  std::map<std::string, uint64_t> counters;     // of what had no room or could not be done
  std::map<std::string, uint64_t> user_stacks;  // as in Meta

  static Totals read(const KernelSide& kernel, const BudgetKeeper& budget);
};

// What pkprof took in the kernel from the one to the other. What a run of a hook takes is known
// better each time, but those of before are not told anew, as dearer or cheaper: of an hour of them
// a percent is more than all of a second's.
[[nodiscard]] uint64_t kernel_cost_ns(const Totals& from, const Totals& to,
                                      const BudgetKeeper& budget);

// Puts what there is between the two into a profile, but for the cost in the kernel.
void add_difference(const Totals& from, const Totals& to, Meta& meta);

}  // namespace pkprof
