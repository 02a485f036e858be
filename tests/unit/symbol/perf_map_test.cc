// SPDX-License-Identifier: Apache-2.0
#include "symbol/perf_map.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <map>
#include <random>

#include "fixture.h"
#include "symbol/elf/file_access.h"
#include "symbol/perf_maps.h"
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

// All maps have one budget, whoever writes how many.
TEST_F(JitFile, TogetherTheyHaveABudget) {
  std::string text = "10100 40 jitted\n";
  while (text.size() < 300'000) text += "20000 10 Interpreter:some_function_of_a_usual_length()\n";
  UserSymbols symbols({.root = root_.path(), .perf_map_limit = uint64_t{1} << 20});
  std::vector<std::string> names;
  for (uint32_t process = 0; process < 20; ++process) {
    root_.write("tmp/perf-" + std::to_string(fake_pid + process) + ".map", text);
    // Another image of the same process has the same file.
    for (const uint64_t image : {process, process + 100}) {
      symbols.add_map(image, {.start = 0x10000, .end = 0x20000, .file = "//anon"});
      symbols.set_pid(image, fake_pid + process);
      names.push_back(symbols.find(image, 0x10100).function);
    }
  }
  const auto named = static_cast<size_t>(std::ranges::count(names, "jitted"));
  EXPECT_GE(named, 2U);
  EXPECT_LE(named, 2U * 4);
  EXPECT_EQ(names[0], names[1]);
  EXPECT_EQ(symbols.warnings().size(), (names.size() - named) / 2) << "each that is left out";
  EXPECT_NE(symbols.warnings()[0].find("left out, perf maps may take 1 MiB together"),
            std::string::npos)
      << symbols.warnings()[0];
}

// 10 GB of nothing, and lines that are short on disk and long in memory.
TEST_F(JitFile, LargeOnesAreLeftOut) {
  write("10100 40 jitted\n");
  ASSERT_EQ(::truncate(path().c_str(), off_t{10} << 30), 0);
  EXPECT_EQ(find("//anon", 0x10110).function, "");
  std::string text;
  for (int i = 0; i < (1 << 22); ++i) text += "1 1 a\n";
  write(text);
  const Fd file(::open(path().c_str(), O_RDONLY | O_CLOEXEC));
  EXPECT_FALSE(PerfMap::read(file.get(), text.size(), uint64_t{100} << 20));
}

// What is still being written is read up to where it was when it was looked at.
TEST_F(JitFile, ReadsNoMoreThanItsSize) {
  write("10100 40 jitted\n10200 40 later\n");
  const Fd file(::open(path().c_str(), O_RDONLY | O_CLOEXEC));
  const auto map = PerfMap::read(file.get(), 16, 1 << 20);
  ASSERT_TRUE(map);
  EXPECT_EQ(map->find(0x10100), "jitted");
  EXPECT_EQ(map->find(0x10200), "");
}

TEST_F(JitFile, ReadByBlocksIsTheSame) {
  std::mt19937 random(7);
  std::string text;
  for (unsigned i = 0; i < 60'000; ++i) {
    char start[32];
    std::snprintf(start, sizeof start, "%x 10 ", i * 16);
    text += start + std::string(1 + random() % 40, 'n') + std::to_string(i) + "\n";
  }
  text += "f0000000 10 " + std::string(1 << 20, 'x') + "\nf1000000 10 after\nf2000000 10 last";
  write(text);
  const Fd file(::open(path().c_str(), O_RDONLY | O_CLOEXEC));
  const auto map = PerfMap::read(file.get(), text.size(), uint64_t{64} << 20);
  ASSERT_TRUE(map);
  const auto whole = PerfMap::parse(text);
  EXPECT_EQ(map->size(), whole.size());
  EXPECT_EQ(map->malformed(), 0U);
  for (uint64_t at = 0; at < uint64_t{60'000} * 16; at += 8)
    ASSERT_EQ(map->find(at), whole.find(at));
  for (const uint64_t at : {0xf0000000, 0xf1000000, 0xf2000000}) {
    EXPECT_EQ(map->find(at), whole.find(at));
    EXPECT_NE(map->find(at), "");
  }
}

// A compiler that goes on has its file read again, but not all of the time.
TEST_F(JitFile, ReadingAgainIsPutOff) {
  std::string text;
  for (int i = 0; i < 300'000; ++i) text += "20000 10 Interpreter:some_function()\n";
  write(text);
  const auto root = RootDir::open(root_.path());
  ASSERT_TRUE(root);
  ReaderThread reader;
  Warnings warnings;
  PerfMaps maps(uint64_t{256} << 20, reader, warnings);
  const PerfMaps::Place place{*root, {path().substr(root_.path().size())}, {::geteuid()}};
  const auto file = maps.look(place);
  ASSERT_TRUE(file);
  std::ofstream(path(), std::ios::app) << "30000 10 first\n";
  EXPECT_EQ(maps.look(place), file);
  EXPECT_EQ(file->map.find(0x30000), "first");
  std::ofstream(path(), std::ios::app) << "40000 10 second\n";
  EXPECT_EQ(maps.look(place)->map.find(0x40000), "") << "too soon";
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (maps.look(place)->map.find(0x40000).empty() && std::chrono::steady_clock::now() < end)
    ::usleep(20'000);
  EXPECT_EQ(file->map.find(0x40000), "second");
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
