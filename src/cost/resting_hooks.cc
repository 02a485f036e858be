// SPDX-License-Identifier: Apache-2.0
#include "cost/resting_hooks.h"

#include <algorithm>

namespace pkprof {
namespace {

constexpr uint64_t most_to_be_sure = 100'000;
// Samples that need a hook while it rests are UNCLAIMED.
constexpr uint64_t hardly_any = 256;  // one in so many
// While it is on, samples that fall before it has run look like those. So it is tried what is so.
constexpr uint64_t few = 32;
constexpr uint64_t many_samples = 10'000;

// Runs in vain, a second on a CPU, that are dearer than what is learned from the others: a percent
// of it.
constexpr double too_many = 100'000;
constexpr uint64_t rest_ns = 5'000'000'000;

// Runs a second that are hardly any, and for how long.
constexpr double hardly_any_runs = 100;
constexpr uint64_t quiet_ns = 1'000'000'000;

}  // namespace

void RestingHooks::begin(uint64_t samples, uint64_t needed) {
  samples_ = samples;
  needed_ = needed;
}

bool RestingHooks::look(uint64_t samples, uint64_t needed) {
  const uint64_t seen = samples - samples_;
  const uint64_t these = needed - needed_;
  if (rests_) {
    rests_ = these <= 1 || these * hardly_any <= seen;
    if (!rests_) enough_ = std::min(enough_ * 8, most_to_be_sure);
    if (!rests_ || seen >= many_samples) begin(samples, needed);
    return rests_;
  }
  if (seen < enough_) return false;
  rests_ = these * few <= seen;
  begin(samples, needed);
  return rests_;
}

bool VainRuns::look(std::span<const uint64_t> in_vain, uint64_t now) {
  if (now < rests_until_) return true;
  in_vain_.resize(in_vain.size());
  double more = 0;
  for (size_t cpu = 0; cpu < in_vain.size(); ++cpu)
    more = std::max(more, static_cast<double>(in_vain[cpu] - in_vain_[cpu]));
  const auto ns = static_cast<double>(now - since_);
  // What it comes back from, and the time before it was first looked at, say nothing.
  const bool seen = since_ != 0 && rests_until_ == 0;
  rests_until_ = seen && more * 1e9 > too_many * ns ? now + rest_ns : 0;
  in_vain_.assign(in_vain.begin(), in_vain.end());
  since_ = now;
  return rests_until_ != 0;
}

bool RareRuns::look(uint64_t runs, uint64_t now) {
  const auto more = static_cast<double>(runs - runs_);
  if (looked_ == 0 || more * 1e9 > hardly_any_runs * static_cast<double>(now - looked_))
    seen_ = now;
  runs_ = runs;
  looked_ = now;
  return now - seen_ >= quiet_ns;
}

}  // namespace pkprof
