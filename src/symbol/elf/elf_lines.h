// SPDX-License-Identifier: Apache-2.0
// Source files and lines, and calls that the compiler inlined, from DWARF, through libdw.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "symbol/elf/elf_handle.h"

namespace pkprof {

struct SourceLine {
  std::string file;
  uint32_t line = 0;
};

// A function whose code is at an address, and the place in it where that code, or the inlined call
// that leads there, is.
struct InlinedCall {
  std::string function;  // demangled
  SourceLine at;
};

class ElfLines {
 public:
  // Takes the file that has .debug_line; nullptr when it has none, or one too large to unpack.
  static std::unique_ptr<ElfLines> open(ElfHandle elf);
  ~ElfLines();

  // Empty when not known. Valid until the next call.
  const SourceLine& find(uint64_t vaddr);
  // The inlined functions there, the innermost first, and last the function of its own that they
  // are in; nothing where none is inlined. Valid until the next call.
  const std::vector<InlinedCall>& inlined_at(uint64_t vaddr);
  [[nodiscard]] uint64_t memory() const;  // of the sections that it is read from

 private:
  struct Impl;
  explicit ElfLines(std::unique_ptr<Impl> impl);
  SourceLine lookup(uint64_t vaddr);
  std::vector<InlinedCall> look_up_inlined(uint64_t vaddr);

  std::unique_ptr<Impl> impl_;
};

}  // namespace pkprof
