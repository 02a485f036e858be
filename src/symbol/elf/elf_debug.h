// SPDX-License-Identifier: Apache-2.0
// Where distributions put what they strip: separate debug files.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "symbol/elf/elf_handle.h"
#include "symbol/elf/file_access.h"

namespace pkprof {

// Where to look: below a root (nullptr: nowhere), in each debug directory.
struct DebugSearch {
  std::shared_ptr<RootDir> root;
  std::vector<std::string> debug_dirs;
};

// The debug file of `elf`, found by build-id (DIR/.build-id/ab/cdef.debug) or by .gnu_debuglink
// (beside the file, in .debug there, or below DIR), and verified to belong to it. `path` is the
// file's own, as seen from its root. Debug files are not asked for debug files of their own.
[[nodiscard]] std::optional<ElfHandle> find_debug_file(const ElfHandle& elf,
                                                       const std::string& build_id,
                                                       const std::string& path,
                                                       const DebugSearch& search);

}  // namespace pkprof
