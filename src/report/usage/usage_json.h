// SPDX-License-Identifier: Apache-2.0
// A part of JSON reports; private to src/report, as json_header.h is.
#pragma once

#include "report/json_header.h"
#include "report/options.h"

namespace pkprof {

// "resources" of schema pkprof.usage/1: by name, what was used, by whom and how.
[[nodiscard]] Json resources_object(const Profile& profile, const ReportOptions& options);

}  // namespace pkprof
