// SPDX-License-Identifier: Apache-2.0
// All that DeBox's kernel side has counted, with names.
#pragma once

#include "debox/names.h"
#include "debox/side.h"
#include "model/system_calls.h"

namespace pkprof {

// So far: kinds of calls, where they slept and who woke them.
[[nodiscard]] SystemCalls read_totals(const DeboxSide& side, const DeboxNames& names);

}  // namespace pkprof
