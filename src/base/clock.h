// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <time.h>

#include <cstdint>

namespace pkprof {

// What this process's clocks are ahead of the kernel's, ns: not 0 in a time namespace. Where they
// are behind, it wraps around, as do the sums that it is in.
struct ClockOffsets {
  uint64_t monotonic_ns = 0;
  uint64_t boottime_ns = 0;
};
[[nodiscard]] const ClockOffsets& clock_offsets();

// CLOCK_MONOTONIC in nanoseconds as the kernel side has it (bpf_ktime_get_ns).
[[nodiscard]] inline uint64_t monotonic_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec) -
         clock_offsets().monotonic_ns;
}

// CPU time of this thread, ns.
[[nodiscard]] inline uint64_t thread_ns() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
}

// CPU time of this process, ns.
[[nodiscard]] inline uint64_t process_ns() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
}

[[nodiscard]] inline uint64_t unix_ns() {
  timespec t{};
  clock_gettime(CLOCK_REALTIME, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
}

}  // namespace pkprof
