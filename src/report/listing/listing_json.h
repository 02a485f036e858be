// SPDX-License-Identifier: Apache-2.0
// `report --view flat --json` (schema pkprof.flat/1) and `--view graph --json` (pkprof.graph/1):
// one object in one line of ASCII, complete whatever the threshold. Their "functions" are the
// listing's nodes, roots among them; own times and "rest" add up to the ledger's sum.
#pragma once

#include <string>

#include "model/profile.h"
#include "report/options.h"

namespace pkprof {

[[nodiscard]] std::string flat_json(const Profile& profile, const ReportOptions& options = {});

// With "arcs", whose callers and callees are places in "functions", and "cycles".
[[nodiscard]] std::string graph_json(const Profile& profile, const ReportOptions& options = {});

}  // namespace pkprof
