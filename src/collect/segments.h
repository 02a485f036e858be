// SPDX-License-Identifier: Apache-2.0
// Pieces of the time in which a group of hooks was on, by the number that their samples carry
// (pk_key.watched). What was seen in a piece says what the pause after it was like: a burst is what
// ends a turn, so the end of a turn and its pause are more alike than all turns and all pauses are.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>

#include "collect/hooks.h"

namespace pkprof {

class Segments {
 public:
  // A piece begins, and the group's last one ends, if it goes on. Its number, never 0: it is used
  // again after 255 of all groups.
  uint8_t begin(HookGroup group, uint64_t now);
  // The group's last piece ends, and a pause begins.
  void pause(HookGroup group, uint64_t now);
  // For how much of a pause each nanosecond of a piece stands; of numbers not used, 0.
  [[nodiscard]] double weight(uint8_t number, uint64_t now) const;

 private:
  struct Segment {
    uint64_t began = 0;
    uint64_t ended = 0;  // 0: it goes on
    bool paused = false;
    uint64_t pause_ended = 0;  // 0: it goes on
  };
  std::array<std::shared_ptr<Segment>, 256> numbered_;
  std::map<HookGroup, std::shared_ptr<Segment>> last_;
  uint8_t number_ = 0;
};

}  // namespace pkprof
