// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "report/options.h"

namespace pkprof {

// What standard output can show: its width, colour (a terminal, and NO_COLOR not set), and
// whether the locale is UTF-8.
[[nodiscard]] ReportOptions terminal_options();

// Writes to standard output. False, with a word on stderr, if not all could be written; a reader
// that went away (a pager) is no error.
bool print(const std::string& text);

// Shows a file in the user's browser (xdg-open, which does not wait for it). The status to exit
// with; a word on stderr if it cannot be shown.
int open_in_browser(const std::string& path);

}  // namespace pkprof
