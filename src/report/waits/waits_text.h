// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "model/profile.h"
#include "report/options.h"

namespace pkprof {

// Who waited, for what and for whom, of a profile with all of its resources. Ends with a newline.
[[nodiscard]] std::string waits_text(const Profile& profile, const ReportOptions& options);
// The same without what is said of the whole recording, which the ledger says.
[[nodiscard]] std::string waits_tables(const Profile& profile, const ReportOptions& options);
// Schema pkprof.waits/1: the same; the header is the ledger's.
[[nodiscard]] std::string waits_json(const Profile& profile, const ReportOptions& options);

}  // namespace pkprof
