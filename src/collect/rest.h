// SPDX-License-Identifier: Apache-2.0
// When hooks may rest: samples tell whether they need them, and for what they do not need they are
// not on.
#pragma once

#include <cstdint>

namespace pkprof {

class Rest {
 public:
  // The hooks may rest while no more than this part of the samples needs them, and until twice as
  // many do. `now`: they have just been attached.
  Rest(double hardly_any, uint64_t now) : hardly_any_(hardly_any), since_(now) {}

  // Samples up to now of what the hooks may be needed for, and those of them that did need them.
  // Returns whether the hooks may rest from now on.
  bool look(uint64_t samples, uint64_t needed, uint64_t now);

 private:
  double hardly_any_;
  uint64_t since_;  // of what is looked at
  uint64_t samples_ = 0;
  uint64_t needed_ = 0;
  bool rests_ = false;
};

}  // namespace pkprof
