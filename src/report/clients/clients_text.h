// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "model/profile.h"
#include "report/options.h"

namespace pkprof {

// A table for each server. Ends with a newline.
[[nodiscard]] std::string clients_text(const Profile& profile, const ReportOptions& options);
// Schema pkprof.clients/1: the servers, with their clients; the header is the ledger's.
[[nodiscard]] std::string clients_json(const Profile& profile, const ReportOptions& options);

}  // namespace pkprof
