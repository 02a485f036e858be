// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "model/profile.h"
#include "report/options.h"

namespace pkprof {

// Calls by served process (or whatever `by` says), function and caller, most first.
[[nodiscard]] std::string calls_text(const Profile& profile, const ReportOptions& options);

}  // namespace pkprof
