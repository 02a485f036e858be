// SPDX-License-Identifier: Apache-2.0
// Figures that the kernel side keeps by CPU, and that only grow.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "pkprof/user_abi.h"

namespace pkprof {

class KernelObject;

// Summed over the CPUs.
[[nodiscard]] pk_stats sum_of_stats(const KernelObject& object);

// How often a socket was asked for data and had none, by CPU.
[[nodiscard]] std::vector<uint64_t> taken_in_vain(const KernelObject& object);

// What the sampling clock's interrupts have taken, with their samples, ns: 0 where interrupts
// cannot be measured. Of all CPUs; by CPU.
[[nodiscard]] double clock_ns(const pk_stats& stats);
[[nodiscard]] std::vector<double> clock_ns(const KernelObject& object);

// What went wrong, by name, for Meta::counters.
[[nodiscard]] std::map<std::string, uint64_t> kernel_counters(const pk_stats& stats);

}  // namespace pkprof
