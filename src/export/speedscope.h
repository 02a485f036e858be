// SPDX-License-Identifier: Apache-2.0
// For speedscope.app: a profile for each party, the largest first. The schema is
// https://www.speedscope.app/file-format-schema.json.
#pragma once

#include <string>

#include "export/format.h"

namespace pkprof {

[[nodiscard]] Result<std::string> export_speedscope(const Profile& profile,
                                                    const ExportOptions& options);

}  // namespace pkprof
