// SPDX-License-Identifier: Apache-2.0
// A section .eh_frame of a file that anybody made, and a stack that is walked by it. Whatever they
// say, rows are in order, a table fits where it is laid out, and a walk ends.
#include <elf.h>
#include <sys/auxv.h>

#include <cstdlib>
#include <cstring>
#include <optional>

#include "fuzz.h"
#include "symbol/elf/elf_handle.h"
#include "unwind/stack_walk.h"
#include "unwind/unwind_table.h"

namespace {

using namespace pkprof;

constexpr uint64_t code_at = 0x1000;
constexpr uint64_t code_bytes = 1 << 20;

void require(bool condition) {
  if (!condition) std::abort();
}

template <typename T>
void append(std::string& to, const T& what) {
  to.append(reinterpret_cast<const char*>(&what), sizeof what);
}

// A file with this section and code that takes all of a segment.
std::string file_with(std::string_view eh_frame) {
  const std::string names("\0.eh_frame\0.shstrtab\0", 21);
  constexpr uint64_t sections_at = sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr);
  constexpr uint64_t data_at = sections_at + 3 * sizeof(Elf64_Shdr);
  Elf64_Ehdr head = {};
  std::memcpy(head.e_ident, ELFMAG, SELFMAG);
  head.e_ident[EI_CLASS] = ELFCLASS64;
  head.e_ident[EI_DATA] = ELFDATA2LSB;
  head.e_ident[EI_VERSION] = head.e_version = EV_CURRENT;
  head.e_type = ET_DYN;
  head.e_machine = EM_X86_64;
  head.e_phoff = sizeof(Elf64_Ehdr);
  head.e_shoff = sections_at;
  head.e_ehsize = sizeof(Elf64_Ehdr);
  head.e_phentsize = sizeof(Elf64_Phdr);
  head.e_phnum = 1;
  head.e_shentsize = sizeof(Elf64_Shdr);
  head.e_shnum = 3;
  head.e_shstrndx = 2;
  std::string file;
  append(file, head);
  append(file, Elf64_Phdr{PT_LOAD, PF_R | PF_X, code_at, code_at, code_at, code_bytes, code_bytes,
                          0x1000});
  append(file, Elf64_Shdr{});
  append(file,
         Elf64_Shdr{1, SHT_PROGBITS, SHF_ALLOC, 0x800000, data_at, eh_frame.size(), 0, 0, 8, 0});
  append(file,
         Elf64_Shdr{11, SHT_STRTAB, 0, 0, data_at + eh_frame.size(), names.size(), 0, 0, 1, 0});
  return file.append(eh_frame).append(names);
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const auto table = UnwindTable::of_image(file_with(input));
  if (!table) return 0;
  const auto rows = table->rows();
  for (size_t i = 1; i < rows.size(); ++i) require(rows[i - 1].offset < rows[i].offset);
  std::vector<pk_unwind_block> blocks(table->blocks());
  table->lay_out(blocks);

  constexpr size_t most_frames = 120;
  constexpr uint64_t stack_at = 0x7ffd00000000;
  for (const auto& row : rows.first(std::min<size_t>(rows.size(), 16))) {
    std::vector<uint64_t> frames = {row.offset};
    const pk_stack_end end = walk_on(
        {row.offset, stack_at, stack_at + size / 2 / 8 * 8, true, input},
        [&](uint64_t address) { return std::optional(table->rule_at(address % code_bytes)); },
        most_frames, frames);
    require(frames.size() <= most_frames && end > PK_STACK_ASIDE && end < PK_STACK_ENDS);
  }
  return 0;
}

// That of the vdso.
std::vector<std::string> fuzz_seeds() {
  const auto* vdso = reinterpret_cast<const char*>(getauxval(AT_SYSINFO_EHDR));
  if (!vdso) return {std::string(64, '\0')};
  const auto* head = reinterpret_cast<const Elf64_Ehdr*>(vdso);
  auto elf = ElfHandle::from_memory({vdso, head->e_shoff + head->e_shnum * sizeof(Elf64_Shdr)});
  const ElfSection* found = elf ? elf->section(".eh_frame") : nullptr;
  const Elf_Data* bytes = found ? elf->data(*found, 1 << 20) : nullptr;
  if (!bytes) return {std::string(64, '\0')};
  return {{static_cast<const char*>(bytes->d_buf), bytes->d_size}};
}
