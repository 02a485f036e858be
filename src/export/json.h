// SPDX-License-Identifier: Apache-2.0
// All of a profile as one JSON object, schema "pkprof.profile/1": tables that refer to each other
// by place, as in the Profile itself. Strings are as they were recorded, but for invalid UTF-8.
#pragma once

#include <string>

#include "export/format.h"

namespace pkprof {

// options.pids leaves out what was served to others; there is no OTHER.
[[nodiscard]] Result<std::string> export_json(const Profile& profile, const ExportOptions& options);

}  // namespace pkprof
