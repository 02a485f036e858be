// SPDX-License-Identifier: Apache-2.0
// Folded stacks, a line each, for flame graphs: "party;main;read;«syscall:read»;vfs_read 12000", in
// nanoseconds.
#pragma once

#include <string>

#include "export/format.h"

namespace pkprof {

[[nodiscard]] Result<std::string> export_folded(const Profile& profile,
                                                const ExportOptions& options);

}  // namespace pkprof
