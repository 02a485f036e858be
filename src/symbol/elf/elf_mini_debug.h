// SPDX-License-Identifier: Apache-2.0
// What Fedora leaves in a stripped program: .gnu_debugdata, an ELF file that has its local
// functions' symbols and nothing else, packed by xz.
#pragma once

#include <optional>

#include "symbol/elf/elf_handle.h"

namespace pkprof {

// Nothing where there is none, or where it is damaged or unpacks to more than it may.
[[nodiscard]] std::optional<ElfHandle> open_mini_debug(const ElfHandle& elf);

}  // namespace pkprof
