// SPDX-License-Identifier: Apache-2.0
#include "collect/pace.h"

#include <algorithm>
#include <cmath>

namespace pkprof {
namespace {

constexpr uint64_t slowest_hz = 49;  // below, a recording of seconds says nothing
constexpr double worth_changing = 0.1;
constexpr uint64_t enough_samples = 32;  // to say what one takes

}  // namespace

Pace::Pace(uint64_t hz, double share, uint64_t now)
    : asked_hz_(hz), share_(share), hz_(hz), since_(now) {}

uint64_t Pace::look(std::span<const Timed> cpus, uint64_t now) {
  looked_at_.resize(cpus.size());
  uint64_t samples = 0;
  uint64_t took_ns = 0;
  for (size_t i = 0; i < cpus.size(); ++i) {
    if (!cpus[i].idle) {
      samples += cpus[i].samples - looked_at_[i].samples;
      took_ns += cpus[i].took_ns - looked_at_[i].took_ns;
    } else {
      looked_at_[i] = cpus[i];
    }
  }
  if (samples < enough_samples) return hz();
  looked_at_.assign(cpus.begin(), cpus.end());
  const double late = static_cast<double>(took_ns) / static_cast<double>(samples);
  // That they are dear is met at once; that this is over must show twice.
  sample_ns_ = late > sample_ns_ ? late : (sample_ns_ + late) / 2;
  if (sample_ns_ <= 0) return hz();
  const double most = std::max(share_ * 1e9 / sample_ns_, static_cast<double>(slowest_hz));
  const auto asked = static_cast<double>(asked_hz_);
  const double wanted = std::min(most, asked);
  const auto current = static_cast<double>(hz_);
  // What a sample takes is an estimate that never rests.
  if (std::abs(wanted - current) < worth_changing * current) return hz();
  ticks_ = ticks(now);
  since_ = now;
  hz_ = static_cast<uint64_t>(wanted);
  return hz();
}

void Pace::hurry(bool on, uint64_t now) {
  ticks_ = ticks(now);
  since_ = now;
  hurries_ = on;
}

double Pace::cost() const {
  return static_cast<double>(hz_) * sample_ns_ / 1e9;
}

double Pace::ticks(uint64_t now) const {
  return ticks_ + static_cast<double>(hz()) * static_cast<double>(now - since_) / 1e9;
}

}  // namespace pkprof
