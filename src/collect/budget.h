// SPDX-License-Identifier: Apache-2.0
// How much of the time the hooks are on, so that no CPU gives them more than a budget.
//
// They are on and off in turns. Each turn tells what a CPU really paid; the next one's length and
// the pause after it follow from that. Lengths vary at random, so that no rhythm of the machine's
// falls in with ours, and length and pause by the same factor, so that the share is kept. Turning
// costs, too: where it is dear, turns and pauses become longer as a recording goes on, and hooks
// that a pause would save less of than that are on throughout, also above their share.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

namespace pkprof {

class Budget {
 public:
  // `share` of each CPU's time that the hooks may take (0.01: one percent); `period_ns` between
  // samples: a turn lasts for some of them.
  Budget(double share, uint64_t period_ns, uint64_t seed);

  struct Turn {
    uint64_t on_ns;
    uint64_t off_ns;  // pause after it, 0 for none
  };
  // From here on they are others.
  void set(double share, uint64_t period_ns);

  [[nodiscard]] Turn first() const;
  // A turn has ended, or goes on without a pause: the runs of hooks up to now on each CPU, what a
  // run costs, for how long they were on since the last call, and what it costs a CPU to turn them
  // off and on again.
  Turn next(std::span<const uint64_t> runs, double run_ns, uint64_t on_ns, uint64_t turning_ns = 0);
  // The pause begins, now that the hooks are off. What ran while they were taken out is the next
  // turn's, but not the pause's.
  void begin_pause(std::span<const uint64_t> runs) { spent_from_.assign(runs.begin(), runs.end()); }
  // These runs and those up to `to` were paid for by nobody who is asked: the recording was paused.
  void pass_over(std::span<const uint64_t> from, std::span<const uint64_t> to);
  // The hooks are others now, and what was paid says nothing of what will be: a turn that is as
  // short as can be.
  Turn anew();
  // Whether the turn that goes on, or the pause, has cost a CPU by now what is for a second: it is
  // to end early.
  [[nodiscard]] bool is_spent(std::span<const uint64_t> runs, double run_ns) const;

  // Of the time, that the hooks are meant to be on; 1: always.
  [[nodiscard]] double duty() const { return duty_; }
  // Of the time of the CPU that pays most, that they take: where there are pauses no more than
  // their share, but for a burst.
  [[nodiscard]] double takes() const { return duty_ < 1 ? std::min(rate_, share_) : rate_; }

 private:
  double share_ = 1;
  double shortest_ns_ = 0;
  std::minstd_rand random_;
  std::vector<uint64_t> runs_;        // up to the last call of next()
  std::vector<uint64_t> spent_from_;  // up to the beginning of what goes on
  double rate_ = 0;  // of a CPU's time, paid by the CPU that pays most while the hooks are on
  double duty_ = 1;
  double cycle_ns_ = 0;  // of the last turn and its pause
};

}  // namespace pkprof
