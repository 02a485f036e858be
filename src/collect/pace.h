// SPDX-License-Identifier: Apache-2.0
// How fast the sampling clock ticks: as asked for, or slower where a sample takes so long that the
// sampler would be over its part of the budget.
#pragma once

#include <cstdint>

namespace pkprof {

class Pace {
 public:
  // `share` of each CPU's time that the sampler may take (0.01: one percent).
  Pace(uint64_t hz, double share, uint64_t now);

  // Samples up to now that were timed, and what they took. Returns the frequency from now on.
  uint64_t look(uint64_t samples, uint64_t took_ns, uint64_t now);
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
  uint64_t since_;    // at this frequency
  double ticks_ = 0;  // up to then
  uint64_t samples_ = 0;
  uint64_t took_ns_ = 0;
  double sample_ns_ = 0;  // what one takes of late; 0: not known
};

}  // namespace pkprof
