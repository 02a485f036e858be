// SPDX-License-Identifier: Apache-2.0
// What the call frame information of an ELF file says of its functions: where each begins and ends,
// and how its frame is left, from each of its addresses.
//
// libdw takes the entries apart; what they say is followed here, once through each: a walk by
// dwarf_cfi_addrframe() would begin each function anew for each of its rows. What the kernel side
// needs is little: where the CFA is and where the frame pointer was saved.
#pragma once

#include <cstdint>
#include <vector>

#include "symbol/elf/elf_handle.h"

namespace pkprof {

struct CfiRow {
  uint64_t address = 0;  // the linker's, up to the next row's
  uint32_t rule = 0;     // PK_RULE()
};

// [start, end), the linker's addresses.
struct CfiFunction {
  uint64_t start = 0;
  uint64_t end = 0;
};

// Of .eh_frame and .debug_frame together; where they contradict, the former is believed. Damaged
// entries are left out, and what comes after one whose length is damaged. By address; functions do
// not overlap; two rows that follow have different rules. At most so many.
[[nodiscard]] std::vector<CfiRow> read_cfi_rows(const ElfHandle& elf, size_t most);
[[nodiscard]] std::vector<CfiFunction> read_cfi_functions(const ElfHandle& elf, size_t most);

}  // namespace pkprof
