// SPDX-License-Identifier: Apache-2.0
// When to watch, so that watching takes no CPU more than the budget.
//
// A CPU earns the budget's share of time as time goes by, and pays for the clock, the samples, the
// hooks and pkprof's own process. It can save a second's worth, so a short burst ends nothing. Once
// it owes, the window ends: after about a second, or earlier where that alone takes most of what
// ten seconds earn. The next window begins when every CPU has earned back what it owes, and a
// little more, drawn at random, so that windows fall in with no rhythm of the machine's.
//
// Any ten seconds take at most what ten seconds earn: a tenth of the share is kept back for what is
// saved. A recording begins with six seconds' worth, since all is new to it then and short ones
// are to be whole; that is paid back over its first ten seconds.
#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <vector>

namespace pkprof {

class Windows {
 public:
  // `budget`: share of each CPU's time (0.05: five percent); 1 or more: watch always. `now`:
  // CLOCK_MONOTONIC, ns; the first window begins.
  Windows(double budget, uint64_t seed, uint64_t now);

  // `spent_ns`: what each CPU has paid since the beginning. Returns whether to watch from now on.
  bool watch(uint64_t now, std::span<const uint64_t> spent_ns);
  // What was paid up to here, and the time since the last call, count for nothing: the recording
  // was paused. A window begins.
  void begin(uint64_t now, std::span<const uint64_t> spent_ns);

 private:
  void settle(uint64_t now, std::span<const uint64_t> spent_ns);
  [[nodiscard]] double random_between(double low, double high);
  void begin_window(uint64_t now);

  double share_;  // of its time that a CPU may pay; 0: all of it
  std::minstd_rand random_;
  uint64_t start_;
  uint64_t now_;
  std::vector<uint64_t> spent_ns_;  // up to then
  std::vector<double> credit_ns_;   // of each CPU; below 0: it owes
  bool watching_ = true;
  uint64_t began_ = 0;              // of the window
  double length_ns_ = 0;            // that it is to have at least
  std::vector<uint64_t> began_at_;  // spent_ns_ then
  double needed_ns_ = 0;            // credit that ends a pause
};

}  // namespace pkprof
