// SPDX-License-Identifier: Apache-2.0
#include "process/processes.h"

#include <gtest/gtest.h>

#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include "process/proc_stat.h"

namespace pkprof {
namespace {

constexpr uint32_t kPid = 4'190'001;  // no process has it: what is known comes from events
constexpr uint64_t kLabel = uint64_t{kPid} << 32 | 1;
constexpr uint64_t kAddress = 0x5000'1000;

ProcessEvent event(ProcessEvent::Kind kind, uint64_t time) {
  ProcessEvent e;
  e.kind = kind;
  e.time = time;
  e.pid = kPid;
  e.parent = kPid - 1;
  return e;
}

class ProcessesTest : public testing::Test {
 protected:
  // A life: born at 100, an exec at 200.
  void SetUp() override {
    ProcessEvent exec = event(ProcessEvent::Kind::exec, 200);
    exec.comm = "short";
    ProcessEvent map = event(ProcessEvent::Kind::map, 201);
    map.map = {0x5000'0000, 0x5001'0000, 0, 1, 1, 1, "/no/such/program", ""};
    processes_.add_events({event(ProcessEvent::Kind::fork, 100), exec, map});
    pk_label info{};
    info.pid = kPid;
    info.seen = 210;
    info.exec_id = 1;
    processes_.add_label(kLabel, info);
  }
  std::string mapped_file() {
    return symbols_.find(processes_.image_of(kLabel, 1), kAddress).map.file;
  }

  static ProcessEvent forked(uint64_t time) {
    ProcessEvent child = event(ProcessEvent::Kind::fork, time);
    child.parent = kPid;
    child.pid = kPid + 1;
    return child;
  }
  bool child_is_selected() {
    pk_label info{};
    info.pid = kPid + 1;
    info.seen = 320;
    processes_.add_label(uint64_t{kPid + 1} << 32 | 1, info);
    return processes_.selected(uint64_t{kPid + 1} << 32 | 1);
  }

