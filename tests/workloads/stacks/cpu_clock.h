// SPDX-License-Identifier: Apache-2.0
// CPU time, for programs that link nothing of ours. How long a turn of a loop takes changes with
// what else the machine does, so work is measured by the clock.
#pragma once

#include <time.h>

#include <cstdint>

inline uint64_t cpu_ns(clockid_t clock = CLOCK_PROCESS_CPUTIME_ID) {
  timespec t{};
  clock_gettime(clock, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
}
