// SPDX-License-Identifier: Apache-2.0
// A part of JSON reports; private to src/report, as json_header.h is.
#pragma once

#include "report/json_header.h"
#include "report/options.h"

namespace pkprof {

// "waits" of schema pkprof.waits/1: who waited, for what and for whom.
[[nodiscard]] Json waits_array(const Profile& profile, const ReportOptions& options);

}  // namespace pkprof
