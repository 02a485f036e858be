// SPDX-License-Identifier: Apache-2.0
// What an interrupt takes before its first tracepoint and after its last. On a machine of its own
// that is some hundred nanoseconds; on a virtual one the way out to the host and back lies there,
// microseconds, and more than the interrupt itself takes. Whoever was interrupted did not have that
// time, and it is for whom the interrupt was.
#pragma once

#include <cstdint>

namespace pkprof {

// By threads of this process on two CPUs, one of which interrupts the other: some 20 ms. 0 where it
// cannot be told: there is one CPU.
[[nodiscard]] uint64_t measure_interrupt_entry_ns();

}  // namespace pkprof
