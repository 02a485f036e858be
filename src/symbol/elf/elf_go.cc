// SPDX-License-Identifier: Apache-2.0
// Names for Go's functions from the table that its runtime prints stack traces by, .gopclntab: a
// stripped program has it, too.
//
// The table begins with a magic number, which is the layout's version, two zeros, the instructions'
// alignment and the size of a pointer. Numbers of that size follow: how many functions there are
// and where the parts of the table are. A function's entry is its address and where its record is;
// the record has the address again and where its name is. Since Go 1.18 addresses are 32-bit
// offsets from a "text start". (src/internal/abi/symtab.go, src/debug/gosym/pclntab.go)
#include <elf.h>

#include <algorithm>
#include <cstring>
#include <iterator>

#include "symbol/elf/elf_symbols.h"

namespace pkprof {
namespace {

constexpr uint64_t max_functions = uint64_t{1} << 20;
constexpr uint64_t max_table = uint64_t{256} << 20;
constexpr uint64_t no_field = UINT64_MAX;

// Where a version has its fields, in pointers from the end of the eight bytes at the beginning.
struct Layout {
  uint32_t magic;
  uint64_t text_start;
  uint64_t names;      // no_field: names and records count from the table's beginning
  uint64_t functions;  // no_field: they follow their number; records count from there otherwise
};
constexpr Layout layouts[] = {
    {0xfffffffb, no_field, no_field, no_field},  // Go 1.2
    {0xfffffffa, no_field, 2, 6},                // Go 1.16
    {0xfffffff0, 2, 3, 7},                       // Go 1.18
    {0xfffffff1, 2, 3, 7},                       // Go 1.20
};

// A table in a section, of which nothing is believed: a number that is not inside is 0.
class Table {
 public:
  Table() = default;
  Table(const ElfSection& section, const Elf_Data* data, uint64_t begin)
      : data_(data), begin_(begin), address_(section.header.sh_addr + begin) {
    layout_ = std::ranges::find(layouts, number(0, 4), &Layout::magic);
    const uint64_t alignment = number(6, 1);
    const bool is_one = layout_ != std::end(layouts) && number(4, 2) == 0 &&
                        (pointer() == 4 || pointer() == 8) &&
                        (alignment == 1 || alignment == 2 || alignment == 4);
    if (!is_one) layout_ = nullptr;
  }

  [[nodiscard]] bool is_there() const { return layout_ != nullptr; }
  [[nodiscard]] const Layout& layout() const { return *layout_; }
  [[nodiscard]] uint64_t pointer() const { return number(7, 1); }
  [[nodiscard]] uint64_t address() const { return address_; }
  [[nodiscard]] uint64_t size() const { return data_->d_size - begin_; }
  [[nodiscard]] uint64_t number(uint64_t at, uint64_t bytes) const {
    uint64_t value = 0;
    if (at > size() || bytes > size() - at) return 0;
    std::memcpy(&value, static_cast<const char*>(data_->d_buf) + begin_ + at, bytes);
    return value;
  }
  [[nodiscard]] std::string_view text(uint64_t at) const {
    return at > size() ? "" : string_at(data_, begin_ + at, ElfFunctionsBuilder::max_name);
  }

 private:
  const Elf_Data* data_ = nullptr;
  uint64_t begin_ = 0;
  uint64_t address_ = 0;
  const Layout* layout_ = nullptr;
};

// It has a section, unless another linker than Go's has put it among others' data.
Table find_table(const ElfHandle& elf) {
  for (const char* name : {".gopclntab", ".data.rel.ro.gopclntab", ".data.rel.ro"}) {
    const ElfSection* section = elf.section(name);
    const Elf_Data* data = section == nullptr ? nullptr : elf.data(*section, max_table);
    for (uint64_t at = 0; data != nullptr && at + 8 <= data->d_size; at += 8)
      if (const Table table(*section, data, at); table.is_there()) return table;
  }
  return {};
}

// In a position-independent program the loader writes a pointer, and a relocation says which one.
uint64_t relocated(const ElfHandle& elf, uint64_t address) {
  constexpr uint64_t max_relocations = uint64_t{256} << 20;
  const ElfSection* section = elf.section(".rela.dyn");
  if (section == nullptr) section = elf.section(".rela");
  Elf_Data* data = section == nullptr ? nullptr : elf.data(*section, max_relocations);
  GElf_Rela rela;
  for (int i = 0; data != nullptr && gelf_getrela(data, i, &rela) != nullptr; ++i)
    if (rela.r_offset == address) return static_cast<uint64_t>(rela.r_addend);
  return 0;
}

}  // namespace

void ElfFunctionsBuilder::add_go(const ElfHandle& elf) {
  const Table table = find_table(elf);
  if (!table.is_there()) return;
  const Layout& layout = table.layout();
  const auto place = [&](uint64_t field) { return 8 + field * table.pointer(); };
  const auto number = [&](uint64_t field) { return table.number(place(field), table.pointer()); };

  const bool is_old = layout.functions == no_field;
  const uint64_t functions = is_old ? place(1) : number(layout.functions);
  const uint64_t records = is_old ? 0 : functions;
  const uint64_t names = is_old ? 0 : number(layout.names);
  const bool has_offsets = layout.text_start != no_field;
  uint64_t text_start = has_offsets ? number(layout.text_start) : 0;
  if (has_offsets && text_start == 0) {
    text_start = relocated(elf, table.address() + place(layout.text_start));
    if (text_start == 0) return;
  }
  const uint64_t size = has_offsets || table.pointer() == 4 ? 4 : 8;
  const uint64_t count = std::min({number(0), max_functions, table.size() / (2 * size)});
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t entry = functions + i * 2 * size;
    const uint64_t start = text_start + table.number(entry, size);
    const uint64_t end = text_start + table.number(entry + 2 * size, size);
    const uint64_t record = records + table.number(entry + size, size);
    const std::string_view name = table.text(names + table.number(record + size, 4));
    if (start < end && !name.empty()) candidates_.push_back({start, end, name, 0, true, false});
  }
}

}  // namespace pkprof
