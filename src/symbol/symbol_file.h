// SPDX-License-Identifier: Apache-2.0
// An ELF file that is nothing but names of addresses: for tools, such as gprof, that read names
// from a program's file and nowhere else.
//
// It has one section of code, .text, that takes no room in the file, and a symbol table in which
// every name is that of a global function: gprof passes over local ones whose names have dots, as
// the compiler's own labels have. What is to be known beside the names is in a section that such
// tools do not look at.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "symbol/elf/file_code.h"

namespace pkprof {

struct SymbolFile {
  struct Symbol {
    std::string name;  // up to its first NUL
    uint64_t address = 0;
    uint64_t size = 0;
  };
  uint64_t text_start = 0;
  uint64_t text_size = 0;
  std::vector<Symbol> symbols;  // within the text
  std::string about;            // any text; section .pkprof, left out when empty
};

// The file's bytes. Of this machine's kind of ELF, whatever was profiled: that is what its tools
// read.
[[nodiscard]] Result<std::string> encode_symbol_file(const SymbolFile& file);

// The functions of an ELF file, of any program or of those written here, demangled and by address;
// and of these what it is about ("" of a program). The sentence of a failure names `path`.
struct NamedCode {
  std::vector<FileCode::Function> functions;
  std::string about;
};
[[nodiscard]] Result<NamedCode> read_symbol_file(const std::string& path);

}  // namespace pkprof
