// SPDX-License-Identifier: Apache-2.0
// Names of functions in stripped files, from debug files that are fetched when the recording is
// over: see debuginfod.h.
#pragma once

#include <functional>
#include <string>

#include "model/profile.h"

namespace pkprof {

// Which file's names are on their way, and how much of it is there; false gives up.
using FetchProgress = std::function<bool(const std::string& file, uint64_t got, uint64_t all)>;

// Gives functions their names, where DEBUGINFOD_URLS names servers that have the debug files. All
// of it takes so long at most. What could not be had is said in .meta.degraded.
void fetch_names(Profile& profile, uint64_t most_ns, const FetchProgress& progress);

}  // namespace pkprof
