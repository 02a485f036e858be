// SPDX-License-Identifier: Apache-2.0
// The histogram as text: START-END (NN%) : bar, and the functions there.
#pragma once

#include <string>

#include "model/profile.h"
#include "report/histogram/histogram.h"
#include "report/options.h"

namespace pkprof {

// Bars are in proportion to the longest; a dot is for what is too little for a star.
[[nodiscard]] std::string histogram_text(const Profile& profile, const Histogram& histogram,
                                         const ReportOptions& options = {});

}  // namespace pkprof
