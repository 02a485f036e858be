// SPDX-License-Identifier: Apache-2.0
// What pkprof is held to: by how much of a workload's throughput it may be under another profiler
// in the same run. Of the 997 samples a second that are the default; the page shows how it stands
// at other frequencies, too.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "summary.h"

namespace pkprof::overhead {

struct Target {
  std::string workload;
  std::string variant;
  std::string reference;
  double limit = 0;
};

// Those for this workload.
[[nodiscard]] std::vector<Target> targets_for(const std::string& workload);

// "met", "missed", each with ", not certain" while the limit is within what the median's confidence
// interval covers, or there are too few turns for one.
[[nodiscard]] std::string verdict(const Target& target, const Gap& gap);

}  // namespace pkprof::overhead
