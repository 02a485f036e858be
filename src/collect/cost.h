// SPDX-License-Identifier: Apache-2.0
// What pkprof itself costs, measured while it runs and not estimated from a table.
//
// Kernel side: runs are counted, all of them; what a run takes the kernel measures
// (BPF_ENABLE_STATS) in short windows, since timing every run of a hook would cost more than the
// hook. The way to a hook and back is not in the kernel's figure, nor is the timer interrupt under
// each sample: both are measured once on this machine. User side: getrusage().
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/fd.h"
#include "collect/hooks.h"

namespace pkprof {

class CostMeter {
 public:
  // `dispatch_ns`: the way to a hook and back.
  using ByGroup = std::array<std::vector<int>, hook_groups>;
  CostMeter(int sampler_program, ByGroup hook_programs, uint64_t dispatch_ns);

  // Opens a window; close() it some milliseconds later.
  void open();
  void close();
  [[nodiscard]] bool is_open() const { return stats_.valid(); }

  // What one run takes, ns, as measured so far.
  [[nodiscard]] double hook_ns(HookGroup group) const;
  [[nodiscard]] double sampler_ns() const;
  // CPU time of this process since the meter was made.
  [[nodiscard]] uint64_t user_ns() const;

  // The interrupt of one sample of a cpu-clock event without a program, ns. Takes some 70 ms.
  static uint64_t measure_interrupt();

 private:
  struct Runs {
    uint64_t ns = 0;
    uint64_t count = 0;
  };
  [[nodiscard]] static Runs runs_of(int program);
  [[nodiscard]] static Runs runs_of(const std::vector<int>& programs);

  int sampler_;
  ByGroup hooks_;
  uint64_t dispatch_ns_;
  Fd stats_;
  Runs sampler_at_open_, sampler_seen_;
  std::array<Runs, hook_groups> hooks_at_open_, hooks_seen_;
  uint64_t used_at_start_ = 0;
};

}  // namespace pkprof
