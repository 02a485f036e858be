// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace pkprof::scale {

// Prints what memory depends on the number of CPUs, computed from the same constants that a
// recording uses.
void print_cpus(uint64_t frequency_hz);

}  // namespace pkprof::scale
