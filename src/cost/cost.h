// SPDX-License-Identifier: Apache-2.0
// What pkprof itself costs, measured while it runs and not estimated from a table.
//
// Kernel side: runs are counted, all of them. What the sampling clock's interrupts take is measured
// by entry and exit, as all interrupts are. What a run of a hook takes the kernel measures
// (BPF_ENABLE_STATS) in short windows, since timing every one would cost more than the hook. The
// way to a hook and back is not in the kernel's figure: it is measured once on this machine. User
// side: getrusage().
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/fd.h"
#include "probe/hooks.h"

namespace pkprof {

class CostMeter {
 public:
  using ByGroup = std::array<std::vector<int>, hook_groups>;
  CostMeter(ByGroup hook_programs, HookOverhead overhead);

  // These are the programs from here on.
  void set_programs(ByGroup hook_programs);

  // Opens a window; close() it some milliseconds later.
  void open();
  void close();
  [[nodiscard]] bool is_open() const { return stats_.valid(); }
  // Whether one window more will hardly change what a run takes.
  [[nodiscard]] bool is_sure() const { return windows_ >= 3; }

  // What one run takes, ns, as measured so far.
  [[nodiscard]] double hook_ns(HookGroup group) const;
  // CPU time of this process since the meter was made.
  [[nodiscard]] uint64_t user_ns() const;

 private:
  struct Runs {
    uint64_t ns = 0;
    uint64_t count = 0;
  };
  [[nodiscard]] static Runs runs_of(int program);
  [[nodiscard]] static std::vector<Runs> runs_of(const std::vector<int>& programs);

  ByGroup hooks_;
  HookOverhead overhead_;
  Fd stats_;
  size_t windows_ = 0;                                        // that counted
  std::array<std::vector<Runs>, hook_groups> hooks_at_open_;  // of each program
  std::array<std::vector<double>, hook_groups> each_ns_;      // of a run, by window
  uint64_t used_at_start_ = 0;
};

}  // namespace pkprof
