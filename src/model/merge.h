// SPDX-License-Identifier: Apache-2.0
// Two recordings of one machine as one.
#pragma once

#include "base/result.h"
#include "model/profile.h"

namespace pkprof {

// Adds to a recording a later one, as if there had been no time between them. Fails, and leaves
// `before` as it is, where the two are not of one machine: the ledger sums to CPUs x duration.
[[nodiscard]] Result<> merge(Profile& before, const Profile& later);

}  // namespace pkprof
