// SPDX-License-Identifier: Apache-2.0
#include "collect/segments.h"

#include <algorithm>

namespace pkprof {

uint8_t Segments::begin(HookGroup group, uint64_t now) {
  std::shared_ptr<Segment>& last = last_[group];
  if (last) {
    if (last->paused)
      last->pause_ended = now;
    else
      last->ended = now;
  }
  last = std::make_shared<Segment>(Segment{.began = now});
  number_ = number_ == UINT8_MAX ? 1 : number_ + 1;
  numbered_[number_] = last;
  return number_;
}

void Segments::pause(HookGroup group, uint64_t now) {
  const std::shared_ptr<Segment>& last = last_[group];
  if (!last || last->paused) return;
  last->ended = now;
  last->paused = true;
}

double Segments::weight(uint8_t number, uint64_t now) const {
  const std::shared_ptr<Segment>& segment = numbered_[number];
  if (!segment || !segment->paused) return 0;
  const uint64_t until = segment->pause_ended ? segment->pause_ended : now;
  const uint64_t on = std::max<uint64_t>(segment->ended - segment->began, 1);
  return static_cast<double>(until - std::min(until, segment->ended)) / static_cast<double>(on);
}

}  // namespace pkprof
