// SPDX-License-Identifier: Apache-2.0
// Files that never answer: on a FUSE mount whose server does nothing.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>

#include "fixture.h"
#include "symbol/reader_thread.h"
#include "symbol/symbolizer.h"

namespace pkprof {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using test::TempDir;

// Blocks until this end of the pipe is closed.
class Blocker {
 public:
  Blocker() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("pipe");
    read_ = ends[0];
    write_ = Fd(ends[1]);
  }
  [[nodiscard]] auto job() const {
    return [fd = read_] {
      char byte = 0;
      return ::read(fd, &byte, 1);
    };
  }

 private:
  int read_ = -1;  // of the thread that is left behind
  Fd write_;
};

TEST(ReaderThread, WhatIsBlockedIsGivenUp) {
  ReaderThread reader;
  EXPECT_EQ(reader.run([] { return 1; }), 1);
  const Blocker blocker;
  const auto start = Clock::now();
  EXPECT_FALSE(reader.run(blocker.job()));
  EXPECT_GE(Clock::now() - start, ReaderThread::longest);
  EXPECT_LT(Clock::now() - start, 2 * ReaderThread::longest);
  EXPECT_EQ(reader.run([] { return 2; }), 2) << "on another thread";
}

TEST(ReaderThread, WhatComputesIsNotGivenUp) {
  ReaderThread reader;
  const auto compute = [] {
    timespec used = {};
    do {
      ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    } while (used.tv_sec * 1000 + used.tv_nsec / 1'000'000 <
             (ReaderThread::longest * 5 / 4).count());
    return true;
  };
  EXPECT_TRUE(reader.run(compute));
}

// However many are blocked, together they hold up little, and one that answers is no more counted.
TEST(ReaderThread, TogetherTheyHoldUpLittle) {
  ReaderThread reader;
  const auto start = Clock::now();
  {
    std::vector<Blocker> blockers(ReaderThread::most_given_up);
    for (const Blocker& blocker : blockers) EXPECT_FALSE(reader.run(blocker.job()));
    EXPECT_FALSE(reader.run([] { return 1; })) << "too many are blocked";
    EXPECT_LT(Clock::now() - start, 2 * ReaderThread::longest + (ReaderThread::most_given_up + 20) *
                                                                    ReaderThread::shortest);
  }
  std::optional<int> answer;
  while (!answer && Clock::now() - start < std::chrono::seconds(60))
    answer = reader.run([] { return 1; });
  EXPECT_EQ(answer, 1);
}

class Silent : public ::testing::Test {
 protected:
  void SetUp() override {
    server_ = Fd(::open("/dev/fuse", O_RDWR | O_CLOEXEC));
    const std::string options =
        "fd=" + std::to_string(server_.get()) + ",rootmode=40000,user_id=0,group_id=0,allow_other";
    if (!server_.valid() || ::mount("silent", dir_.path().c_str(), "fuse", MS_NOSUID | MS_NODEV,
                                    options.c_str()) != 0) {
      GTEST_SKIP() << "no FUSE mount is to be had here";
    }
    mounted_ = true;
  }
  void TearDown() override {
    server_.reset();  // what waits for it fails now
    if (mounted_) ::umount2(dir_.path().c_str(), MNT_DETACH);
  }
  TempDir dir_;
  Fd server_;
  bool mounted_ = false;
};

TEST_F(Silent, AProgramIsGivenUpAndNamed) {
  UserSymbols symbols;
  const auto start = Clock::now();
  for (uint64_t process = 1; process < 100; ++process) {
    symbols.add_map(
        process,
        {.start = 0x1000, .end = 0x2000, .inode = 5, .device_minor = 50, .file = dir_ / "program"});
    EXPECT_EQ(symbols.find(process, 0x1000).function, "");
  }
  EXPECT_LT(Clock::now() - start, 2 * ReaderThread::longest) << "it was asked once";
  ASSERT_EQ(symbols.warnings().size(), 1U);
  EXPECT_EQ(symbols.warnings()[0],
            (dir_ / "program") + ": does not answer; its functions have no names");
}

TEST_F(Silent, AsIsAPerfMap) {
  TempDir root;
  root.write("tmp/empty", "");
  const std::string map = root.path() + "/tmp";
  ASSERT_EQ(::mount(dir_.path().c_str(), map.c_str(), nullptr, MS_BIND, nullptr), 0);
  {
    UserSymbols symbols({.root = root.path()});
    symbols.add_map(1, {.start = 0x1000, .end = 0x2000, .file = "//anon"});
    symbols.set_pid(1, 4'190'000);
    EXPECT_EQ(symbols.find(1, 0x1000).function, "");
    ASSERT_EQ(symbols.warnings().size(), 1U);
    EXPECT_NE(symbols.warnings()[0].find("does not answer"), std::string::npos);
  }
  ::umount2(map.c_str(), MNT_DETACH);
}

}  // namespace
}  // namespace pkprof
