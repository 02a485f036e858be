// SPDX-License-Identifier: Apache-2.0
#include "kernel/recorded_time.h"

#include <algorithm>

namespace pkprof {

void RecordedTime::pause(uint64_t now) {
  if (paused()) return;
  const uint64_t before =
      pauses_.empty() ? 0 : pauses_.back().before + (pauses_.back().until - pauses_.back().from);
  pauses_.push_back({.from = now, .until = 0, .before = before});
}

void RecordedTime::go_on(uint64_t now) {
  if (paused()) pauses_.back().until = now;
}

uint64_t RecordedTime::at(uint64_t moment) const {
  const auto after = std::ranges::upper_bound(pauses_, moment, {}, &Pause::from);
  if (after == pauses_.begin()) return moment;
  const Pause& last = *(after - 1);
  const uint64_t in_pause = (last.until ? std::min(moment, last.until) : moment) - last.from;
  return moment - last.before - in_pause;
}

}  // namespace pkprof
