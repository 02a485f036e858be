// SPDX-License-Identifier: Apache-2.0
// The flat profile in gprof's layout: functions by the time they took themselves. Below them is
// what has no functions (idle, not selected, unsampled), so that the cumulative seconds end at
// CPUs x time. The total of a function counts a stack once, however often the function is on it.
// Calls, and times a call, are given where every call was counted.
#pragma once

#include <string>

#include "report/listing/listing.h"
#include "report/options.h"

namespace pkprof {

// With options.pids, only what was served to them. Functions are those of all processes together
// unless there are pids or options.apart is set; see listing.h for their names.
[[nodiscard]] std::string flat_text(const Profile& profile, const ReportOptions& options = {});
[[nodiscard]] std::string flat_text_of(const Listing& listing, const ReportOptions& options);

}  // namespace pkprof
