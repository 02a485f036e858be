// SPDX-License-Identifier: Apache-2.0
// Go's own table of functions, in each of its layouts, written by the assembler.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>

#include "fixture.h"
#include "symbol/elf/elf_file.h"
#include "symbol/elf/elf_handle.h"

namespace pkprof {
namespace {

using test::TempDir;

struct Version {
  const char* name;
  const char* source;  // of the table, behind the eight bytes that all have
};

// Two functions, "main.one" and "main.(*T).two", whose names are at `names` and whose records are
// at `one` and `two`.
constexpr Version versions[] = {
    {"fffffffb", R"(
 .quad 2
 .quad one, Rone-table, two, Rtwo-table, end
Rone: .quad one
 .long Sone-table
Rtwo: .quad two
 .long Stwo-table
names:
)"},
    {"fffffffa", R"(
 .quad 2, 0, names-table, 0, 0, 0, functions-table
functions:
 .quad one, Rone-functions, two, Rtwo-functions, end
Rone: .quad one
 .long Sone-names
Rtwo: .quad two
 .long Stwo-names
names:
)"},
    {"fffffff0", R"(
 .quad 2, 0, one, names-table, 0, 0, 0, functions-table
functions:
 .long 0, Rone-functions, two-one, Rtwo-functions, end-one
Rone: .long 0, Sone-names
Rtwo: .long two-one, Stwo-names
names:
)"},
    {"fffffff1", R"(
 .quad 2, 0, one, names-table, 0, 0, 0, functions-table
functions:
 .long 0, Rone-functions, two-one, Rtwo-functions, end-one
Rone: .long 0, Sone-names
Rtwo: .long two-one, Stwo-names
names:
)"},
};

class GoTable : public ::testing::TestWithParam<Version> {
 protected:
  // Stripped, linked by these flags.
  std::string program(const std::string& section, const std::string& flags) {
    const std::string source = dir_.write("go.s", std::string(R"(
 .text
 .globl one
one: nop
 ret
two: nop
 nop
 ret
end: ret
 .section )") + section + R"(
table:
 .long 0x)" + GetParam().name + "\n .byte 0, 0, 1, 8\n" +
                                                      GetParam().source + R"(
 .byte 0
Sone: .asciz "main.one"
Stwo: .asciz "main.(*T).two"
)");
    const std::string file = dir_ / "go";
    test::sh(std::string(TEST_CXX) + " -nostdlib -Wl,-e,one " + flags + " -o " + file + " " +
             source);
    one_ = test::nm_address(file, "one");
    test::sh("strip " + file);
    return file;
  }
  static Result<std::shared_ptr<ElfFile>> open(const std::string& file) {
    return ElfFile::open(Fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC)), file, {});
  }
  void expect_named(const std::string& file) {
    const auto elf = open(file);
    ASSERT_TRUE(elf);
    EXPECT_EQ((*elf)->function_at(one_ - 1), "");
    EXPECT_EQ((*elf)->function_at(one_), "main.one");
    EXPECT_EQ((*elf)->function_at(one_ + 1), "main.one");
    EXPECT_EQ((*elf)->function_at(one_ + 2), "main.(*T).two");
    EXPECT_EQ((*elf)->function_at(one_ + 4), "main.(*T).two");
    EXPECT_EQ((*elf)->function_at(one_ + 5), "");
  }
  TempDir dir_;
  uint64_t one_ = 0;
};

TEST_P(GoTable, NamesAStrippedProgram) {
  expect_named(program(".gopclntab,\"a\"", "-no-pie"));
}

class GoOffsets : public GoTable {};

// There the text start is known to the loader alone.
TEST_P(GoOffsets, OfAPositionIndependentProgram) {
  expect_named(program(".data.rel.ro.gopclntab,\"aw\"", "-pie"));
}

// Nothing in it is believed.
TEST_P(GoTable, SurvivesAnything) {
  const std::string file = program(".gopclntab,\"a\"", "-no-pie");
  const auto handle = ElfHandle::open(Fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC)));
  ASSERT_TRUE(handle);
  const ElfSection* table = handle->section(".gopclntab");
  ASSERT_NE(table, nullptr);
  const std::string bytes = test::read_file(file);
  test::FuzzPlan plan(1);
  while (plan.more()) {
    std::string hostile = bytes;
    for (unsigned i = 1 + plan.random() % 8; i > 0; --i) {
      const size_t at = table->header.sh_offset + 4 + plan.random() % (table->header.sh_size - 4);
      const uint8_t values[] = {0, 1, 4, 0x7f, 0xff, static_cast<uint8_t>(plan.random())};
      hostile[at] = static_cast<char>(values[plan.random() % 6]);
    }
    const auto elf = ElfFile::from_memory(std::move(hostile));
    ASSERT_TRUE(elf);
    for (uint64_t at = one_; at < one_ + 8; ++at) (void)(*elf)->function_at(at);
    ASSERT_LT((*elf)->memory(), 100'000U);
  }
}

constexpr auto version_name = [](const auto& info) { return info.param.name; };
INSTANTIATE_TEST_SUITE_P(Go, GoTable, ::testing::ValuesIn(versions), version_name);
INSTANTIATE_TEST_SUITE_P(Go, GoOffsets, ::testing::Values(versions[2], versions[3]), version_name);

}  // namespace
}  // namespace pkprof
