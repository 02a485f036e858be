// SPDX-License-Identifier: Apache-2.0
// What pkprof itself costs, measured while it runs and not estimated from a table.
//
// Kernel side: the kernel times our programs (BPF_ENABLE_STATS) in short windows, since timing
// every run of a hook would cost more than the hook; the share of a window is taken for the whole.
// The timer interrupt under each sample is measured once, at the end, on this machine: a loop of
// fixed work with and without a sampling clock. User side: getrusage().
#pragma once

#include <cstdint>
#include <vector>

#include "base/fd.h"

namespace pkprof {

class CostMeter {
 public:
  explicit CostMeter(std::vector<int> program_fds);

  // Opens a window; close() it some milliseconds later.
  void open();
  void close();
  [[nodiscard]] bool is_open() const { return stats_.valid(); }

  // CPU time of our programs for a recording of that length.
  [[nodiscard]] uint64_t programs_ns(uint64_t duration_ns) const;
  // CPU time of this process since the meter was made.
  [[nodiscard]] uint64_t user_ns() const;

  // The interrupt of one sample of a cpu-clock event without a program, ns. Takes some 40 ms.
  static uint64_t measure_interrupt();

 private:
  [[nodiscard]] uint64_t run_time() const;

  std::vector<int> programs_;
  Fd stats_;
  uint64_t opened_at_ = 0;
  uint64_t run_at_open_ = 0;
  uint64_t window_ns_ = 0;
  uint64_t run_ns_ = 0;
  uint64_t used_at_start_ = 0;
};

}  // namespace pkprof
