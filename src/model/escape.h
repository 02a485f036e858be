// SPDX-License-Identifier: Apache-2.0
// Text that a name can hold (any bytes) as text that a file may hold (printable, valid UTF-8),
// and back without loss. A byte that may not stand as it is becomes `\xHH` (lower-case hex); a
// backslash stays a backslash unless what follows would make it look like that. So nearly every
// name is its own escaped form, and `go tool pprof` shows the rest readably and harmlessly.
#pragma once

#include <string>
#include <string_view>

namespace pkprof {

// Invalid UTF-8, C0 and C1 controls and DEL are escaped.
[[nodiscard]] std::string escape_text(std::string_view raw);

// The inverse: unescape_text(escape_text(s)) == s for all s.
[[nodiscard]] std::string unescape_text(std::string_view escaped);

// Length in bytes of the valid UTF-8 character at the start of `text`, 0 when there is none;
// `*code` is then the code point. Overlong forms, surrogates and what is past U+10FFFF are invalid.
[[nodiscard]] size_t utf8_decode(std::string_view text, char32_t* code);

}  // namespace pkprof
