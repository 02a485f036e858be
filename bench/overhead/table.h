// SPDX-License-Identifier: Apache-2.0
// The log as a table for a terminal.
#pragma once

#include <string>
#include <vector>

#include "log.h"

namespace pkprof::overhead {

[[nodiscard]] std::string table_text(const std::vector<Run>& runs);

// "0.981", "-0.002".
[[nodiscard]] std::string three_places(double value);
// A rate with as many digits as mean something: "411.2 k", "3.41 M", "87.3".
[[nodiscard]] std::string rate_text(double value);
// What the runs say of the workloads or the variants in them: each once, in their order.
[[nodiscard]] std::vector<WorkloadInfo> workloads_of(const std::vector<Run>& runs);
[[nodiscard]] std::vector<VariantInfo> variants_of(const std::vector<Run>& runs);

}  // namespace pkprof::overhead
