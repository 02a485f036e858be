// SPDX-License-Identifier: Apache-2.0
// CPUs that go offline while they are recorded, and what a report says of them.
//
// What a CPU does is known while its sampling clock runs. With the CPU the clock goes, and a little
// later than the CPU it comes back, or never: in between the CPU's time is UNCLAIMED: unsampled. It
// is not idle: offline it can do no work for anyone, and back online it may be busy.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace pkprof {

struct CpuAbsence {
  enum class End : uint8_t {
    sampled,   // it came (back), and has a clock again
    none,      // it is away; or it came back, and nobody opened its clock
    unopened,  // it was offline at the start, came, and nobody opened its clock
  };
  uint32_t cpu = 0;
  uint64_t from = 0;   // ns, by the recording's clock
  uint64_t until = 0;  // where it is sampled again
  End end = End::none;
};

// Of absences in a part of a recording, by that part's clock: one sentence for each kind. By CPU.
[[nodiscard]] std::vector<std::string> describe(std::span<const CpuAbsence> absences, uint64_t from,
                                                uint64_t until);

// "1-3,7": as the kernel writes lists of CPUs, from sorted ones.
[[nodiscard]] std::string cpu_list(std::span<const uint32_t> cpus);

}  // namespace pkprof
