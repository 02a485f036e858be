// SPDX-License-Identifier: Apache-2.0
// `perf record` beside pkprof in the same seconds: whom it puts softirq time on.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "pkprof_run.h"

namespace pkprof::accuracy {

class PerfBeside {
 public:
  // Begins; `seconds` is how long it will sample. Does nothing where there is no perf, and in
  // guests.
  explicit PerfBeside(double seconds);
  // Waits for its end. Of the samples with a softirq in their stack that ran on others than
  // `without`, the share in percent that it shows under `pids`. Nothing: no perf, or no samples.
  std::optional<double> softirq_share(const std::set<int>& pids, const std::set<int>& without = {});

 private:
  void read();

  live::TempDir dir_;
  std::optional<live::Running> perf_;
  std::map<int, uint64_t> softirq_;  // samples by pid
};

}  // namespace pkprof::accuracy
