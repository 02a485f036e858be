// SPDX-License-Identifier: Apache-2.0
// Time as a recording counts it: CLOCK_MONOTONIC, without the whiles in which it was paused. Up to
// the first pause both are the same.
#pragma once

#include <cstdint>
#include <vector>

namespace pkprof {

class RecordedTime {
 public:
  // From this moment on it stands still, CLOCK_MONOTONIC ns; and goes on. Moments come in order;
  // what is so already stays so.
  void pause(uint64_t now);
  void go_on(uint64_t now);
  [[nodiscard]] bool paused() const { return !pauses_.empty() && pauses_.back().until == 0; }

  // At a moment, CLOCK_MONOTONIC ns. All moments of a pause are the same.
  [[nodiscard]] uint64_t at(uint64_t moment) const;

 private:
  struct Pause {
    uint64_t from = 0;
    uint64_t until = 0;   // 0: it goes on
    uint64_t before = 0;  // ns in the pauses before it
  };
  std::vector<Pause> pauses_;
};

}  // namespace pkprof
