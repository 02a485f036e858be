// SPDX-License-Identifier: Apache-2.0
// The ledger's cells as a table (RFC 4180): a line for each who ran, who was served, by what and
// why. All of the time is in it, idle time, too.
#pragma once

#include <string>

#include "export/format.h"

namespace pkprof {

[[nodiscard]] Result<std::string> export_csv(const Profile& profile, const ExportOptions& options);

}  // namespace pkprof
