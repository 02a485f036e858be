// SPDX-License-Identifier: Apache-2.0
// The page that `pkprof report --html` writes, as a format among the others.
#pragma once

#include <string>

#include "export/format.h"

namespace pkprof {

[[nodiscard]] Result<std::string> export_html(const Profile& profile, const ExportOptions& options);

}  // namespace pkprof
