// SPDX-License-Identifier: Apache-2.0
// Files that want to hurt: they may have no names, but nothing may crash, hang or eat memory.
#include <elf.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstring>

#include "fixture.h"
#include "symbol/elf/elf_file.h"
#include "symbol/symbolizer.h"

namespace pkprof {
namespace {

using test::TempDir;

Fd memory_file(std::string_view bytes) {
  Fd fd(::memfd_create("hostile", MFD_CLOEXEC));
  EXPECT_EQ(::write(fd.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  return fd;
}

void use(std::string_view bytes, bool lines) {
  auto elf = ElfFile::open(memory_file(bytes), "/hostile", {.lines = lines});
  if (!elf) return;
  for (uint64_t offset = 0; offset < 0x6000; offset += 0x35) {
    const auto vaddr = (*elf)->vaddr_of(offset);
    if (!vaddr) continue;
    (void)(*elf)->function_at(*vaddr);
    (void)(*elf)->line_at(*vaddr);
  }
}

// Peak memory of this process in KiB.
long peak() {
  rusage usage = {};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

class Hostile : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    TempDir dir;
    program_ = new std::string(test::read_file(test::compile(dir, "p", "-Wl,--build-id=sha1")));
  }
  static void TearDownTestSuite() { delete program_; }
  static std::string* program_;
};
std::string* Hostile::program_ = nullptr;

TEST_F(Hostile, CutAtEveryPlace) {
  for (size_t size = 0; size < program_->size(); size += 64) {
    use(std::string_view(*program_).substr(0, size), false);
  }
}

void mutate_for(const std::string& program, int seconds, bool lines) {
  test::FuzzPlan plan(seconds);
  auto& random = plan.random;
  Elf64_Ehdr header;
  std::memcpy(&header, program.data(), sizeof header);
  const size_t sections = header.e_shoff;
  const size_t sections_size = size_t{header.e_shnum} * sizeof(Elf64_Shdr);
  const size_t before = static_cast<size_t>(peak());
  while (plan.more()) {
    std::string bytes = program;
    for (unsigned i = 1 + random() % 12; i > 0; --i) {
      size_t at = random() % bytes.size();
      // Most of the file is text that nobody interprets: aim at the headers.
      if (random() % 3 == 0) at = random() % 1024;
      if (random() % 3 == 0) at = sections + random() % sections_size;
      const uint8_t values[] = {0, 1, 0x7f, 0x80, 0xff, static_cast<uint8_t>(random())};
      bytes[at] = static_cast<char>(values[random() % 6]);
    }
    use(bytes, lines);
  }
  EXPECT_LT(static_cast<size_t>(peak()) - before, size_t{512} << 10);
}

TEST_F(Hostile, Mutated) {
  mutate_for(*program_, 4, false);
}
TEST_F(Hostile, MutatedWithLines) {
  mutate_for(*program_, 2, true);
}

// The file is sparse: it takes no room on disk and claims a terabyte.
TEST_F(Hostile, EnormousTables) {
  TempDir dir;
  const long before = peak();
  Elf64_Ehdr header;
  std::memcpy(&header, program_->data(), sizeof header);
  for (size_t i = 1; i < header.e_shnum; ++i) {
    std::string bytes = *program_;
    Elf64_Shdr section;
    char* at = bytes.data() + header.e_shoff + i * sizeof section;
    std::memcpy(&section, at, sizeof section);
    section.sh_size = uint64_t{900} << 30;
    std::memcpy(at, &section, sizeof section);
    const std::string path = dir.write("huge", bytes);
    if (::truncate(path.c_str(), off_t{1} << 40) != 0) GTEST_SKIP() << "no sparse files here";
    const auto elf = ElfFile::open(Fd(::open(path.c_str(), O_RDONLY)), path, {});
    if (!elf) continue;
    EXPECT_LT((*elf)->memory(), uint64_t{1} << 20);
  }
  EXPECT_LT(peak() - before, 256L << 10);
}

TEST_F(Hostile, ExtendedSectionCount) {
  TempDir dir;
  std::string bytes = *program_;
  Elf64_Ehdr header;
  std::memcpy(&header, bytes.data(), sizeof header);
  header.e_shnum = 0;  // then the count is section 0's size
  std::memcpy(bytes.data(), &header, sizeof header);
  Elf64_Shdr first = {};
  first.sh_size = uint64_t{1} << 33;
  std::memcpy(bytes.data() + header.e_shoff, &first, sizeof first);
  const std::string path = dir.write("many", bytes);
  ASSERT_EQ(::truncate(path.c_str(), off_t{1} << 40), 0);
  EXPECT_FALSE(ElfFile::open(Fd(::open(path.c_str(), O_RDONLY)), path, {}));
}

// A unit whose directory's name is in a file that another section names.
TEST_F(Hostile, NoOtherFileIsOpenedForLines) {
  TempDir dir;
  const std::string other = dir.write("other", "no ELF file");
  const std::string source = dir.write("unit.s", R"(
 .text
 .globl f
 .type f,@function
f:
 .file 1 "x.c"
 .loc 1 3
 nop
 ret
.Lend:
 .size f,.-f
 .section .debug_line,"",@progbits
.Lline:
 .section .debug_abbrev,"",@progbits
.Labbrev:
 .uleb128 1, 0x11
 .byte 0
 .uleb128 0x10, 0x17, 0x1b, 0x1f21, 0x11, 0x01, 0x12, 0x07, 0, 0, 0
 .section .debug_info,"",@progbits
 .long .Lafter-.Lbegin
.Lbegin:
 .short 4
 .long .Labbrev
 .byte 8
 .uleb128 1
 .long .Lline
 .long 0
 .quad f
 .quad .Lend-f
.Lafter:
 .section .gnu_debugaltlink,"",@progbits
 .asciz ")" + other + R"("
 .fill 20,1,7
)");
  const std::string library = dir / "lib.so";
  test::sh(std::string(TEST_CXX) + " -shared -nostdlib -o " + library + " " + source);
  const Fd watch(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  ASSERT_GE(::inotify_add_watch(watch.get(), other.c_str(), IN_OPEN), 0);
  const auto elf = ElfFile::open(Fd(::open(library.c_str(), O_RDONLY)), library, {.lines = true});
  ASSERT_TRUE(elf);
  EXPECT_EQ((*elf)->line_at(test::nm_address(library, "f")).line, 3U);
  char events[4096];
  EXPECT_LT(::read(watch.get(), events, sizeof events), 0) << "it was opened";
}

// Sections that claim to unpack to 100 GB are not unpacked, and what is counts.
TEST_F(Hostile, CompressedSectionsHaveALimit) {
  TempDir dir;
  const std::string path = dir.write("packed", *program_);
  test::sh("objcopy --compress-debug-sections=zlib-gabi " + path);
  const auto open = [&] {
    return ElfFile::open(Fd(::open(path.c_str(), O_RDONLY)), path, {.lines = true});
  };
  auto elf = open();
  ASSERT_TRUE(elf);
  const uint64_t main = test::nm_address(path, "main");
  EXPECT_NE((*elf)->line_at(main).line, 0U);
  EXPECT_GT((*elf)->memory(), 10'000U);
  std::string bytes = test::read_file(path);
  Elf64_Ehdr header;
  std::memcpy(&header, bytes.data(), sizeof header);
  for (size_t i = 1; i < header.e_shnum; ++i) {
    Elf64_Shdr section;
    std::memcpy(&section, bytes.data() + header.e_shoff + i * sizeof section, sizeof section);
    if ((section.sh_flags & SHF_COMPRESSED) == 0) continue;
    const uint64_t claimed = uint64_t{100} << 30;
    std::memcpy(bytes.data() + section.sh_offset + offsetof(Elf64_Chdr, ch_size), &claimed,
                sizeof claimed);
  }
  dir.write("packed", bytes);
  elf = open();
  ASSERT_TRUE(elf);
  EXPECT_EQ((*elf)->line_at(main).line, 0U);
  EXPECT_EQ((*elf)->function_at(main), "main");
  EXPECT_LT((*elf)->memory(), uint64_t{1} << 20);
}

TEST_F(Hostile, NotFiles) {
  TempDir dir;
  const std::string fifo = dir / "fifo";
  test::sh("mkfifo " + fifo + " && ln -s /dev/zero " + (dir / "zero"));
  UserSymbols symbols;
  uint64_t start = 0x1000;
  for (const std::string& name : {fifo, dir / "zero", dir.path(), std::string("/dev/full"),
                                  std::string("/proc/self/mem"), dir / "absent"}) {
    symbols.add_map(1, {.start = start, .end = start + 0x1000, .file = name});
    EXPECT_EQ(symbols.find(1, start).function, "");
    EXPECT_EQ(symbols.find(1, start).map.file, name);
    start += 0x1000;
  }
  EXPECT_GE(symbols.warnings().size(), 5U);
}

TEST_F(Hostile, WarningsHaveALimit) {
  UserSymbols symbols;
  for (uint64_t i = 1; i <= 1000; ++i) {
    symbols.add_map(
        1, {.start = i * 0x1000, .end = (i + 1) * 0x1000, .file = "/absent/" + std::to_string(i)});
    (void)symbols.find(1, i * 0x1000);
    (void)symbols.find(1, i * 0x1000);
  }
  EXPECT_LE(symbols.warnings().size(), 201U);
}

// Names without end, one inside the other: what is copied must not multiply. If each were read to
// its end, this would take longer than the suite may.
TEST_F(Hostile, OverlappingNames) {
  const size_t count = 200'000;
  const size_t text_size = size_t{4} << 20;
  std::string bytes(sizeof(Elf64_Ehdr) + 4 * sizeof(Elf64_Shdr), '\0');
  Elf64_Ehdr header = {};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_DYN;
  header.e_machine = EM_X86_64;
  header.e_version = EV_CURRENT;
  header.e_ehsize = sizeof header;
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = 4;
  header.e_shoff = sizeof header;
  Elf64_Shdr symtab = {};
  symtab.sh_type = SHT_SYMTAB;
  symtab.sh_link = 2;
  symtab.sh_offset = bytes.size();
  symtab.sh_size = count * sizeof(Elf64_Sym);
  symtab.sh_entsize = sizeof(Elf64_Sym);
  Elf64_Shdr strings = {};
  strings.sh_type = SHT_STRTAB;
  strings.sh_offset = symtab.sh_offset + symtab.sh_size;
  strings.sh_size = text_size;
  Elf64_Shdr code = {};
  code.sh_type = SHT_NOBITS;
  code.sh_flags = SHF_ALLOC | SHF_EXECINSTR;
  code.sh_size = UINT64_MAX;
  std::memcpy(bytes.data(), &header, sizeof header);
  const Elf64_Shdr table[] = {{}, symtab, strings, code};
  std::memcpy(bytes.data() + sizeof header, table, sizeof table);
  for (size_t i = 0; i < count; ++i) {
    Elf64_Sym symbol = {};
    symbol.st_name = static_cast<uint32_t>(i);
    symbol.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
    symbol.st_shndx = 3;
    symbol.st_value = 1 + i;
    symbol.st_size = i % 2 == 0 ? UINT64_MAX / 2 : 0;
    bytes.append(reinterpret_cast<const char*>(&symbol), sizeof symbol);
  }
  bytes.append(text_size, 'x');
  const auto elf = ElfFile::open(memory_file(bytes), "/hostile", {});
  ASSERT_TRUE(elf);
  EXPECT_LE((*elf)->function_at(1000).size(), ElfFunctionsBuilder::max_name);
  EXPECT_LE((*elf)->memory(), uint64_t{600} << 20);
}

}  // namespace
}  // namespace pkprof
