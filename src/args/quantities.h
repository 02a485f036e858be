// SPDX-License-Identifier: Apache-2.0
// Times, sizes and labels as people write them. The error is a sentence that has the word in it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace pkprof {

// "90s", "15m", "1h", "30d", "2w", in nanoseconds.
[[nodiscard]] Result<uint64_t> parse_age(std::string_view word);

// An age before `now`, or a time by RFC 3339: "2026-11-30T03:13:07Z",
// "2026-11-30T03:13:07.5+01:00", "2026-11-30" (midnight UTC). Nanoseconds since 1970.
[[nodiscard]] Result<uint64_t> parse_moment(std::string_view word, uint64_t now_unix_ns);

// "500", "64K", "100M", "2G", "1T" bytes, by powers of 1024.
[[nodiscard]] Result<uint64_t> parse_bytes(std::string_view word);

// "key=value" words as a map; a key is not empty and is there once.
[[nodiscard]] Result<std::map<std::string, std::string>> parse_labels(
    const std::vector<std::string>& words);

// "2026-11-30T03:13:07Z"
[[nodiscard]] std::string moment_text(uint64_t unix_ns);

}  // namespace pkprof
