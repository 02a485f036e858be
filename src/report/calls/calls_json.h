// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "model/profile.h"
#include "report/options.h"

namespace pkprof {

// {"schema":"pkprof.calls/1", ..., "functions":N, "means":"fentry", "total":N, "left_out":N,
//  "calls":[{"served":pid or name, "comm":..., "function":..., "caller":..., "calls":N}, ...]}
[[nodiscard]] std::string calls_json(const Profile& profile, const ReportOptions& options);

}  // namespace pkprof
