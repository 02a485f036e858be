// SPDX-License-Identifier: Apache-2.0
// Names are hostile: a process may call itself "\e[2J" or write its name from right to left. What
// goes to a terminal goes through here, and comes out as text that takes the columns it seems to
// take and does nothing else.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace pkprof {

// Control characters and invalid UTF-8 become \xHH; characters that are invisible or change the
// direction or the order of others, and combining marks piled up high, become \u{HHHH}. Without
// `unicode`, so does everything that is not ASCII.
[[nodiscard]] std::string clean(std::string_view raw, bool unicode = true);

// Columns that cleaned text takes on a terminal: wide characters take two, combining marks none.
[[nodiscard]] size_t display_width(std::string_view cleaned);

// Cuts cleaned text to at most `width` columns; what was cut is marked by one column ("…", or "~"
// without `unicode`). fit keeps the beginning; fit_tail keeps the end, which in a path says more.
[[nodiscard]] std::string fit(std::string_view cleaned, size_t width, bool unicode = true);
[[nodiscard]] std::string fit_tail(std::string_view cleaned, size_t width, bool unicode = true);

// Cleaned text in a field of at least `width` columns.
[[nodiscard]] std::string pad_right(std::string_view cleaned, size_t width);
[[nodiscard]] std::string pad_left(std::string_view cleaned, size_t width);

}  // namespace pkprof
