// SPDX-License-Identifier: Apache-2.0
// Processes that fork, exec, die, replace their files and live in containers.
#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "fixture.h"
#include "symbol/process_info.h"
#include "symbol/symbolizer.h"

namespace pkprof {
namespace {

using test::Child;
using test::TempDir;

class Processes : public ::testing::Test {
 protected:
  void start(UserSymbols& symbols) {
    binary_ = test::compile(dir_, "program", "-fPIE -pie");
    child_ = std::make_unique<Child>(std::vector<std::string>{binary_});
    main_ = std::stoull(child_->line(), nullptr, 16);
    ASSERT_TRUE(symbols.read_proc(1, child_->pid()));
  }
  TempDir dir_;
  std::string binary_;
  std::unique_ptr<Child> child_;
  uint64_t main_ = 0;
};

TEST_F(Processes, NobodyAndNothing) {
  UserSymbols symbols;
  EXPECT_EQ(symbols.find(1, 0).function, "");
  EXPECT_TRUE(symbols.read_proc(1, 4'190'000)) << "a process that is gone has no maps";
  const UserFrame frame = symbols.find(1, 0x1000);
  EXPECT_EQ(frame.map.start, frame.map.end);
  symbols.fork(7, 8);
  symbols.exit(9);
  EXPECT_TRUE(symbols.warnings().empty());
}

TEST_F(Processes, ForkSharesUntilChanged) {
  UserSymbols symbols;
  start(symbols);
  symbols.fork(1, 2);
  EXPECT_EQ(symbols.find(2, main_).function, "main");
  symbols.add_map(2, {.start = main_ & ~0xfffULL, .end = main_ + 0x1000, .file = "//anon"});
  EXPECT_EQ(symbols.find(2, main_).function, "");
  EXPECT_EQ(symbols.find(1, main_).function, "main") << "the parent keeps its own";
  symbols.fork(1, 3);
  symbols.exec(3);
  EXPECT_EQ(symbols.find(3, main_).function, "");
  symbols.exit(1);
  EXPECT_EQ(symbols.find(1, main_).function, "");
}

TEST_F(Processes, GoneButItsFileIsThere) {
  UserSymbols symbols;
  start(symbols);
  child_->finish();
  EXPECT_EQ(symbols.find(1, main_).function, "main");
}

TEST_F(Processes, DeletedWhileRunning) {
  if (::geteuid() != 0) GTEST_SKIP() << "map_files needs root";
  UserSymbols symbols;
  start(symbols);
  std::filesystem::remove(binary_);
  EXPECT_EQ(symbols.find(1, main_).function, "main");
  UserSymbols later;  // sees the name with " (deleted)"
  ASSERT_TRUE(later.read_proc(1, child_->pid()));
  EXPECT_EQ(later.find(1, main_).function, "main");
  EXPECT_TRUE(later.find(1, main_).map.file.ends_with(" (deleted)"));
}

TEST_F(Processes, ReplacedWhileRunning) {
  if (::geteuid() != 0) GTEST_SKIP() << "map_files needs root";
  UserSymbols symbols;
  start(symbols);
  std::filesystem::rename(dir_.write("new", "not the program"), binary_);
  EXPECT_EQ(symbols.find(1, main_).function, "main");
}

TEST_F(Processes, ReplacedAndGoneIsOneWarning) {
  UserSymbols symbols;
  start(symbols);
  std::filesystem::rename(dir_.write("new", test::read_file(binary_)), binary_);
  child_->finish();
  EXPECT_EQ(symbols.find(1, main_).function, "");
  EXPECT_EQ(symbols.find(1, main_ + 1).function, "");
  ASSERT_EQ(symbols.warnings().size(), 1U);
  EXPECT_NE(symbols.warnings()[0].find("changed"), std::string::npos) << symbols.warnings()[0];
}

TEST_F(Processes, RemovedAndGoneIsOneWarning) {
  UserSymbols symbols;
  start(symbols);
  std::filesystem::remove(binary_);
  child_->finish();
  EXPECT_EQ(symbols.find(1, main_).function, "");
  EXPECT_EQ(symbols.warnings().size(), 1U);
}

// A program that is started a thousand times a second is opened once, until it changes.
TEST_F(Processes, AFileIsOpenedOnce) {
  UserSymbols symbols;
  start(symbols);
  const UserMap map = symbols.find(1, main_).map;
  const Fd watch(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  ASSERT_GE(::inotify_add_watch(watch.get(), binary_.c_str(), IN_OPEN), 0);
  const auto was_opened = [&] {
    char events[4096];
    return ::read(watch.get(), events, sizeof events) > 0;
  };
  for (uint64_t process = 2; process < 10; ++process) {
    symbols.add_map(process, map);
    EXPECT_EQ(symbols.find(process, main_).function, "main");
  }
  EXPECT_FALSE(was_opened());
  std::filesystem::last_write_time(
      binary_, std::filesystem::file_time_type::clock::now() + std::chrono::hours(1));
  symbols.add_map(10, map);
  EXPECT_EQ(symbols.find(10, main_).function, "main");
  EXPECT_TRUE(was_opened());
}

TEST_F(Processes, BuildIdDecidesWhereThereIsNoInode) {
  UserSymbols symbols;
  start(symbols);
  UserMap map = symbols.find(1, main_).map;
  const std::string id = symbols.find(1, main_).build_id;
  ASSERT_FALSE(id.empty());
  map.inode = 0;
  map.build_id = id;
  symbols.add_map(2, map);
  EXPECT_EQ(symbols.find(2, main_).function, "main");
  map.build_id[0] = map.build_id[0] == 'a' ? 'b' : 'a';
  symbols.add_map(3, map);
  EXPECT_EQ(symbols.find(3, main_).function, "");
  EXPECT_EQ(symbols.find(3, main_).build_id, map.build_id) << "as it was, not as it is";
}

TEST_F(Processes, RootIsAPrefix) {
  UserSymbols finder;
  start(finder);
  UserMap map = finder.find(1, main_).map;
  map.file = "/program";
  UserSymbols symbols({.root = dir_.path()});
  symbols.add_map(1, map);
  EXPECT_EQ(symbols.find(1, main_).function, "main");
}

// A private tmpfs over the directory: what the process calls DIR/program is not there for us.
TEST_F(Processes, InAMountNamespace) {
  if (::geteuid() != 0) GTEST_SKIP() << "namespaces need root";
  test::compile(dir_, "program", "-fPIE -pie");
  dir_.write("place/empty", "");
  const std::string place = dir_ / "place";
  Child child({"unshare", "-m", "sh", "-c",
               "mount -t tmpfs none " + place + " && cp " + (dir_ / "program") + " " + place +
                   "/inside && exec " + place + "/inside"});
  const uint64_t address = std::stoull(child.line(), nullptr, 16);
  ASSERT_FALSE(std::filesystem::exists(place + "/inside"));
  UserSymbols symbols;
  ASSERT_TRUE(symbols.read_proc(1, child.pid()));
  EXPECT_EQ(symbols.find(1, address).function, "main");
  EXPECT_EQ(symbols.find(1, address).map.file, place + "/inside");
  EXPECT_TRUE(symbols.warnings().empty());
}

TEST_F(Processes, JitInAContainer) {
  if (::geteuid() != 0) GTEST_SKIP() << "namespaces need root";
  const std::string script =
      "mount -t tmpfs none /tmp && echo 10100 40 jitted > /tmp/perf-$$.map && echo $$ && exec cat";
  Child child({"unshare", "-m", "-p", "-f", "sh", "-c", script});
  EXPECT_EQ(child.line(), "1") << "its pid in there";
  const std::string outer = std::to_string(child.pid());
  const std::string children = test::read_file("/proc/" + outer + "/task/" + outer + "/children");
  const auto pid = static_cast<uint32_t>(std::stoul(children));
  UserSymbols symbols;
  symbols.set_pid(1, pid);
  symbols.add_map(1, {.start = 0x10000, .end = 0x20000, .file = "//anon"});
  EXPECT_EQ(symbols.find(1, 0x10100).function, "jitted");
}

TEST_F(Processes, InfoOfOurselves) {
  const auto info = read_process_info(static_cast<uint32_t>(::getpid()));
  ASSERT_TRUE(info);
  EXPECT_EQ(info->root, nullptr);
  EXPECT_EQ(info->uid, ::getuid());
  EXPECT_GT(info->start_time, 0U);
  EXPECT_FALSE(read_process_info(4'190'000));
}

}  // namespace
}  // namespace pkprof
