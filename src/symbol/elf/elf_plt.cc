// SPDX-License-Identifier: Apache-2.0
// Names for the stubs of the procedure linkage table, "write@plt", on x86-64.
//
// Counting entries would need the layout of every linker (.plt, .plt.sec, .plt.got, with and
// without IBT). Instead each stub's own `jmp *slot(%rip)` is read, and the relocation for that slot
// tells the name.
#include <elf.h>

#include <cstring>
#include <unordered_map>

#include "symbol/elf/elf_symbols.h"

namespace pkprof {
namespace {

constexpr uint64_t max_relocations = uint64_t{32} << 20;
constexpr uint64_t stub_size = 16;

using Slots = std::unordered_map<uint64_t, std::string_view>;

// Slots of the GOT that a relocation fills with the address of a named symbol.
void add_slots(const ElfHandle& elf, const ElfSection& relocations, const Elf_Data* symbols,
               const Elf_Data* strings, Slots& slots) {
  Elf_Data* data = elf.data(relocations, max_relocations);
  if (data == nullptr) return;
  const size_t count = data->d_size / sizeof(Elf64_Rela);
  for (size_t i = 0; i < count; ++i) {
    GElf_Rela rela;
    if (gelf_getrela(data, static_cast<int>(i), &rela) == nullptr) return;
    const auto type = GELF_R_TYPE(rela.r_info);
    if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT) continue;
    GElf_Sym symbol;
    if (gelf_getsym(const_cast<Elf_Data*>(symbols), static_cast<int>(GELF_R_SYM(rela.r_info)),
                    &symbol) == nullptr) {
      continue;
    }
    const std::string_view name = string_at(strings, symbol.st_name, ElfFunctionsBuilder::max_name);
    if (!name.empty()) slots.emplace(rela.r_offset, name);
  }
}

// The slot that a stub at `address` jumps through; 0 when it does not.
uint64_t slot_of(const unsigned char* stub, size_t size, uint64_t address) {
  for (size_t i = 0; i + 6 <= size; ++i) {
    if (stub[i] != 0xff || stub[i + 1] != 0x25) continue;
    int32_t displacement;
    std::memcpy(&displacement, stub + i + 2, sizeof displacement);
    return address + i + 6 + static_cast<uint64_t>(static_cast<int64_t>(displacement));
  }
  return 0;
}

}  // namespace

void ElfFunctionsBuilder::add_plt(const ElfHandle& elf) {
  if (elf.machine() != EM_X86_64 || gelf_getclass(elf.elf()) != ELFCLASS64) return;
  const ElfSection* table = elf.section_of_type(SHT_DYNSYM);
  if (table == nullptr) return;
  Elf_Scn* strings_scn = elf_getscn(elf.elf(), table->header.sh_link);
  GElf_Shdr strings_header;
  if (strings_scn == nullptr || gelf_getshdr(strings_scn, &strings_header) == nullptr) return;
  const Elf_Data* strings = elf.data({strings_scn, {}, strings_header}, max_string_bytes);
  const Elf_Data* symbols = elf.data(*table, max_symbol_bytes);
  if (strings == nullptr || symbols == nullptr) return;

  Slots slots;
  for (const char* name : {".rela.plt", ".rela.dyn"}) {
    if (const ElfSection* s = elf.section(name)) add_slots(elf, *s, symbols, strings, slots);
  }
  for (const char* name : {".plt", ".plt.sec", ".plt.got"}) {
    const ElfSection* section = elf.section(name);
    const Elf_Data* code = section == nullptr ? nullptr : elf.data(*section, max_relocations);
    if (code == nullptr) continue;
    // Without IBT the stubs of .plt.got are of 8 bytes; the section says so.
    const uint64_t step = section->header.sh_entsize == 8 ? 8 : stub_size;
    for (uint64_t at = 0; at + step <= code->d_size; at += step) {
      const uint64_t address = section->header.sh_addr + at;
      const auto* stub = static_cast<const unsigned char*>(code->d_buf) + at;
      const auto slot = slots.find(slot_of(stub, step, address));
      if (slot == slots.end()) continue;
      candidates_.push_back({address, address + step, slot->second, 0, true, true});
    }
  }
}

}  // namespace pkprof
