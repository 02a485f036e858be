// SPDX-License-Identifier: Apache-2.0
// The header is looked at before libelf sees it: libelf allocates (and touches) memory for as many
// sections as the header claims and the file could hold, which for a sparse file is unlimited. So
// the extended counts, for more than 65,000 sections or segments, are refused; no program has them.
#include "symbol/elf/elf_handle.h"

#include <elf.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "symbol/elf/file_access.h"

namespace pkprof {
namespace {

constexpr uint64_t max_name_table = uint64_t{16} << 20;
constexpr uint64_t max_note = uint64_t{64} << 10;
constexpr size_t max_build_id = 64;
constexpr size_t max_segments = 256;  // every lookup goes through them

template <typename Ehdr>
Result<> check_counts(const Ehdr& header) {
  if (header.e_shnum == 0 && header.e_shoff != 0) return fail("ELF: too many sections");
  if (header.e_phnum == PN_XNUM) return fail("ELF: too many segments");
  return {};
}

Result<> check_header(const char* bytes, size_t size) {
  if (size < sizeof(Elf32_Ehdr) || std::memcmp(bytes, ELFMAG, SELFMAG) != 0) {
    return fail("not an ELF file");
  }
  constexpr int native = std::endian::native == std::endian::little ? ELFDATA2LSB : ELFDATA2MSB;
  if (bytes[EI_DATA] != native) return fail("ELF: of another byte order");
  if (bytes[EI_CLASS] == ELFCLASS32) {
    Elf32_Ehdr header;
    std::memcpy(&header, bytes, sizeof header);
    return check_counts(header);
  }
  if (bytes[EI_CLASS] != ELFCLASS64 || size < sizeof(Elf64_Ehdr)) return fail("not an ELF file");
  Elf64_Ehdr header;
  std::memcpy(&header, bytes, sizeof header);
  return check_counts(header);
}

// The GNU build-id in a sequence of notes; "" when there is none.
std::string build_id_in(Elf_Data* notes) {
  if (notes == nullptr || notes->d_buf == nullptr) return "";
  GElf_Nhdr note;
  size_t name = 0;
  size_t desc = 0;
  for (size_t at = 0; (at = gelf_getnote(notes, at, &note, &name, &desc)) != 0;) {
    const char* bytes = static_cast<const char*>(notes->d_buf);
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
        std::memcmp(bytes + name, "GNU", 4) == 0 && note.n_descsz > 0 &&
        note.n_descsz <= max_build_id) {
      return to_hex({bytes + desc, note.n_descsz});
    }
  }
  return "";
}

}  // namespace

Result<ElfHandle> ElfHandle::open(Fd fd) {
  Elf64_Ehdr header = {};
  const ssize_t got = ::pread(fd.get(), &header, sizeof header, 0);
  if (got < 0) return fail_errno("read");
  if (auto ok = check_header(reinterpret_cast<const char*>(&header), static_cast<size_t>(got));
      !ok) {
    return std::unexpected(ok.error());
  }
  elf_version(EV_CURRENT);
  ElfHandle handle;
  handle.fd_ = std::move(fd);
  handle.elf_.reset(elf_begin(handle.fd_.get(), ELF_C_READ, nullptr));
  if (auto ok = handle.read_headers(); !ok) return std::unexpected(ok.error());
  return handle;
}

Result<ElfHandle> ElfHandle::from_memory(std::string image) {
  if (auto ok = check_header(image.data(), image.size()); !ok) return std::unexpected(ok.error());
  elf_version(EV_CURRENT);
  ElfHandle handle;
  handle.image_ = std::make_unique<std::string>(std::move(image));
  handle.elf_.reset(elf_memory(handle.image_->data(), handle.image_->size()));
  if (auto ok = handle.read_headers(); !ok) return std::unexpected(ok.error());
  return handle;
}

