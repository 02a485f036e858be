// SPDX-License-Identifier: Apache-2.0
// The log as a page of documentation: docs/OVERHEAD.md. Everything on it that was measured is from
// the log; everything of 1996 is from paper.h.
#pragma once

#include <string>
#include <vector>

#include "log.h"

namespace pkprof::overhead {

[[nodiscard]] std::string page_text(const std::vector<Run>& runs);

}  // namespace pkprof::overhead
