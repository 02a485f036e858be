// SPDX-License-Identifier: Apache-2.0
// The timeline for Perfetto and chrome://tracing (JSON trace events): for each process how much of
// a CPU it had in each slot, and how much of one was spent for it.
#pragma once

#include <string>

#include "export/format.h"

namespace pkprof {

// Counters, in percent of one CPU: "for it" with the series user, own kernel and async kernel;
// "async" by source; "stolen". Fails where there is no timeline.
[[nodiscard]] Result<std::string> export_perfetto(const Profile& profile,
                                                  const ExportOptions& options);

}  // namespace pkprof
