// SPDX-License-Identifier: Apache-2.0
// The functions of one ELF file, or its data, by address: what is kept of its symbol tables.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "symbol/elf/elf_handle.h"
#include "symbol/elf/file_code.h"
#include "symbol/elf/ranges.h"

namespace pkprof {

// Disjoint ranges of addresses with the offset of their (mangled) name in one buffer. The files
// that these came from are not needed any more.
class ElfFunctions {
 public:
  struct Found {
    std::string_view name;  // mangled; valid as long as the table
    uint32_t id = 0;        // the same for the same function
  };

  [[nodiscard]] bool find(uint64_t vaddr, Found& found) const;
  // All of it, by address.
  [[nodiscard]] const std::vector<FlatRange>& ranges() const { return ranges_; }
  [[nodiscard]] std::string_view name(const FlatRange& range) const {
    return names_.data() + range.id;
  }
  [[nodiscard]] size_t size() const { return ranges_.size(); }
  [[nodiscard]] uint64_t memory() const {
    return names_.capacity() + ranges_.capacity() * sizeof(FlatRange);
  }

 private:
  friend class ElfFunctionsBuilder;
  std::vector<char> names_;        // ended by NULs
  std::vector<FlatRange> ranges_;  // id is the name's offset
};

// Collects symbols from one or two files (a program and its separate debug file), then chooses
// among those at one address. The handles must live until build().
class ElfFunctionsBuilder {
 public:
  // What one table may have. Beyond it the table is not read and the call returns false.
  static constexpr uint64_t max_symbol_bytes = uint64_t{192} << 20;
  static constexpr uint64_t max_string_bytes = uint64_t{512} << 20;
  static constexpr size_t max_name = 4096;  // longer names are cut

  enum class Kind : uint8_t { functions, data };
  explicit ElfFunctionsBuilder(Kind kind = Kind::functions) : kind_(kind) {}

  // Adds .symtab, .dynsym, for x86-64 the names of PLT entries and, where there is no .symtab, Go's
  // own table; of data the symbols that state their size.
  bool add(const ElfHandle& elf);
  // Every symbol, as nm prints it; before build().
  [[nodiscard]] std::vector<FileCode::Function> every_name();
  [[nodiscard]] ElfFunctions build();

 private:
  struct Candidate {
    uint64_t start = 0;
    uint64_t end = 0;  // for symbols without a size the end of their section
    std::string_view name;
    uint8_t rank = 0;  // smaller is better among those at one address
    bool sized = false;
    bool plt = false;
  };

  [[nodiscard]] uint64_t end_of(size_t candidate, size_t next) const;
  bool add_table(const ElfHandle& elf, const ElfSection& table);
  void add_symbol(const ElfHandle& elf, const GElf_Sym& symbol, const Elf_Data* strings);
  void add_plt(const ElfHandle& elf);  // elf_plt.cc
  void add_go(const ElfHandle& elf);   // elf_go.cc
  void sort_candidates();

  Kind kind_;
  std::vector<Candidate> candidates_;
};

}  // namespace pkprof
