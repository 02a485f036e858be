// SPDX-License-Identifier: Apache-2.0
// `report --json`: one object, schema pkprof.report/1, as docs and DESIGN fix it. Pure ASCII, so
// it is safe to print and to embed: what is not ASCII is written as \uXXXX, and invalid UTF-8 as
// U+FFFD. Counters of things lost are sentences in "degraded".
#pragma once

#include <string>

#include "model/profile.h"
#include "report/options.h"

namespace pkprof {

// Uses options.pids only: the rows are those processes, and the rest is in other_ns. Ends with a
// newline and has no other: one line a report.
[[nodiscard]] std::string report_json(const Profile& profile, const ReportOptions& options = {});

}  // namespace pkprof
