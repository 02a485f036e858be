// SPDX-License-Identifier: Apache-2.0
// The call graph for GraphViz, from the parties down: what is worth a look.
#pragma once

#include <string>

#include "export/format.h"

namespace pkprof {

[[nodiscard]] Result<std::string> export_dot(const Profile& profile, const ExportOptions& options);

}  // namespace pkprof
