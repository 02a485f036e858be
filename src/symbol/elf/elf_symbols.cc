// SPDX-License-Identifier: Apache-2.0
// From symbol tables to disjoint ranges.
//
// Only functions count: FUNC and IFUNC symbols, and untyped ones in executable sections (assembly
// that does not say what it is). At one address the best name wins: a function over an untyped
// label, global over local, then the name with fewer leading underscores (`write`, not `__write`),
// then global over weak. A symbol without a size reaches to the next symbol or the end of its
// section, and gives way to every symbol that states its size. Of two that overlap, the one that
// begins later is the inner one and wins.
#include "symbol/elf/elf_symbols.h"

#include <algorithm>
#include <cstring>
#include <tuple>

namespace pkprof {
namespace {

constexpr uint64_t max_names = uint64_t{512} << 20;

const GElf_Shdr* section_at(const ElfHandle& elf, uint16_t index) {
  const auto& sections = elf.sections();  // without the null section: number 1 comes first
  if (index == 0 || index > sections.size()) return nullptr;
  return &sections[index - 1].header;
}

uint8_t rank_of(int type, int bind, std::string_view name, bool sized) {
  int underscores = 0;
  while (underscores < 3 && static_cast<size_t>(underscores) < name.size() &&
         name[static_cast<size_t>(underscores)] == '_') {
    ++underscores;
  }
  // A mangled name's underscore says nothing.
  if (name.starts_with("_Z") || name.starts_with("_R")) underscores = 0;
  int rank = bind == STB_WEAK ? 1 : 0;
  rank += underscores * 2;
  if (bind == STB_LOCAL) rank += 16;
  if (!sized) rank += 32;
  if (type == STT_NOTYPE) rank += 64;
  return static_cast<uint8_t>(rank);
}

// Labels of the assembler and mapping symbols ($x, $d, $t) mark places in functions.
bool is_label(std::string_view name) {
  return name.empty() || name[0] == '$' || name.starts_with(".L");
}

}  // namespace

bool ElfFunctions::find(uint64_t vaddr, Found& found) const {
  const FlatRange* range = find_range(ranges_, vaddr);
  if (range == nullptr) return false;
  found = {std::string_view(names_.data() + range->id), range->id};
  return true;
}

bool ElfFunctionsBuilder::add(const ElfHandle& elf) {
  bool complete = true;
  for (const uint32_t type : {SHT_SYMTAB, SHT_DYNSYM}) {
    if (const ElfSection* table = elf.section_of_type(type)) {
      complete = add_table(elf, *table) && complete;
    }
  }
  if (kind_ == Kind::data) return complete;
  add_plt(elf);
  if (elf.section_of_type(SHT_SYMTAB) == nullptr) add_go(elf);
  return complete;
}

bool ElfFunctionsBuilder::add_table(const ElfHandle& elf, const ElfSection& table) {
  if (table.header.sh_size > max_symbol_bytes) return false;
  Elf_Scn* strings_scn = elf_getscn(elf.elf(), table.header.sh_link);
  GElf_Shdr strings_header;
  if (strings_scn == nullptr || gelf_getshdr(strings_scn, &strings_header) == nullptr) return true;
  if (strings_header.sh_size > max_string_bytes) return false;
  const Elf_Data* strings = elf.data({strings_scn, {}, strings_header}, max_string_bytes);
  Elf_Data* symbols = elf.data(table, max_symbol_bytes);
  if (strings == nullptr || symbols == nullptr) return true;
  const size_t entry = gelf_fsize(elf.elf(), ELF_T_SYM, 1, EV_CURRENT);
  const size_t count = entry == 0 ? 0 : symbols->d_size / entry;
  for (size_t i = 1; i < count; ++i) {
    GElf_Sym symbol;
    if (gelf_getsym(symbols, static_cast<int>(i), &symbol) == nullptr) break;
    add_symbol(elf, symbol, strings);
  }
  return true;
}

void ElfFunctionsBuilder::add_symbol(const ElfHandle& elf, const GElf_Sym& symbol,
                                     const Elf_Data* strings) {
  const int type = GELF_ST_TYPE(symbol.st_info);
  const bool is_data = type == STT_OBJECT || type == STT_COMMON;
  if (kind_ == Kind::data ? !is_data
                          : type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE)
    return;
  if (symbol.st_shndx == SHN_UNDEF || symbol.st_value == 0) return;
  const GElf_Shdr* section = section_at(elf, symbol.st_shndx);
  const bool executable = section != nullptr && (section->sh_flags & SHF_EXECINSTR) != 0;
  if (type == STT_NOTYPE && !executable) return;

  std::string_view name = string_at(strings, symbol.st_name, max_name);
  if (is_label(name)) return;
  if (const size_t version = name.find('@', 1); version != std::string_view::npos) {
    name = name.substr(0, version);  // "memcpy@@GLIBC_2.14"
  }
  uint64_t start = symbol.st_value;
  if (elf.machine() == EM_ARM && type == STT_FUNC) start &= ~uint64_t{1};  // Thumb
  const bool sized = symbol.st_size != 0;
  uint64_t end = start + symbol.st_size;
  if (!sized && executable) end = section->sh_addr + section->sh_size;
  if (end <= start) return;
  const uint8_t rank = rank_of(type, GELF_ST_BIND(symbol.st_info), name, sized);
  candidates_.push_back({start, end, name, rank, sized, false});
}

// By address, the best first; the order of the tables decides the rest.
void ElfFunctionsBuilder::sort_candidates() {
  std::stable_sort(candidates_.begin(), candidates_.end(),
                   [](const Candidate& a, const Candidate& b) {
                     return std::tie(a.start, a.rank) < std::tie(b.start, b.rank);
                   });
}

// One without a size ends where the next one begins, which is at another address.
uint64_t ElfFunctionsBuilder::end_of(size_t candidate, size_t next) const {
  const Candidate& c = candidates_[candidate];
  return c.sized || next == candidates_.size() ? c.end : std::min(c.end, candidates_[next].start);
}

std::vector<FileCode::Function> ElfFunctionsBuilder::every_name() {
  sort_candidates();
  std::vector<FileCode::Function> names;
  names.reserve(candidates_.size());
  size_t next = 0;
  for (size_t i = 0; i < candidates_.size(); ++i) {
    const Candidate& c = candidates_[i];
    while (next < candidates_.size() && candidates_[next].start == c.start) ++next;
    if (!c.plt) names.push_back({c.start, end_of(i, next), std::string(c.name)});
  }
  return names;
}

ElfFunctions ElfFunctionsBuilder::build() {
  sort_candidates();
  ElfFunctions table;
  std::vector<PriorityRange> ranges;
  ranges.reserve(candidates_.size());
  constexpr uint64_t sized_first = uint64_t{1} << 32;
  for (size_t i = 0; i < candidates_.size();) {
    const Candidate& best = candidates_[i];
    size_t next = i + 1;
    while (next < candidates_.size() && candidates_[next].start == best.start) ++next;
    const uint64_t end = end_of(i, next);
    if (table.names_.size() + best.name.size() > max_names) break;
    const auto id = static_cast<uint32_t>(table.names_.size());
    table.names_.insert(table.names_.end(), best.name.begin(), best.name.end());
    if (best.plt) {
      constexpr std::string_view suffix = "@plt";
      table.names_.insert(table.names_.end(), suffix.begin(), suffix.end());
    }
    table.names_.push_back('\0');
    ranges.push_back({best.start, end, (best.sized ? sized_first : 0) + i, id});
    i = next;
  }
  table.names_.shrink_to_fit();
  table.ranges_ = flatten(ranges);
  table.ranges_.shrink_to_fit();
  candidates_.clear();
  return table;
}

}  // namespace pkprof
