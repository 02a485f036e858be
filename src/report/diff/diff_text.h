// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "report/diff/diff.h"
#include "report/options.h"

namespace pkprof {

// What got dearer and what cheaper: as many rows of each table as options.limit says (15), and no
// change that may well be chance.
[[nodiscard]] std::string diff_text(const Profile& a, const std::string& name_a, const Profile& b,
                                    const std::string& name_b, const ReportOptions& options);

// The same and all of it, as one JSON object, schema "pkprof.diff/1".
[[nodiscard]] std::string diff_json(const Profile& a, const std::string& name_a, const Profile& b,
                                    const std::string& name_b, const ReportOptions& options);

}  // namespace pkprof
