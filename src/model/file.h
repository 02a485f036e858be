// SPDX-License-Identifier: Apache-2.0
// Whole files in and out. Writing is all or nothing: the bytes go to a nameless file in the same
// directory and get the name when they are all on disk, so neither a crash nor a full disk leaves
// half a file under it, and kill -9 leaves no litter. What is not a regular file (a pipe, a
// terminal, /dev/null) is written to directly.
//
// Root writes into folders that others write to as well: what another user put there under the
// name, be it a link, a FIFO or a file, is neither followed nor written to nor replaced.
//
// New files are readable by their owner only, as perf's are: they hold kernel addresses.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"

namespace pkprof {

// "-", /dev/stdout, /dev/stderr and /dev/fd/N mean the open descriptor, not a file to replace. A
// symbolic link keeps pointing where it does. The sentence of a failure names `path`.
[[nodiscard]] Result<> write_file(const std::string& path, std::string_view bytes);

// For what is written bit by bit: the file that is there as it is, or a new one, with the same
// care.
[[nodiscard]] Result<Fd> open_to_write(const std::string& path);

// Whether another user may have put `entry`, of the open directory, where we look for ours: in a
// shared folder (sticky, writable for others) it is neither ours nor the folder's owner's.
[[nodiscard]] bool is_planted(int directory, const struct stat& entry);

// One that is there already will do, unless it is planted.
[[nodiscard]] Result<> make_directory(const std::string& path, mode_t mode);

// "-" is standard input. Fails rather than reading more than `limit` bytes.
[[nodiscard]] Result<std::string> read_file(const std::string& path, size_t limit);

}  // namespace pkprof
