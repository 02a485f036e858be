// SPDX-License-Identifier: Apache-2.0
#include "symbol/perf_map.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <map>
#include <random>

#include "fixture.h"
#include "symbol/file_access.h"
#include "symbol/symbolizer.h"

namespace pkprof {
namespace {

TEST(PerfMap, NamesMayHaveSpaces) {
  const auto map = PerfMap::parse("1000 20 LazyCompile:*foo bar.js:1\n0x2000 0x10 hex\r\n");
  EXPECT_EQ(map.find(0x1000), "LazyCompile:*foo bar.js:1");
  EXPECT_EQ(map.find(0x101f), "LazyCompile:*foo bar.js:1");
  EXPECT_EQ(map.find(0x1020), "");
  EXPECT_EQ(map.find(0x2005), "hex");
  EXPECT_EQ(map.malformed(), 0U);
}

TEST(PerfMap, LaterLinesReplaceEarlierOnes) {
  const auto map = PerfMap::parse("1000 100 old\n1020 20 inner\n3000 10 early\n2ff0 40 whole\n");
  EXPECT_EQ(map.find(0x1010), "old");
  EXPECT_EQ(map.find(0x1025), "inner");
  EXPECT_EQ(map.find(0x1050), "old");
  EXPECT_EQ(map.find(0x3005), "whole");
}

TEST(PerfMap, GarbageIsCounted) {
  const auto map = PerfMap::parse(
      "\n\nx\n1000\n1000 10\n1000 10 \n1000 0 zero\nffffffffffffffff 10 over\n-1 10 minus\n"
      "10000000000000000000 10 wide\n1000 10 good\n1000 1");
  EXPECT_EQ(map.malformed(), 11U);
  EXPECT_EQ(map.find(0x1000), "good");
}

TEST(PerfMap, NamesHaveALimit) {
  const auto map = PerfMap::parse("1000 10 " + std::string(1 << 20, 'n') + "\n");
  EXPECT_EQ(map.find(0x1000).size(), PerfMap::max_name);
}

// Against the plain way of doing it.
TEST(PerfMap, OverlapsAgainstAModel) {
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    std::string text;
    std::map<uint64_t, std::string> model;
    for (unsigned i = 0; i < 40; ++i) {
      const unsigned start = random() % 200;
      const unsigned size = 1 + random() % 60;
      const std::string name = "f" + std::to_string(i);
      char line[64];
      std::snprintf(line, sizeof line, "%x %x %s\n", start, size, name.c_str());
      text += line;
      for (unsigned a = start; a < start + size; ++a) model[a] = name;
    }
    const auto map = PerfMap::parse(text);
    for (uint64_t a = 0; a < 300; ++a) {
      ASSERT_EQ(map.find(a), model.contains(a) ? model[a] : "") << a << "\n" << text;
    }
  }
}

TEST(PerfMap, SurvivesAnything) {
  std::mt19937 random(4);
  for (int round = 0; round < 3000; ++round) {
    std::string text = "1000 20 one\n1010 20 two\n7f0000001000 ffff three\n";
    for (unsigned i = random() % 20; i > 0; --i) {
      text[random() % text.size()] = static_cast<char>(random());
    }
    const auto map = PerfMap::parse(text);
    for (uint64_t a = 0xff0; a < 0x1040; ++a) (void)map.find(a);
  }
}

class JitFile : public ::testing::Test {
 protected:
  static constexpr uint32_t fake_pid = 4'190'000;  // above any pid_max in use
  UserFrame find(const std::string& file, uint64_t address) {
    UserSymbols symbols({.root = root_.path()});
    symbols.add_map(1, {.start = 0x10000, .end = 0x20000, .file = file});
    symbols.set_pid(1, fake_pid);
    return symbols.find(1, address);
  }
  [[nodiscard]] std::string path() const {
    return root_ / ("tmp/perf-" + std::to_string(fake_pid) + ".map");
  }
  void write(std::string_view text) {
    root_.write("tmp/perf-" + std::to_string(fake_pid) + ".map", text);
  }
  test::TempDir root_;
};

TEST_F(JitFile, NamesAnonymousMemory) {
  write("10100 40 jitted\n");
  EXPECT_EQ(find("//anon", 0x10110).function, "jitted");
  EXPECT_EQ(find("", 0x10110).function, "jitted");
  EXPECT_EQ(find("/memfd:doublemapper (deleted)", 0x10110).function, "jitted");
  EXPECT_EQ(find("/some/file", 0x10110).function, "") << "only memory without a file is a JIT's";
  EXPECT_EQ(find("//anon", 0x10200).function, "");
}

TEST_F(JitFile, LinksAndFifosDoNotLeadAway) {
  root_.write("tmp/dummy", "");
  test::sh("mkfifo " + path());
  EXPECT_EQ(find("//anon", 0x10110).function, "") << "and this did not wait for a writer";
  test::sh("rm " + path() + "; ln -s /dev/zero " + path());
  EXPECT_EQ(find("//anon", 0x10110).function, "");
}

// Whoever may write to /tmp may have a link there to what root alone may read.
TEST_F(JitFile, NoOtherNameOfAnotherFile) {
  const std::string other = root_.write("tmp/other", "10100 40 jitted\n");
  test::sh("ln -s other " + path());
  EXPECT_EQ(find("//anon", 0x10110).function, "");
  test::sh("ln -f " + other + " " + path());
  EXPECT_EQ(find("//anon", 0x10110).function, "");
  test::sh("rm " + other);
  EXPECT_EQ(find("//anon", 0x10110).function, "jitted") << "now it is the file's only name";
}

TEST_F(JitFile, OfAnotherUserIsNotBelieved) {
  if (::geteuid() != 0) GTEST_SKIP() << "giving a file away needs root";
  write("10100 40 jitted\n");
  test::sh("chown 65534 " + path());
  EXPECT_EQ(find("//anon", 0x10110).function, "");
}

// With /proc below the root, as containers have it.
TEST_F(JitFile, FilesOfTheKernelAreNotRead) {
  if (::geteuid() != 0) GTEST_SKIP() << "mounting needs root";
  root_.write("tmp/dummy", "");
  std::ofstream(path()).close();
  test::sh("mount --bind /proc/kallsyms " + path());
  const auto root = RootDir::open(root_.path());
  ASSERT_TRUE(root);
  const std::string inside = path().substr(root_.path().size());
  const uid_t owners[] = {0};
  EXPECT_FALSE((*root)->open_owned(inside, owners));
  EXPECT_FALSE((*root)->open_regular(inside)) << "nor as a program or its debug file";
  test::sh("umount " + path());
  EXPECT_TRUE((*root)->open_owned(inside, owners));
}

TEST_F(JitFile, ChildrenHaveTheirParentsCode) {
  write("10100 40 jitted\n");
  UserSymbols symbols({.root = root_.path()});
  symbols.add_map(1, {.start = 0x10000, .end = 0x20000, .file = "//anon"});
  symbols.set_pid(1, fake_pid);
  symbols.fork(1, 2);
  symbols.set_pid(2, fake_pid + 1);
  EXPECT_EQ(symbols.find(2, 0x10100).function, "jitted");
  symbols.exec(2);
  EXPECT_EQ(symbols.find(2, 0x10100).function, "");
}

}  // namespace
}  // namespace pkprof
