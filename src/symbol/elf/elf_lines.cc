// SPDX-License-Identifier: Apache-2.0
// Which unit covers an address is asked of the units themselves: .debug_aranges is optional, and
// some compilers leave it out. libdw decodes a unit's line table when it is first needed and keeps
// it; sections may be compressed, so what they claim to unpack to is limited first.
#include "symbol/elf/elf_lines.h"

#include <dwarf.h>
#include <elfutils/libdw.h>

#include <algorithm>
#include <vector>

#include "symbol/elf/demangle.h"
#include "symbol/elf/ranges.h"

namespace pkprof {
namespace {

constexpr uint64_t max_unpacked = uint64_t{1} << 30;
constexpr size_t max_remembered = 1 << 18;
constexpr size_t max_ranges = 1 << 22;
constexpr int max_nesting = 64;           // of namespaces, and of blocks in a function
constexpr size_t max_children = 1 << 20;  // of one block

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

// For each of a unit's, or a block's, parts; `see` says whether to go on.
template <typename See>
void each_child(Dwarf_Die* parent, const See& see) {
  Dwarf_Die die;
  size_t seen = 0;
  for (int r = dwarf_child(parent, &die); r == 0 && ++seen < max_children;
       r = dwarf_siblingof(&die, &die))
    if (!see(die)) return;
}

std::string name_of(Dwarf_Die* die) {
  Dwarf_Attribute attribute;
  for (const unsigned name : {DW_AT_linkage_name, DW_AT_name})
    if (dwarf_attr_integrate(die, name, &attribute) != nullptr)
      if (const char* text = dwarf_formstring(&attribute)) return demangle(text);
  return "";
}

// Where an inlined call is, in the function that it was inlined into.
SourceLine call_of(Dwarf_Die* unit, Dwarf_Die* call) {
  SourceLine line;
  Dwarf_Attribute attribute;
  Dwarf_Word number = 0;
  Dwarf_Word file = 0;
  Dwarf_Files* files = nullptr;
  if (dwarf_attr(call, DW_AT_call_line, &attribute) != nullptr &&
      dwarf_formudata(&attribute, &number) == 0)
    line.line = static_cast<uint32_t>(number);
  if (dwarf_attr(call, DW_AT_call_file, &attribute) != nullptr &&
      dwarf_formudata(&attribute, &file) == 0 && dwarf_getsrcfiles(unit, &files, nullptr) == 0)
    if (const char* name = dwarf_filesrc(files, file, nullptr, nullptr)) line.file = name;
  return line;
}

// The inlined calls that lead to an address, the outermost first.
void descend(Dwarf_Die* parent, uint64_t vaddr, int depth, std::vector<Dwarf_Die>& calls) {
  if (depth > max_nesting) return;
  each_child(parent, [&](Dwarf_Die& die) {
    const int tag = dwarf_tag(&die);
    const bool inlined = tag == DW_TAG_inlined_subroutine;
    if ((!inlined && tag != DW_TAG_lexical_block) || dwarf_haspc(&die, vaddr) != 1) return true;
    if (inlined) calls.push_back(die);
    descend(&die, vaddr, depth + 1, calls);
    return false;
  });
}

}  // namespace

struct ElfLines::Impl {
  struct EndDwarf {
    void operator()(Dwarf* dwarf) const { dwarf_end(dwarf); }
  };

  explicit Impl(ElfHandle handle) : elf(std::move(handle)) {}

  void index_units();
  const FlatRange* unit_of(uint64_t vaddr);
  void find_functions(Dwarf_Die* parent, int depth, std::vector<PriorityRange>& found);

  ElfHandle elf;
  uint64_t memory = 0;
  std::unique_ptr<Dwarf, EndDwarf> dwarf;
  std::vector<Dwarf_Off> units;
  std::vector<FlatRange> ranges;  // id is an index of units
  bool indexed = false;
  std::unordered_map<uint64_t, SourceLine> remembered;
  // Of units that were asked: their functions of their own, by address; an id is one of functions.
  std::unordered_map<uint32_t, std::vector<FlatRange>> functions_of_unit;
  std::vector<Dwarf_Off> functions;
  std::unordered_map<uint64_t, std::vector<InlinedCall>> inlined;
};

const FlatRange* ElfLines::Impl::unit_of(uint64_t vaddr) {
  if (!indexed) index_units();
  return find_range(ranges, vaddr);
}

void ElfLines::Impl::find_functions(Dwarf_Die* parent, int depth,
                                    std::vector<PriorityRange>& found) {
  if (depth > max_nesting) return;
  each_child(parent, [&](Dwarf_Die& die) {
    switch (dwarf_tag(&die)) {
      case DW_TAG_namespace:
      case DW_TAG_module:
      case DW_TAG_class_type:
      case DW_TAG_structure_type:
        find_functions(&die, depth + 1, found);
        break;
      case DW_TAG_subprogram: {
        Dwarf_Addr base = 0;
        Dwarf_Addr start = 0;
        Dwarf_Addr end = 0;
        const auto id = static_cast<uint32_t>(functions.size());
        for (ptrdiff_t it = 0; (it = dwarf_ranges(&die, it, &base, &start, &end)) > 0;)
          if (start < end) found.push_back({start, end, id, id});
        if (!found.empty() && found.back().id == id) functions.push_back(dwarf_dieoffset(&die));
        break;
      }
      default:
        break;
    }
    return found.size() < max_ranges && functions.size() < max_ranges;
  });
}

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
  const FlatRange* range = impl_->unit_of(vaddr);
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

std::vector<InlinedCall> ElfLines::look_up_inlined(uint64_t vaddr) {
  const FlatRange* range = impl_->unit_of(vaddr);
  Dwarf_Die unit;
  if (range == nullptr ||
      dwarf_offdie(impl_->dwarf.get(), impl_->units[range->id], &unit) == nullptr)
    return {};
  const auto [known, fresh] = impl_->functions_of_unit.try_emplace(range->id);
  if (fresh) {
    std::vector<PriorityRange> found;
    impl_->find_functions(&unit, 0, found);
    known->second = flatten(found);
  }
  const FlatRange* in = find_range(known->second, vaddr);
  Dwarf_Die function;
  if (in == nullptr ||
      dwarf_offdie(impl_->dwarf.get(), impl_->functions[in->id], &function) == nullptr)
    return {};
  std::vector<Dwarf_Die> calls;
  descend(&function, vaddr, 0, calls);
  if (calls.empty()) return {};
  std::vector<InlinedCall> inlined;
  SourceLine at = find(vaddr);
  for (auto call = calls.rbegin(); call != calls.rend(); ++call) {
    inlined.push_back({name_of(&*call), std::move(at)});
    at = call_of(&unit, &*call);
  }
  inlined.push_back({name_of(&function), std::move(at)});
  return inlined;
}

const std::vector<InlinedCall>& ElfLines::inlined_at(uint64_t vaddr) {
  auto& known = impl_->inlined;
  if (const auto it = known.find(vaddr); it != known.end()) return it->second;
  if (known.size() >= max_remembered) known.clear();
  return known.emplace(vaddr, look_up_inlined(vaddr)).first->second;
}

}  // namespace pkprof