Result<> ElfHandle::read_headers() {
  GElf_Ehdr header;
  if (elf_ == nullptr || elf_kind(elf()) != ELF_K_ELF || gelf_getehdr(elf(), &header) == nullptr) {
    return fail(std::string("ELF: ") + elf_errmsg(-1));
  }
  machine_ = header.e_machine;
  for (int i = 0; i < header.e_phnum && segments_.size() < max_segments; ++i) {
    GElf_Phdr segment;
    if (gelf_getphdr(elf(), i, &segment) == nullptr) break;
    if (segment.p_type != PT_LOAD) continue;
    segments_.push_back({segment.p_vaddr, segment.p_offset, segment.p_filesz, segment.p_align,
                         (segment.p_flags & PF_X) != 0});
  }
  return read_sections();
}

// Damaged sections are not an error: the segments may still tell something.
Result<> ElfHandle::read_sections() {
  Elf_Scn* scn = nullptr;
  while ((scn = elf_nextscn(elf(), scn)) != nullptr) {
    ElfSection section{scn, {}, {}};
    if (gelf_getshdr(scn, &section.header) == nullptr) break;
    sections_.push_back(section);
  }
  size_t names_index = 0;
  if (elf_getshdrstrndx(elf(), &names_index) != 0) return {};
  Elf_Data* names = nullptr;
  for (const ElfSection& s : sections_) {
    if (elf_ndxscn(s.scn) == names_index) names = data(s, max_name_table);
  }
  for (ElfSection& s : sections_) s.name = string_at(names, s.header.sh_name, 256);
  return {};
}

const ElfSection* ElfHandle::section(std::string_view name) const {
  for (const ElfSection& s : sections_) {
    if (s.name == name && s.header.sh_type != SHT_NOBITS) return &s;
  }
  return nullptr;
}

const ElfSection* ElfHandle::section_of_type(uint32_t type) const {
  for (const ElfSection& s : sections_) {
    if (s.header.sh_type == type) return &s;
  }
  return nullptr;
}

Elf_Data* ElfHandle::data(const ElfSection& section, uint64_t limit) const {
  const GElf_Shdr& header = section.header;
  if (header.sh_type == SHT_NOBITS || header.sh_type == SHT_NULL) return nullptr;
  if ((header.sh_flags & SHF_COMPRESSED) != 0 || header.sh_size > limit) return nullptr;
  Elf_Data* data = elf_getdata(section.scn, nullptr);
  if (data == nullptr || data->d_buf == nullptr || data->d_size == 0) return nullptr;
  return data;
}

// Notes are found by section, or by segment in a file whose sections were stripped.
std::string ElfHandle::build_id() const {
  for (const ElfSection& s : sections_) {
    if (s.header.sh_type != SHT_NOTE) continue;
    if (std::string id = build_id_in(data(s, max_note)); !id.empty()) return id;
  }
  GElf_Ehdr header;
  if (gelf_getehdr(elf(), &header) == nullptr) return "";
  for (int i = 0; i < header.e_phnum; ++i) {
    GElf_Phdr segment;
    if (gelf_getphdr(elf(), i, &segment) == nullptr) break;
    if (segment.p_type != PT_NOTE || segment.p_filesz > max_note) continue;
    const Elf_Type type = segment.p_align == 8 ? ELF_T_NHDR8 : ELF_T_NHDR;
    Elf_Data* notes =
        elf_getdata_rawchunk(elf(), static_cast<int64_t>(segment.p_offset), segment.p_filesz, type);
    if (std::string id = build_id_in(notes); !id.empty()) return id;
  }
  return "";
}

std::string_view string_at(const Elf_Data* table, uint64_t offset, size_t limit) {
  if (table == nullptr || table->d_buf == nullptr || offset >= table->d_size) return {};
  const char* text = static_cast<const char*>(table->d_buf) + offset;
  return {text, strnlen(text, std::min<size_t>(limit, table->d_size - offset))};
}

}  // namespace pkprof
