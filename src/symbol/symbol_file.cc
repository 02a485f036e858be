// SPDX-License-Identifier: Apache-2.0
// See symbol_file.h. libelf writes to a file only, so it gets one in memory.
#include "symbol/symbol_file.h"

#include <elf.h>
#include <gelf.h>
#include <libelf.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <bit>
#include <memory>

#include "base/fd.h"
#include "symbol/elf/elf_file.h"
#include "symbol/elf/elf_handle.h"
#include "symbol/elf/file_access.h"

namespace pkprof {

namespace {

#if defined(__x86_64__)
constexpr uint16_t machine = EM_X86_64;
#elif defined(__aarch64__)
constexpr uint16_t machine = EM_AARCH64;
#else
#error "which ELF machine is this?"
#endif
constexpr uint64_t text_align = 16;
constexpr const char* about_section = ".pkprof";
constexpr uint64_t max_about = uint64_t{256} << 20;

// A string table while it grows; the first string is "".
struct Strings {
  std::string bytes = std::string(1, '\0');

  uint32_t add(const std::string& text) {
    const auto at = static_cast<uint32_t>(bytes.size());
    bytes.append(text, 0, text.find('\0'));
    bytes.push_back('\0');
    return at;
  }
};

class Writer {
 public:
  explicit Writer(const SymbolFile& file) : file_(file) {}

  Result<std::string> run() {
    elf_version(EV_CURRENT);
    fd_ = Fd(memfd_create("pkprof-symbols", MFD_CLOEXEC));
    if (!fd_.valid()) return fail_errno("making a file in memory");
    elf_.reset(elf_begin(fd_.get(), ELF_C_WRITE, nullptr));
    if (elf_ == nullptr || gelf_newehdr(elf_.get(), ELFCLASS64) == nullptr) return failed();
    if (!add_sections() || !add_header()) return failed();
    if (elf_update(elf_.get(), ELF_C_WRITE) < 0) return failed();
    return read_back();
  }

 private:
  struct EndElf {
    void operator()(Elf* elf) const { elf_end(elf); }
  };

  static std::unexpected<Error> failed() {
    return fail(std::string("writing ELF: ") + elf_errmsg(-1));
  }

  // Its number, 0 when it cannot be had. `bytes` must live until all is written.
  size_t add(uint32_t name, GElf_Shdr header, void* bytes, uint64_t size) {
    Elf_Scn* const scn = elf_newscn(elf_.get());
    Elf_Data* const data = scn == nullptr ? nullptr : elf_newdata(scn);
    if (data == nullptr) return 0;
    data->d_buf = bytes;
    data->d_size = size;
    data->d_align = header.sh_addralign;
    data->d_type = header.sh_type == SHT_SYMTAB ? ELF_T_SYM : ELF_T_BYTE;
    data->d_version = EV_CURRENT;
    header.sh_name = name;
    header.sh_size = size;
    return gelf_update_shdr(scn, &header) == 0 ? 0 : elf_ndxscn(scn);
  }

  bool add_sections() {
    const size_t text = add(section_names_.add(".text"),
                            {.sh_type = SHT_NOBITS,
                             .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
                             .sh_addr = file_.text_start,
                             .sh_addralign = text_align},
                            nullptr, file_.text_size);
    make_symbols(static_cast<uint16_t>(text));
    const size_t names =
        add(section_names_.add(".strtab"), {.sh_type = SHT_STRTAB, .sh_addralign = 1},
            names_.bytes.data(), names_.bytes.size());
    const size_t symbols = add(section_names_.add(".symtab"),
                               {.sh_type = SHT_SYMTAB,
                                .sh_link = static_cast<uint32_t>(names),
                                .sh_info = 1,  // the first that is global
                                .sh_addralign = alignof(Elf64_Sym),
                                .sh_entsize = sizeof(Elf64_Sym)},
                               symbols_.data(), symbols_.size() * sizeof(Elf64_Sym));
    about_ = file_.about;
    if (!about_.empty() &&
        add(section_names_.add(about_section), {.sh_type = SHT_PROGBITS, .sh_addralign = 1},
            about_.data(), about_.size()) == 0)
      return false;
    const uint32_t last = section_names_.add(".shstrtab");
    names_at_ = add(last, {.sh_type = SHT_STRTAB, .sh_addralign = 1}, section_names_.bytes.data(),
                    section_names_.bytes.size());
    return text != 0 && names != 0 && symbols != 0 && names_at_ != 0;
  }

  void make_symbols(uint16_t text) {
    symbols_.assign(1, {});
    for (const SymbolFile::Symbol& symbol : file_.symbols) {
      symbols_.push_back({.st_name = names_.add(symbol.name),
                          .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
                          .st_other = STV_DEFAULT,
                          .st_shndx = text,
                          .st_value = symbol.address,
                          .st_size = symbol.size});
    }
  }

  bool add_header() {
    GElf_Ehdr header;
    if (gelf_getehdr(elf_.get(), &header) == nullptr) return false;
    header.e_ident[EI_DATA] =
        std::endian::native == std::endian::little ? ELFDATA2LSB : ELFDATA2MSB;
    header.e_type = ET_EXEC;
    header.e_machine = machine;
    header.e_version = EV_CURRENT;
    header.e_shstrndx = static_cast<uint16_t>(names_at_);
    return gelf_update_ehdr(elf_.get(), &header) != 0;
  }

  Result<std::string> read_back() {
    struct stat info{};
    if (::fstat(fd_.get(), &info) != 0) return fail_errno("reading what was written");
    std::string bytes(static_cast<size_t>(info.st_size), '\0');
    for (size_t done = 0; done < bytes.size();) {
      const ssize_t n =
          ::pread(fd_.get(), bytes.data() + done, bytes.size() - done, static_cast<off_t>(done));
      if (n <= 0) return fail_errno("reading what was written");
      done += static_cast<size_t>(n);
    }
    return bytes;
  }

  const SymbolFile& file_;
  Fd fd_;
  Strings names_;
  Strings section_names_;
  std::vector<Elf64_Sym> symbols_;
  std::string about_;
  size_t names_at_ = 0;
  std::unique_ptr<Elf, EndElf> elf_;  // the first to go: it reads from the rest
};

Result<NamedCode> read_from(Fd fd, const std::string& path) {
  NamedCode code;
  Result<ElfHandle> elf = ElfHandle::open(Fd(::dup(fd.get())));
  if (!elf) return std::unexpected(elf.error());
  if (const ElfSection* const section = elf->section(about_section)) {
    if (const Elf_Data* const data = elf->data(*section, max_about))
      code.about.assign(static_cast<const char*>(data->d_buf), data->d_size);
  }
  const Result<std::shared_ptr<ElfFile>> file = ElfFile::open(std::move(fd), path, {});
  if (!file) return std::unexpected(file.error());
  code.functions = (*file)->code().functions;
  if (code.functions.empty()) return fail("it has no symbols");
  return code;
}

}  // namespace

Result<std::string> encode_symbol_file(const SymbolFile& file) {
  return Writer(file).run();
}

Result<NamedCode> read_symbol_file(const std::string& path) {
  Result<Fd> fd = open_regular_magic(path);
  if (!fd) return std::unexpected(fd.error().in("reading " + path));
  Result<NamedCode> code = read_from(std::move(*fd), path);
  if (!code) return std::unexpected(code.error().in("reading " + path));
  return code;
}

}  // namespace pkprof
