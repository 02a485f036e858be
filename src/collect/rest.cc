// SPDX-License-Identifier: Apache-2.0
#include "collect/rest.h"

#include <algorithm>

namespace pkprof {
namespace {

constexpr uint64_t most_to_be_sure = 100'000;

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

}  // namespace pkprof
