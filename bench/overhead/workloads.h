// SPDX-License-Identifier: Apache-2.0
// What is measured under each profiler. Its processes stay on CPUs of their own where that can be.
#pragma once

#include <functional>
#include <vector>

#include "base/result.h"
#include "load.h"
#include "log.h"
#include "stage.h"

namespace pkprof::overhead {

struct Workload {
  WorkloadInfo info;
  // Once, before the first start. An error is why the workload cannot be had here.
  std::function<Result<>(Stage&)> prepare;
  std::function<Result<Load>(Stage&)> start;
  bool halts = false;  // on CPUs that halt when they are idle (awake.h)
  bool maps = false;   // files, all the time: see Variant::hears_of_maps
};

[[nodiscard]] std::vector<Workload> all_workloads();

}  // namespace pkprof::overhead
