// SPDX-License-Identifier: Apache-2.0
// Recordings of a machine that receives few packets a second and many.
#pragma once

#include "base/result.h"
#include "live.h"

namespace pkprof::scale {

// Prints a table for the default budget, and one for a budget of 100 %, which knows no pauses.
// Beside the rates: no packets, and as many as can be sent. Medians of the rounds, in which all of
// these take turns.
[[nodiscard]] Result<> record_packets(const LiveOptions& options);

}  // namespace pkprof::scale
