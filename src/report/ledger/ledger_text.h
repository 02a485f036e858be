// SPDX-License-Identifier: Apache-2.0
// The ledger for terminals: what each process seems to cost and what it costs, who took from whom,
// and what the recording is missing. Fits 80 columns (and does its best from 60); what is wider
// shows more of the names, then the executable, then the control group.
#pragma once

#include <string>

#include "model/profile.h"
#include "report/options.h"

namespace pkprof {

[[nodiscard]] std::string ledger_text(const Profile& profile, const ReportOptions& options = {});

}  // namespace pkprof
