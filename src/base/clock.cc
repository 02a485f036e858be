// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"

#include <fstream>
#include <string>

namespace pkprof {

const ClockOffsets& clock_offsets() {
  static const ClockOffsets known = [] {
    ClockOffsets offsets;
    std::ifstream in("/proc/self/timens_offsets");
    std::string clock;
    for (int64_t seconds = 0, ns = 0; in >> clock >> seconds >> ns;)
      (clock == "monotonic" ? offsets.monotonic_ns : offsets.boottime_ns) =
          static_cast<uint64_t>(seconds) * 1'000'000'000 + static_cast<uint64_t>(ns);
    return offsets;
  }();
  return known;
}

}  // namespace pkprof
