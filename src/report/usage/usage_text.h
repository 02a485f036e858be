// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "model/profile.h"
#include "report/options.h"

namespace pkprof {

// A table for each resource that the profile has, but for CPU time and waits.
[[nodiscard]] std::string usage_text(const Profile& profile, const ReportOptions& options);
// The same without what is said of the whole recording, which the ledger says.
[[nodiscard]] std::string usage_tables(const Profile& profile, const ReportOptions& options);
// Schema pkprof.usage/1: the same; the header is the ledger's.
[[nodiscard]] std::string usage_json(const Profile& profile, const ReportOptions& options);

}  // namespace pkprof
