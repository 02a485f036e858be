// SPDX-License-Identifier: Apache-2.0
// Where all of the time is measured, samples say only how it is divided: a task's turns on the CPU
// into user code and the system calls and faults it was in, a softirq's runs by whom they were for.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "attribution/row.h"

namespace pkprof {

using Rows = std::vector<std::pair<Row, pk_count>>;

// Takes the measured rows (PK_MEASURED) away and gives their time to the sampled ones: those of a
// task's own contexts in proportion, and so those of a vector's softirqs that ran on a task. What
// was measured and never sampled is divided as what is like it, with the basis provisional; a
// kernel thread's is the thread's, which has no user code.
struct KernelThreads {
  std::function<bool(uint64_t)> is_one;
  // One that polls for packets itself: its turns and its softirqs of NET_RX are one, since samples
  // do not tell them apart.
  std::function<bool(uint64_t)> polls;
};
void scale_to_measured(Rows& rows, const KernelThreads& threads);

}  // namespace pkprof
