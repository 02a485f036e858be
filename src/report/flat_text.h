// SPDX-License-Identifier: Apache-2.0
// The flat profile: functions by the time they took themselves. The self column adds up to what
// is shown; total counts a function once a sample, however often it is on the stack.
#pragma once

#include <string>

#include "model/profile.h"
#include "report/options.h"

namespace pkprof {

// With options.pids, only what was served to them.
[[nodiscard]] std::string flat_text(const Profile& profile, const ReportOptions& options = {});

}  // namespace pkprof
