// SPDX-License-Identifier: Apache-2.0
// What `pkprof debox` prints: calls by kind, where they slept, the slowest ones whole.
#pragma once

#include <string>

#include "model/system_calls.h"
#include "report/options.h"

namespace pkprof {

[[nodiscard]] std::string system_calls_text(const SystemCalls& calls, const ReportOptions& options);

}  // namespace pkprof
