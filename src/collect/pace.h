// SPDX-License-Identifier: Apache-2.0
// How fast the sampling clock ticks: as asked for, or slower where a sample takes so long that the
// sampler would be over its part of the budget.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace pkprof {

class Pace {
 public:
  // `share` of each CPU's time that the sampler may take (0.01: one percent).
  Pace(uint64_t hz, double share, uint64_t now);

  // Of a CPU, up to now: samples that were timed, and what they took.
  struct Timed {
    uint64_t samples = 0;
    uint64_t took_ns = 0;
    bool idle = false;  // now: what it pays nobody misses
  };
  // By CPU. Returns the frequency from now on, at which those that are busy pay no more than their
  // share: many idle ones, where samples are cheap, are no reason for a busy one to pay more.
  uint64_t look(std::span<const Timed> cpus, uint64_t now);
  // Until told otherwise it ticks as asked for, whatever a sample takes.
  void hurry(bool on, uint64_t now);
  [[nodiscard]] uint64_t hz() const { return hurries_ ? asked_hz_ : hz_; }
  [[nodiscard]] uint64_t unhurried_hz() const { return hz_; }
  // Of a CPU's time, that the sampler takes where it does not hurry.
  [[nodiscard]] double cost() const;
  // How often the clock was to tick up to now, on a CPU.
  [[nodiscard]] double ticks(uint64_t now) const;

 private:
  uint64_t asked_hz_;
  double share_;
  uint64_t hz_;
  bool hurries_ = false;
  uint64_t since_;                // at this frequency
  double ticks_ = 0;              // up to then
  std::vector<Timed> looked_at_;  // of each CPU, when there was enough to say what one takes
  double sample_ns_ = 0;          // on busy CPUs, of late; 0: not known
};

}  // namespace pkprof
