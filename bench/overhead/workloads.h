// SPDX-License-Identifier: Apache-2.0
// What is measured under each profiler: a slice of it runs for the seconds given, and says how much
// it got done in each of them. Its processes stay on CPUs of their own where that can be.
#pragma once

#include <functional>
#include <vector>

#include "base/result.h"
#include "log.h"
#include "stage.h"

namespace pkprof::overhead {

struct Workload {
  WorkloadInfo info;
  // Once, before the first slice. An error is why the workload cannot be had here.
  std::function<Result<>(Stage&)> prepare;
  std::function<Result<double>(Stage&, double seconds)> slice;
  // A slice is that many runs, each a part of the time, and counts as their mean. What two ends of
  // a connection settle into differs from run to run, however long one is.
  int parts = 1;
};

[[nodiscard]] std::vector<Workload> all_workloads();

}  // namespace pkprof::overhead
