// SPDX-License-Identifier: Apache-2.0
// The histogram as one JSON object, schema pkprof.histogram/1; pkprof-hist(1) has its keys. Pure
// ASCII, as report_json.h says.
#pragma once

#include <string>

#include "model/profile.h"
#include "report/histogram/histogram.h"

namespace pkprof {

// Ends with a newline and has no other.
[[nodiscard]] std::string histogram_json(const Profile& profile, const Histogram& histogram);

}  // namespace pkprof
