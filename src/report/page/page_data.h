// SPDX-License-Identifier: Apache-2.0
// What the page knows of a profile, as JSON (web/src/data.ts reads it). Rows of tables are the
// ledger's own: the page adds up nothing that a report has added up already. Names are cleaned.
// Private to src/report.
#pragma once

#include <string>

#include "model/profile.h"
#include "report/json_header.h"

namespace pkprof {

// With `ledgers`, of a profile that is shown; without, of one that it is compared with. All but
// "waits" is of CPU time, where the profile has any.
[[nodiscard]] Json page_data(const Profile& whole, const std::string& name, bool ledgers);

}  // namespace pkprof
