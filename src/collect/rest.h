// SPDX-License-Identifier: Apache-2.0
// When hooks may rest: samples tell whether they need them, and while none does they are not on.
#pragma once

#include <cstdint>

namespace pkprof {

class Rest {
 public:
  // Samples up to now of what the hooks may be needed for, and those of them that did need them.
  // Returns whether the hooks may rest from now on. Each time that samples need them again it takes
  // longer to be sure that none does.
  bool look(uint64_t samples, uint64_t needed);

 private:
  uint64_t samples_ = 0;  // when one needed the hooks last, or they went to rest
  uint64_t needed_ = 0;
  uint64_t enough_ = 24;  // samples of which none needs the hooks
  bool rests_ = false;
};

}  // namespace pkprof
