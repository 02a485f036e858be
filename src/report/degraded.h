// SPDX-License-Identifier: Apache-2.0
// What a report must say on its face: the capabilities that were missing and everything that was
// lost, a sentence each.
#pragma once

#include <string>
#include <vector>

#include "model/profile.h"
#include "report/groups.h"
#include "report/options.h"

namespace pkprof {

// Meta::degraded, then "NAME: N" for each counter that is not zero; and what is asked for but not
// in the profile. Not cleaned.
[[nodiscard]] std::vector<std::string> degraded_sentences(const Profile& profile, By by = By::pid);

// Them below a headline, to end a report; "" where there are none.
[[nodiscard]] std::string incomplete_text(const Profile& profile, const ReportOptions& options);

}  // namespace pkprof
