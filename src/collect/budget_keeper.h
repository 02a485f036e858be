// SPDX-License-Identifier: Apache-2.0
// Keeps a recording within its budget while it goes on: how fast the sampling clock ticks, which
// hooks are on, and what all of that costs.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "collect/cost.h"
#include "collect/kernel_side.h"
#include "collect/pace.h"
#include "collect/rest.h"
#include "collect/segments.h"
#include "collect/turns.h"

namespace pkprof {

class BudgetKeeper {
 public:
  struct Options {
    uint64_t frequency_hz = 997;
    double budget = 0.01;  // of each CPU's time; 1: everything is on all the time
    bool measure = false;  // as KernelSideOptions has it: hooks on interrupts are always on
    bool calls = false;    // calls are counted: nothing is in proportion, and all hooks stay on
  };
  // `kernel` has its hooks attached and is to live longer. What is done up to begin() is the cost
  // of starting.
  BudgetKeeper(KernelSide& kernel, const Options& options, HookOverhead overhead);
  // Samples count from now on.
  void begin(uint64_t now);

  // Does what is due. Returns when there will be more to do.
  uint64_t turn(uint64_t now);
  // The programs of a group are others from here on.
  void watch(HookGroup group) { cost_.watch(group, kernel_.hook_programs(group)); }
  void close() { cost_.close(); }  // measures no more
  // The recording pauses: nothing counts and no hook is on up to go_on(), and no turn() in between.
  // `anew`: turns begin with one.
  void pause();
  Result<> go_on(bool anew);
  void stop(uint64_t now);  // turns the hooks off for good

  [[nodiscard]] double hook_ns(HookGroup group) const { return cost_.hook_ns(group); }
  [[nodiscard]] uint64_t user_ns() const { return cost_.user_ns(); }  // of this process
  // For how long a group that can be turned off was on up to now.
  [[nodiscard]] uint64_t watched_ns(HookGroup group, uint64_t now) const {
    return turns_.at(group).watched_ns(now);
  }
  [[nodiscard]] const Segments& segments() const { return segments_; }
  [[nodiscard]] double ticks(uint64_t now) const { return pace_.ticks(now); }
  [[nodiscard]] uint64_t unhooked() const { return unhooked_; }  // could not be attached again

 private:
  void share_out();
  void look_at_others(uint64_t now);
  void look_at_rest(const pk_stats& stats, uint64_t now);
  [[nodiscard]] bool is_scarce(HookGroup group) const;
  void hurry_in_scarce_turns(uint64_t now);
  void open_cost_window();

  KernelSide& kernel_;
  Options options_;
  CostMeter cost_;
  Pace pace_;
  Segments segments_;
  std::map<HookGroup, Turns> turns_;
  std::optional<Rest> packets_;  // hooks that are on while samples need them
  std::optional<Rest> sending_;
  uint64_t next_pace_ = 0;  // when it is to be seen again what samples take
  // What no turn can make less: this process, and the hooks that are always on. Looked at last:
  uint64_t others_since_ = 0;
  uint64_t process_ns_ = 0;                      // its CPU time then, without pauses,
  std::vector<uint64_t> always_ran_;             // and how often those hooks had run, by CPU
  double others_take_ = 0;                       // of a CPU's time
  uint64_t cost_window_end_ = 0;                 // of the window that is open
  std::map<HookGroup, uint64_t> next_cost_;      // when a window is to be opened for them again
  std::map<HookGroup, uint64_t> cost_interval_;  // after the last one
  // When the recording paused: the process's CPU time, and runs of hooks that are always on.
  uint64_t paused_at_ns_ = 0;
  std::vector<uint64_t> paused_at_runs_;
  uint64_t unhooked_ = 0;
};

}  // namespace pkprof
