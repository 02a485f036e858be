// SPDX-License-Identifier: Apache-2.0
// A group of hooks, on and off in turns as its part of the budget asks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "collect/budget.h"
#include "collect/cost.h"
#include "collect/kernel_side.h"
#include "collect/segments.h"

namespace pkprof {

class Turns {
 public:
  // `share`: of each CPU's time, that this group may take. `now`: the hooks have just been
  // attached. `segments` is told of turns, and lives longer.
  Turns(KernelSide& kernel, Segments& segments, HookGroup group, double share, uint64_t period_ns,
        uint64_t now);

  // From here on they are others.
  void set(double share, uint64_t period_ns) { budget_.set(share, period_ns); }
  // Some of the hooks are to be on no more: what is left of a pause was for what they took.
  void begin_anew(uint64_t now);
  [[nodiscard]] bool is_due(uint64_t now) const { return now >= next(); }
  // Ends a turn or a pause that is over. Returns how many hooks could not be attached again.
  size_t look(CostMeter& cost, uint64_t now);
  // The recording has paused: the hooks are off up to go_on(), and then as they were, or, `anew`,
  // on. No time goes by meanwhile, by the recording's clock.
  void pause();
  size_t go_on(bool anew);  // returns the same as look()
  void went_on();           // samples count again
  void stop(uint64_t now);  // turns the hooks off for good

  [[nodiscard]] bool on() const { return on_; }
  [[nodiscard]] double takes() const { return budget_.takes(); }  // of a CPU's time
  [[nodiscard]] double duty() const { return budget_.duty(); }    // of the time, that they are on
  // When look() has something to do.
  [[nodiscard]] uint64_t next() const {
    return on_ || some_stayed_ ? std::min(next_, glance_) : next_;
  }
  [[nodiscard]] uint64_t watched_ns(uint64_t now) const;  // for how long they were on up to now

 private:
  // Programs whose hooks hardly run: to take them out and put them in again, which has the kernel
  // change its code on all CPUs each time, would cost more than they do.
  [[nodiscard]] std::span<const int> to_stay(const CostMeter& cost) const;

  [[nodiscard]] uint64_t turning_ns(const CostMeter& cost) const;
  void begin_segment(uint64_t now);

  KernelSide& kernel_;
  Segments& segments_;
  HookGroup group_;
  Budget budget_;
  Budget::Turn turn_;
  bool on_ = true;
  uint64_t since_;          // when they were last looked at, or turned on or off
  uint64_t watched_since_;  // while on: when they were last looked at, or all attached
  uint64_t next_;
  uint64_t glance_;           // when it is to be seen whether what is on costs too much to last
  bool some_stayed_ = false;  // of the hooks, in a pause
  uint64_t watched_ns_ = 0;   // up to then
  std::vector<uint64_t> paused_at_runs_;  // when the recording paused
  uint64_t turning_ns_ = 0;  // CPU time that turning them off and on took last; 0: not done yet
};

}  // namespace pkprof