  UserSymbols symbols_;
  Processes processes_{symbols_};
};

TEST_F(ProcessesTest, AnImageIsFoundByItsExec) {
  EXPECT_EQ(mapped_file(), "/no/such/program");
  EXPECT_NE(processes_.image_of(kLabel, 0), processes_.image_of(kLabel, 1));
  EXPECT_EQ(processes_.label_of(kLabel).exe, "/no/such/program");
}

// The kernel side reads labels from the kernel's memory, where one may have gone already.
TEST_F(ProcessesTest, NoNumberIsTooStrangeForALabel) {
  for (unsigned bit = 0; bit < 64; ++bit) {
    const uint64_t strange = 1ULL << bit | 0x480000;
    EXPECT_EQ(processes_.label_of(strange).comm, "") << bit;
    EXPECT_FALSE(processes_.selected(strange)) << bit;
    EXPECT_EQ(processes_.standing_for(strange), strange) << bit;
  }
}

// What the kernel side tells of a sampled process: where it was, and which program it ran then.
TEST_F(ProcessesTest, WhatASampleMetIsOfTheImageOfThen) {
  ProcessEvent code = event(ProcessEvent::Kind::code, 220);
  code.map = {0x6000'0000, 0x6001'0000, 0, 2, 1, 1, "/no/such/library", ""};
  ProcessEvent exec = event(ProcessEvent::Kind::exec, 230);
  exec.comm = "next";
  processes_.add_events({code, exec});
  const auto file_at = [&](uint32_t exec_id, uint64_t address) {
    return symbols_.find(processes_.image_of(kLabel, exec_id), address).map.file;
  };
  EXPECT_EQ(file_at(1, 0x6000'1000), "/no/such/library");
  EXPECT_EQ(file_at(2, 0x6000'1000), "");
  pk_label info{};
  info.pid = kPid;
  info.seen = 240;
  info.exec_id = 2;
  processes_.add_label(kLabel, info, "/no/such/next");
  EXPECT_EQ(processes_.label_of(kLabel).exe, "/no/such/next") << "and not a library's name";
}

// It goes by the last name that was seen. The first since its exec is kept, too.
TEST_F(ProcessesTest, AProcessThatNamesItself) {
  const auto met = [&](uint64_t seen, uint32_t exec_id, const char* comm) {
    pk_label info{};
    info.pid = kPid;
    info.seen = seen;
    info.exec_id = exec_id;
    std::strcpy(info.comm, comm);
    std::strcpy(info.first_comm, comm);
    processes_.add_label(kLabel, info);
  };
  const auto names = [&] {
    const Label label = processes_.label_of(kLabel);
    return label.comm + " " + label.first_comm;
  };
  met(300, 2, "program");
  met(320, 2, "worker");
  met(310, 2, "between");  // of another CPU, told late
  EXPECT_EQ(names(), "worker program");
  met(330, 3, "next");
  met(325, 2, "late");
  EXPECT_EQ(names(), "next next");
  ProcessEvent exec = event(ProcessEvent::Kind::exec, 340);
  exec.comm = "last";
  processes_.add_events({exec});
  EXPECT_EQ(names(), "last last");
}

// More names than are kept of programs that come and go.
TEST_F(ProcessesTest, TheFirstNameIsKeptWhileOthersAreForgotten) {
  pk_label info{};
  info.pid = kPid;
  info.seen = 300;
  info.exec_id = 2;
  std::strcpy(info.comm, "worker");
  std::strcpy(info.first_comm, "a-first-name");
  processes_.add_label(kLabel, info);
  for (uint64_t i = 0; i < 40'000; ++i) {
    ProcessEvent exec = event(ProcessEvent::Kind::exec, 400 + i);
    exec.pid = kPid + 1;
    exec.comm = "program-" + std::to_string(i);
    processes_.add_events({exec});
    if (i % 1000 == 0) processes_.bury();
  }
  EXPECT_EQ(processes_.label_of(kLabel).first_comm, "a-first-name");
}

// A process's first thread may end long before the others.
TEST_F(ProcessesTest, WhatASampleMetAfterTheEndIsOfTheSameLife) {
  processes_.add_events({event(ProcessEvent::Kind::exit, 300)});
  processes_.bury();
  ProcessEvent code = event(ProcessEvent::Kind::code, 310);
  code.map = {0x5000'0000, 0x5001'0000, 0, 1, 1, 1, "/no/such/program", ""};
  const size_t lives = processes_.lives();
  processes_.add_events({code});
  EXPECT_EQ(processes_.lives(), lives);
  EXPECT_EQ(mapped_file(), "/no/such/program");
  processes_.bury();
  processes_.bury();
  EXPECT_EQ(mapped_file(), "") << "kept no longer than by one reading";
}

// The first one's end is told before the exec.
TEST_F(ProcessesTest, AnExecByAnotherThanTheFirstThreadIsOfTheSameLife) {
  processes_.select(kPid);
  const size_t lives = processes_.lives();
  ProcessEvent exec = event(ProcessEvent::Kind::exec, 310);
  exec.comm = "next";
  ProcessEvent map = event(ProcessEvent::Kind::map, 311);
  map.map = {0x5000'0000, 0x5001'0000, 0, 2, 1, 1, "/no/such/next", ""};
  processes_.add_events({event(ProcessEvent::Kind::exit, 300), exec, map, forked(312)});
  EXPECT_EQ(processes_.lives(), lives + 1) << "the child's";
  processes_.bury();
  processes_.bury();
  EXPECT_EQ(processes_.label_of(kLabel).exe, "/no/such/next");
  EXPECT_TRUE(child_is_selected());
}

// As after its main() has called pthread_exit().
TEST_F(ProcessesTest, WhatOtherThreadsForkAfterTheEndOfTheFirstIsItsChild) {
  processes_.select(kPid);
  processes_.add_events({event(ProcessEvent::Kind::exit, 300), forked(310)});
  EXPECT_TRUE(child_is_selected());
}

// Samples of it may be in the tables that are read next.
TEST_F(ProcessesTest, MappingsOutliveTheProcessByOneReading) {
  processes_.add_events({event(ProcessEvent::Kind::exit, 300)});
  processes_.bury();
  EXPECT_EQ(mapped_file(), "/no/such/program");
  processes_.bury();
  EXPECT_EQ(mapped_file(), "");
}

// Its last samples come after its exit was told; it is no new process for that.
TEST_F(ProcessesTest, AProcessThatIsEndingIsTheSame) {
  processes_.select(kPid);
  processes_.add_events({event(ProcessEvent::Kind::exit, 300)});
  pk_label info{};
  info.pid = kPid;
  info.seen = 310;
  info.exec_id = 1;
  processes_.add_label(kLabel, info);
  EXPECT_TRUE(processes_.selected(kLabel)) << "told before";
  info.start_boottime = 50;
  processes_.add_label(kLabel + 1, info);
  EXPECT_TRUE(processes_.selected(kLabel + 1)) << "told for the first time";
  info.start_boottime = 305;
  processes_.add_label(kLabel + 2, info);
  EXPECT_FALSE(processes_.selected(kLabel + 2)) << "began later: the pid was used again";
}

// As in a recording that goes on with nobody to hear of ends.
TEST_F(ProcessesTest, APidThatIsUsedAgainUnheardIsToldByItsStart) {
  pk_label info{};
  info.pid = static_cast<uint32_t>(getpid());
  info.seen = 1000;
  info.start_boottime = uint64_t{5} << 20;
  const uint64_t gone = uint64_t{info.pid} << 32 | 5;
  processes_.add_label(gone, info);
  EXPECT_EQ(processes_.label_of(gone).exe, "") << "what has its pid now is not it";
  std::ifstream stat("/proc/self/stat");
  std::string field;
  uint64_t ticks = 0;
  for (int i = 0; i < 21; ++i) stat >> field;
  stat >> ticks;
  info.start_boottime = ticks * 1'000'000'000 / static_cast<uint64_t>(sysconf(_SC_CLK_TCK));
  const uint64_t self = uint64_t{info.pid} << 32 | (info.start_boottime >> 20 & UINT32_MAX);
  processes_.add_label(self, info);
  EXPECT_NE(processes_.label_of(self).exe, "");
  EXPECT_EQ(processes_.label_of(gone).exe, "");
}

// Of a process that came and went between two readings no event was heard, but who forked it.
TEST_F(ProcessesTest, AChildThatIsGoneIsItsParentsChild) {
  processes_.select(kPid);
  pk_label info{};
  info.pid = kPid + 1;
  info.parent = kPid;
  info.seen = 320;
  processes_.add_label(uint64_t{kPid + 1} << 32 | 1, info);
  EXPECT_TRUE(processes_.selected(uint64_t{kPid + 1} << 32 | 1));
  info.pid = kPid + 2;
  info.parent = kPid + 3;
  processes_.add_label(uint64_t{kPid + 2} << 32 | 1, info);
  EXPECT_FALSE(processes_.selected(uint64_t{kPid + 2} << 32 | 1));
}

// Its end is told, and it goes on.
TEST_F(ProcessesTest, AProcessWhoseFirstThreadHasEndedIsNotBuried) {
  const pid_t pid = fork();
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    std::thread([] {
      for (;;) pause();
    }).detach();
    syscall(SYS_exit, 0);  // of this thread
  }
  const auto number = static_cast<uint32_t>(pid);
  while (true) {
    const auto stat = proc_stat(number);
    ASSERT_TRUE(stat);
    if (stat->threads == 2 && proc_exe(number).empty()) break;
    std::this_thread::yield();
  }
  const auto told = [&](ProcessEvent::Kind kind, uint64_t time) {
    ProcessEvent e = event(kind, time);
    e.pid = number;
    return e;
  };
  ProcessEvent map = told(ProcessEvent::Kind::map, 201);
  map.map = {0x5000'0000, 0x5001'0000, 0, 1, 1, 1, "/no/such/program", ""};
  processes_.add_events({told(ProcessEvent::Kind::fork, 100), told(ProcessEvent::Kind::exec, 200),
                         map, told(ProcessEvent::Kind::exit, 300)});
  pk_label info{};
  info.pid = number;
  info.seen = 400;
  info.exec_id = 1;
  const uint64_t label = uint64_t{number} << 32 | 1;
  processes_.add_label(label, info);
  const auto file = [&] { return symbols_.find(processes_.image_of(label, 1), kAddress).map.file; };
  for (int reading = 0; reading < 4; ++reading) processes_.bury();
  EXPECT_EQ(file(), "/no/such/program");
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
  for (int reading = 0; reading < 4; ++reading) processes_.bury();
  EXPECT_EQ(file(), "");
}

}  // namespace
}  // namespace pkprof
