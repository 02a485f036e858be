// SPDX-License-Identifier: Apache-2.0
// Which unit covers an address is asked of the units themselves: .debug_aranges is optional, and
// some compilers leave it out. libdw decodes a unit's line table when it is first needed and keeps
// it; sections may be compressed, so what they claim to unpack to is limited first.
#include "symbol/elf_lines.h"

#include <dwarf.h>
#include <elfutils/libdw.h>

#include <vector>

#include "symbol/ranges.h"

namespace pkprof {
namespace {

constexpr uint64_t max_unpacked = uint64_t{1} << 30;
constexpr size_t max_remembered = 1 << 18;
constexpr size_t max_ranges = 1 << 22;

// .zdebug_ sections, from before compression was standard, are not supported.
bool is_debug(const ElfSection& section) {
  return section.name.starts_with(".debug_");
}

// What the debug sections claim to unpack to; UINT64_MAX when that cannot be told.
uint64_t unpacked_size(const ElfHandle& elf) {
  uint64_t total = 0;
  for (const ElfSection& s : elf.sections()) {
    if (!is_debug(s)) continue;
    GElf_Chdr compressed;
    uint64_t size = s.header.sh_size;
    if ((s.header.sh_flags & SHF_COMPRESSED) != 0) {
      if (gelf_getchdr(s.scn, &compressed) == nullptr) return UINT64_MAX;
      size = compressed.ch_size;
    }
    if (size > max_unpacked) return UINT64_MAX;
    total += size;
  }
  return total;
}

// libdw (0.188) takes strings out of these sections without looking for their end, so the last one
// must have one. Unpacking them here is what libdw would do next.
bool strings_end(const ElfHandle& elf) {
  for (const ElfSection& s : elf.sections()) {
    if (s.name != ".debug_str" && s.name != ".debug_line_str") continue;
    if (s.header.sh_type == SHT_NOBITS) continue;
    if ((s.header.sh_flags & SHF_COMPRESSED) != 0 && elf_compress(s.scn, 0, 0) < 0) return false;
    const Elf_Data* data = elf_getdata(s.scn, nullptr);
    if (data == nullptr || data->d_buf == nullptr || data->d_size == 0) continue;
    if (static_cast<const char*>(data->d_buf)[data->d_size - 1] != '\0') return false;
  }
  return true;
}

}  // namespace

struct ElfLines::Impl {
  struct EndDwarf {
    void operator()(Dwarf* dwarf) const { dwarf_end(dwarf); }
  };

  explicit Impl(ElfHandle handle) : elf(std::move(handle)) {}

  void index_units();

  ElfHandle elf;
  uint64_t memory = 0;
  std::unique_ptr<Dwarf, EndDwarf> dwarf;
  std::vector<Dwarf_Off> units;
  std::vector<FlatRange> ranges;  // id is an index of units
  bool indexed = false;
  std::unordered_map<uint64_t, SourceLine> remembered;
};

void ElfLines::Impl::index_units() {
  indexed = true;
  std::vector<PriorityRange> found;
  Dwarf_Off at = 0;
  Dwarf_Off next = 0;
  size_t header_size = 0;
  while (found.size() < max_ranges &&
         dwarf_nextcu(dwarf.get(), at, &next, &header_size, nullptr, nullptr, nullptr) == 0) {
    Dwarf_Die unit;
    if (dwarf_offdie(dwarf.get(), at + header_size, &unit) != nullptr) {
      units.push_back(at + header_size);
      Dwarf_Addr base = 0;
      Dwarf_Addr start = 0;
      Dwarf_Addr end = 0;
      for (ptrdiff_t it = 0;
           found.size() < max_ranges && (it = dwarf_ranges(&unit, it, &base, &start, &end)) > 0;) {
        const auto id = static_cast<uint32_t>(units.size() - 1);
        if (start < end) found.push_back({start, end, id, id});
      }
    }
    if (next <= at) break;
    at = next;
  }
  ranges = flatten(found);
}

ElfLines::ElfLines(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ElfLines::~ElfLines() = default;

std::unique_ptr<ElfLines> ElfLines::open(ElfHandle elf) {
  const uint64_t size = unpacked_size(elf);
  if (elf.section(".debug_line") == nullptr || size > max_unpacked || !strings_end(elf))
    return nullptr;
  auto impl = std::make_unique<Impl>(std::move(elf));
  impl->memory = size;
  impl->dwarf.reset(dwarf_begin_elf(impl->elf.elf(), DWARF_C_READ, nullptr));
  if (impl->dwarf == nullptr) return nullptr;
  // libdw would open a file of whatever name is in .gnu_debugaltlink, a FIFO too. With the file
  // itself in its place strings that are there are wrong: at most a directory's name.
  dwarf_setalt(impl->dwarf.get(), impl->dwarf.get());
  return std::unique_ptr<ElfLines>(new ElfLines(std::move(impl)));
}

uint64_t ElfLines::memory() const {
  return impl_->memory;
}

SourceLine ElfLines::lookup(uint64_t vaddr) {
  if (!impl_->indexed) impl_->index_units();
  const FlatRange* range = find_range(impl_->ranges, vaddr);
  if (range == nullptr) return {};
  Dwarf_Die unit;
  if (dwarf_offdie(impl_->dwarf.get(), impl_->units[range->id], &unit) == nullptr) return {};
  Dwarf_Line* line = dwarf_getsrc_die(&unit, vaddr);
  int number = 0;
  if (line == nullptr || dwarf_lineno(line, &number) != 0) return {};
  const char* file = dwarf_linesrc(line, nullptr, nullptr);
  if (file == nullptr) return {};
  return {file, static_cast<uint32_t>(std::max(number, 0))};
}

const SourceLine& ElfLines::find(uint64_t vaddr) {
  auto& remembered = impl_->remembered;
  const auto known = remembered.find(vaddr);
  if (known != remembered.end()) return known->second;
  if (remembered.size() >= max_remembered) remembered.clear();
  return remembered.emplace(vaddr, lookup(vaddr)).first->second;
}

}  // namespace pkprof
