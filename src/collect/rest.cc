// SPDX-License-Identifier: Apache-2.0
#include "collect/rest.h"

#include <algorithm>

namespace pkprof {
namespace {

constexpr uint64_t most_to_be_sure = 100'000;

// Runs in vain, a second, that are dearer than what is learned from the others: a percent of a CPU.
constexpr double too_many = 100'000;
constexpr uint64_t rest_ns = 5'000'000'000;

}  // namespace

bool Rest::look(uint64_t samples, uint64_t needed) {
  if (needed != needed_) {
    if (rests_) enough_ = std::min(enough_ * 8, most_to_be_sure);
    rests_ = false;
    samples_ = samples;
    needed_ = needed;
  } else if (samples - samples_ >= enough_) {
    rests_ = true;
  }
  return rests_;
}

bool RestInVain::look(uint64_t in_vain, uint64_t now) {
  if (now < rests_until_) return true;
  const auto more = static_cast<double>(in_vain - in_vain_);
  const auto ns = static_cast<double>(now - since_);
  // What it comes back from, and the time before it was first looked at, say nothing.
  const bool seen = since_ != 0 && rests_until_ == 0;
  rests_until_ = seen && more * 1e9 > too_many * ns ? now + rest_ns : 0;
  in_vain_ = in_vain;
  since_ = now;
  return rests_until_ != 0;
}

}  // namespace pkprof
