// SPDX-License-Identifier: Apache-2.0
// What a recording has besides CPU time, for whoever shows it with the ledger.
#pragma once

#include <string>

#include "model/profile.h"
#include "report/options.h"

namespace pkprof {

// The tables of waits and of usage, each after an empty line; "" where the profile has neither.
// What is incomplete is not in it: the ledger says that. By::client they are by process.
[[nodiscard]] std::string resources_text(const Profile& profile, const ReportOptions& options);
// report_json() of the recording's CPU time, and what it has of other resources: "waits" as in
// pkprof.waits/1, "resources" as in pkprof.usage/1.
[[nodiscard]] std::string report_json_with(const Profile& recorded, const Profile& cpu,
                                           const ReportOptions& options = {});

}  // namespace pkprof
