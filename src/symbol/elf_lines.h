// SPDX-License-Identifier: Apache-2.0
// Source files and lines, from DWARF, through libdw.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>

#include "symbol/elf_handle.h"

namespace pkprof {

struct SourceLine {
  std::string file;
  uint32_t line = 0;
};

class ElfLines {
 public:
  // Takes the file that has .debug_line; nullptr when it has none, or one too large to unpack.
  static std::unique_ptr<ElfLines> open(ElfHandle elf);
  ~ElfLines();

  // Empty when not known. Valid until the next call.
  const SourceLine& find(uint64_t vaddr);
  [[nodiscard]] uint64_t memory() const;  // of the sections that it is read from

 private:
  struct Impl;
  explicit ElfLines(std::unique_ptr<Impl> impl);
  SourceLine lookup(uint64_t vaddr);

  std::unique_ptr<Impl> impl_;
};

}  // namespace pkprof
