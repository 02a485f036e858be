// SPDX-License-Identifier: Apache-2.0
// Lines of a kernel that lies elsewhere than its file says; addr2line says what is true of the
// file.
#include <gtest/gtest.h>

#include <sstream>

#include "fixture.h"
#include "symbol/kernel_lines.h"

namespace pkprof {
namespace {

constexpr uint64_t moved = 0x1a000000;

class KernelLinesTest : public testing::Test {
 protected:
  void SetUp() override {
    dir_.write("build/linux-1.2/fs/read.c",
               "extern volatile int sum;\n"
               "volatile int sum;\n"
               "void vfs_read(int n) {\n"
               "  for (int i = 0; i < n; ++i)\n"
               "    sum += i;\n"
               "}\n"
               "void wake_up_process(void) { vfs_read(3); }\n"
               "int main(void) { vfs_read(1); wake_up_process(); return 0; }\n");
    dir_.write("usr/lib/debug/boot/empty", "");
    vmlinux_ = dir_ / "usr/lib/debug/boot/vmlinux-1.2-test";
    test::sh("gcc -g -O1 -fno-inline -no-pie -Wl,--build-id=0x12345678 -o " + vmlinux_ + " " +
             (dir_ / "build/linux-1.2/fs/read.c"));
    for (const char* name : {"vfs_read", "wake_up_process"}) {
      const std::string line = test::sh("nm -S " + vmlinux_ + " | grep ' " + name + "$'");
      std::istringstream(line) >> std::hex >> start_[name] >> size_[name];
      entries_.push_back({start_[name] + moved, name, "", 'T'});
    }
  }

  [[nodiscard]] Result<KernelLines> open(const std::string& build_id) const {
    const auto symbols = KernelSymbols::from_entries(entries_);
    if (!symbols) return std::unexpected(symbols.error());
    return KernelLines::open(*symbols,
                             {.root = dir_.path(), .release = "1.2-test", .build_id = build_id});
  }

  test::TempDir dir_;
  std::string vmlinux_;
  std::map<std::string, uint64_t> start_, size_;
  std::vector<KernelEntry> entries_;
};

TEST_F(KernelLinesTest, AreThoseOfTheFile) {
  auto lines = open("12345678");
  ASSERT_TRUE(lines) << lines.error().message;
  for (const auto& [name, start] : start_) {
    for (uint64_t at = start; at < start + size_[name]; ++at) {
      const SourceLine line = lines->find(at + moved);
      std::ostringstream address;
      address << std::hex << at;
      const std::string truth = test::sh("addr2line -e " + vmlinux_ + " " + address.str());
      EXPECT_EQ(line.file, "fs/read.c");
      EXPECT_NE(truth.find("/fs/read.c:" + std::to_string(line.line)), std::string::npos)
          << truth << line.line;
    }
  }
  EXPECT_EQ(lines->find(0).line, 0);
  EXPECT_EQ(lines->find(UINT64_MAX).line, 0);
}

TEST_F(KernelLinesTest, AnotherKernelsAreRefused) {
  const auto lines = open("87654321");
  ASSERT_FALSE(lines);
  EXPECT_NE(lines.error().message.find("vmlinux-1.2-test is of another kernel"), std::string::npos)
      << lines.error().message;
}

TEST_F(KernelLinesTest, WithoutAFileThatIsSaid) {
  const auto symbols = KernelSymbols::from_entries(entries_);
  ASSERT_TRUE(symbols);
  const auto lines =
      KernelLines::open(*symbols, {.root = dir_.path(), .release = "3.4", .build_id = "00"});
  ASSERT_FALSE(lines);
  EXPECT_EQ(lines.error().message, "there is no debug information of kernel 3.4 (vmlinux)");
}

// A file that is no kernel, or cut off, is as good as none.
TEST_F(KernelLinesTest, DamagedFilesAreRefused) {
  const std::string whole = test::read_file(vmlinux_);
  for (const size_t size : {size_t{0}, size_t{4}, size_t{64}, whole.size() / 2}) {
    dir_.write("usr/lib/debug/boot/vmlinux-1.2-test", whole.substr(0, size));
    EXPECT_FALSE(open("12345678")) << size;
  }
}

}  // namespace
}  // namespace pkprof
