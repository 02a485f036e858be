// SPDX-License-Identifier: Apache-2.0
// Time that was watched, scaled to the time that it stands for. Whole nanoseconds, and what is
// scaled adds up: the sum of the results is the scaled sum, rounded down.
#pragma once

#include <cstdint>

namespace pkprof {

class Scale {
 public:
  Scale() = default;
  // `watched_ns` stand for `all_ns`. Of no time at all nothing can be said: it stays as it is.
  Scale(uint64_t watched_ns, uint64_t all_ns)
      : watched_ns_(watched_ns ? watched_ns : 1), all_ns_(watched_ns ? all_ns : 1) {}

  uint64_t operator()(uint64_t ns) {
    if (watched_ns_ == all_ns_) return ns;
    in_ += ns;
    const auto out =
        static_cast<uint64_t>(static_cast<unsigned __int128>(in_) * all_ns_ / watched_ns_);
    const uint64_t scaled = out - out_;
    out_ = out;
    return scaled;
  }

 private:
  uint64_t watched_ns_ = 1;
  uint64_t all_ns_ = 1;
  uint64_t in_ = 0;
  uint64_t out_ = 0;
};

}  // namespace pkprof
