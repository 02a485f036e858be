// SPDX-License-Identifier: Apache-2.0
// Programs with .gnu_debugdata, made as Fedora makes them.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <filesystem>

#include "fixture.h"
#include "symbol/elf/elf_file.h"

namespace pkprof {
namespace {

using test::TempDir;

class MiniDebug : public ::testing::Test {
 protected:
  void SetUp() override {
    program_ = test::compile(dir_, "program", "-Wl,--build-id=sha1");
    main_ = test::nm_address(program_, "main");
    test::sh(
        "cd " + dir_.path() +
        " && objcopy --only-keep-debug program mini && strip --strip-debug mini && strip program");
  }
  // The program with that file's bytes as its section.
  Result<std::shared_ptr<ElfFile>> with_section(const std::string& packed) {
    const std::string file = dir_ / "with";
    test::sh("objcopy --add-section .gnu_debugdata=" + packed + " " + program_ + " " + file);
    return ElfFile::open(Fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC)), file, {});
  }
  TempDir dir_;
  std::string program_;
  uint64_t main_ = 0;
};

TEST_F(MiniDebug, NamesAStrippedProgram) {
  const auto stripped = ElfFile::open(Fd(::open(program_.c_str(), O_RDONLY)), program_, {});
  ASSERT_TRUE(stripped);
  EXPECT_EQ((*stripped)->function_at(main_), "");
  test::sh("xz -k " + (dir_ / "mini"));
  const auto elf = with_section(dir_ / "mini.xz");
  ASSERT_TRUE(elf);
  EXPECT_EQ((*elf)->function_at(main_), "main");
  EXPECT_TRUE((*elf)->lacks_debug_file()) << "which would tell more";
}

// 300 MB in 50 kB, half a file, no file.
TEST_F(MiniDebug, HasALimit) {
  rusage before = {};
  ::getrusage(RUSAGE_SELF, &before);
  test::sh("cd " + dir_.path() +
           " && { cat mini; head -c 300M /dev/zero; } | xz -0 > bomb.xz"
           " && xz -k mini && head -c 500 mini.xz > half.xz && head -c 5000 /dev/urandom > noise.xz"
           " && printf '' > empty.xz");
  for (const char* packed : {"bomb.xz", "half.xz", "noise.xz", "empty.xz"}) {
    const auto elf = with_section(dir_ / packed);
    ASSERT_TRUE(elf) << packed;
    EXPECT_EQ((*elf)->function_at(main_), "") << packed;
  }
  rusage after = {};
  ::getrusage(RUSAGE_SELF, &after);
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 200L << 10) << "KiB";
}

}  // namespace
}  // namespace pkprof
