// SPDX-License-Identifier: Apache-2.0
// What other tools recorded, by what is in the file.
#pragma once

#include <string>

#include "base/result.h"
#include "model/profile.h"

namespace pkprof {

// What `perf script` printed, or a pprof file; "-" is standard input. perf's own file (perf.data)
// is an error that says how to have it printed.
// `event`: of what perf script printed, the one to take; see read_perf_script().
[[nodiscard]] Result<Profile> import_file(const std::string& path, const std::string& event = "");

}  // namespace pkprof
