// SPDX-License-Identifier: Apache-2.0
// What share of a CPU's time programs in the kernel take that keep no account of their runs: for
// ten milliseconds of each second the kernel counts and times these.
#pragma once

#include <cstdint>
#include <vector>

#include "base/fd.h"
#include "probe/hooks.h"

namespace pkprof {

class RunningShare {
 public:
  RunningShare(std::vector<int> programs, HookOverhead overhead)
      : programs_(std::move(programs)), overhead_(overhead) {}

  // Opens or closes a window that is due. Returns when it will have more to do, CLOCK_MONOTONIC.
  uint64_t turn(uint64_t now);
  void close(uint64_t now);
  // Of one CPU: 0.5 is half of it. 0 before there was a window.
  [[nodiscard]] double share() const;

 private:
  struct Runs {
    uint64_t ns = 0;
    uint64_t count = 0;
  };
  [[nodiscard]] Runs runs() const;

  std::vector<int> programs_;
  HookOverhead overhead_;
  Fd window_;
  Runs at_open_;
  uint64_t opened_ = 0;
  uint64_t next_ = 0;
  double taken_ns_ = 0;  // in all windows
  uint64_t watched_ns_ = 0;
};

}  // namespace pkprof
