// SPDX-License-Identifier: Apache-2.0
// What a recording costs while it goes on, and when it is to be watched so that this stays within
// the budget. All on, or all off: the clock and the hooks go on and off together.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "cost/cost.h"
#include "cost/resting_hooks.h"
#include "cost/windows.h"
#include "kernel/kernel_side.h"

namespace pkprof {

class BudgetKeeper {
 public:
  struct Options {
    double budget = 0.05;  // of each CPU's time; 1: it is always watched
    bool calls = false;    // calls are counted: each hook is needed for each of them
  };
  // `kernel` has its hooks attached and is to live longer. What is done up to begin() is the cost
  // of starting.
  BudgetKeeper(KernelSide& kernel, const Options& options, HookOverhead overhead);
  // Counting has begun.
  void begin();

  // Does what is due. Returns whether to watch from now on.
  bool keep();
  // When keep() will have more to do, CLOCK_MONOTONIC, ns.
  [[nodiscard]] uint64_t next() const { return next_; }
  // All off, up to turn_on(). `clock`: whether the recording's clock goes on meanwhile.
  void turn_off(WhileOff clock);
  // All on again. For the first moments hooks note and nothing counts, so that work given just
  // before has its giver.
  Result<> turn_on();
  // It goes on after a pause that was asked for, which is no business of the budget's.
  void begin_windows();

  // Programs were attached.
  void programs_changed() { cost_.set_programs(kernel_.programs()); }
  void close() { cost_.close(); }  // measures no more

  [[nodiscard]] double hook_ns(HookGroup group) const { return cost_.hook_ns(group); }
  [[nodiscard]] uint64_t user_ns() const { return cost_.user_ns(); }  // of this process
  [[nodiscard]] uint64_t unhooked() const { return unhooked_; }       // could not be attached again

 private:
  std::vector<uint64_t> spent_ns();
  void keep_resting(uint64_t now);
  void turn_cost_window(uint64_t now);

  KernelSide& kernel_;
  Options options_;
  CostMeter cost_;
  std::optional<Windows> windows_;
  std::optional<RestingHooks> packets_;  // hooks that may rest
  std::optional<RestingHooks> sending_;
  VainRuns taking_;
  RareRuns arrivals_;
  struct Paid {
    double ns = 0;
    double clock_ns = 0;  // and runs of hooks, up to then
    std::array<uint64_t, hook_groups> runs = {};
  };
  std::vector<Paid> paid_;   // by CPU
  uint64_t process_ns_ = 0;  // of this process, up to then
  uint64_t next_ = 0;
  uint64_t next_keep_ = 0;
  uint64_t cost_window_end_ = 0;  // of the one that is open; or when the next one is to be opened
  uint64_t cost_interval_ns_ = 0;
  uint64_t unhooked_ = 0;
};

}  // namespace pkprof
