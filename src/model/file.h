// SPDX-License-Identifier: Apache-2.0
// Whole files in and out. Writing is all or nothing: the bytes go to a nameless file in the same
// directory and get the name when they are all on disk, so neither a crash nor a full disk leaves
// half a file under it, and kill -9 leaves no litter. What is not a regular file (a pipe, a
// terminal, /dev/null) is written to directly.
//
// New files are readable by their owner only, as perf's are: they hold kernel addresses.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace pkprof {

// "-", /dev/stdout, /dev/stderr and /dev/fd/N mean the open descriptor, not a file to replace. A
// symbolic link keeps pointing where it does. The sentence of a failure names `path`.
[[nodiscard]] Result<> write_file(const std::string& path, std::string_view bytes);

// "-" is standard input. Fails rather than reading more than `limit` bytes.
[[nodiscard]] Result<std::string> read_file(const std::string& path, size_t limit);

}  // namespace pkprof
