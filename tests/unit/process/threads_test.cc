// SPDX-License-Identifier: Apache-2.0
// Threads that are labels of their own, see Processes.
#include <gtest/gtest.h>

#include <pthread.h>
#include <unistd.h>

#include <fstream>
#include <future>
#include <sstream>
#include <string>
#include <thread>

#include "process/processes.h"

namespace pkprof {
namespace {

constexpr uint32_t kProcess = 4'190'001;        // no process has it
constexpr uint64_t kStart = uint64_t{5} << 20;  // of the process

// Two threads of a process are told, by their own numbers.
class ThreadsTest : public testing::Test {
 protected:
  void SetUp() override {
    processes_.add_label(kMain, info(kProcess, "main"));
    processes_.add_label(kWorker, info(kProcess + 1, "worker"));
  }
  static pk_label info(uint32_t tid, const std::string& comm) {
    pk_label info{};
    info.pid = kProcess;
    info.tid = tid;
    info.start_boottime = kStart + 77;
    info.seen = 1000;
    std::string("leader").copy(info.comm, sizeof(info.comm) - 1);
    comm.copy(info.thread_comm, sizeof(info.thread_comm) - 1);
    return info;
  }
  static constexpr uint64_t kMain = uint64_t{kProcess} << 32 | 5;
  static constexpr uint64_t kWorker = uint64_t{kProcess + 1} << 32 | 9;
  static constexpr uint64_t kAny = PK_ANY_THREAD | kMain;

  UserSymbols symbols_;
  Processes processes_{symbols_, true};
};

TEST_F(ThreadsTest, AreOfOneProcess) {
  const Label main = processes_.label_of(kMain);
  EXPECT_EQ(main.pid, kProcess);
  EXPECT_EQ(main.start_ns, kStart + 77);
  EXPECT_EQ(main.comm, "leader");
  EXPECT_EQ(processes_.label_of(kWorker), main);
  EXPECT_EQ(processes_.label_of(kAny), main) << "told with any of its threads";
}

TEST_F(ThreadsTest, HaveIdsAndNames) {
  EXPECT_EQ(processes_.thread_of(kWorker), kProcess + 1);
  EXPECT_EQ(processes_.thread_name(kWorker), "worker");
  EXPECT_EQ(processes_.thread_of(kMain), kProcess);
  EXPECT_EQ(processes_.thread_of(kAny), 0u) << "which one is not known";
}

// A server that has a thread for each request.
TEST_F(ThreadsTest, ThatEndedAreTheirProcesssWhileThatGoesOn) {
  Processes processes(symbols_, true, 16);
  pk_label info = ThreadsTest::info(kProcess, "request");
  info.pid = static_cast<uint32_t>(getpid());
  const uint64_t process = PK_ANY_THREAD | uint64_t{info.pid} << 32 | info.start_boottime >> 20;
  const auto label_of_thread = [](uint32_t i) { return uint64_t{kProcess + i} << 32 | 9; };
  for (uint32_t i = 0; i < 64; ++i) {
    info.tid = kProcess + i;
    processes.add_label(label_of_thread(i), info);
  }
  processes.fold();
  EXPECT_EQ(processes.folded(), 0U);
  EXPECT_GE(processes.folded_threads(), 50U);
  EXPECT_EQ(processes.standing_for(label_of_thread(50)), process);
  EXPECT_EQ(processes.standing_for(process), process);
  EXPECT_EQ(processes.label_of(process).comm, "leader");
}

TEST_F(ThreadsTest, AreSelectedWithTheirProcess) {
  EXPECT_FALSE(processes_.selected(kWorker));
  processes_.select(kProcess);
  EXPECT_TRUE(processes_.selected(kWorker));
  EXPECT_TRUE(processes_.selected(kAny));
}

TEST_F(ThreadsTest, RunTheirProcesssProgram) {
  EXPECT_EQ(processes_.image_of(kWorker, 0), processes_.image_of(kMain, 0));
  EXPECT_NE(processes_.image_of(kWorker, 0), 0u);
}

TEST_F(ThreadsTest, OfTheKernelAreOne) {
  pk_label kthread = info(kProcess + 9, "kthread");
  kthread.pid = kProcess + 9;
  kthread.flags = PK_LABEL_KTHREAD;
  const uint64_t label = uint64_t{kProcess + 9} << 32 | 5;
  processes_.add_label(label, kthread);
  EXPECT_EQ(processes_.thread_of(label | PK_ANY_THREAD), kProcess + 9);
}

// A thread that no sample met, asked for while it lives.
TEST_F(ThreadsTest, AreMetInProc) {
  const auto self = static_cast<uint32_t>(getpid());
  std::promise<uint32_t> tid;
  std::promise<void> done;
  std::jthread thread([&] {
    pthread_setname_np(pthread_self(), "sleeper");
    tid.set_value(static_cast<uint32_t>(gettid()));
    done.get_future().wait();
  });
  const uint32_t number = tid.get_future().get();
  std::ifstream in("/proc/self/task/" + std::to_string(number) + "/stat");
  std::string stat;
  std::getline(in, stat);
  std::istringstream rest(stat.substr(stat.rfind(')') + 2));
  uint64_t ticks = 0;
  std::string field;
  for (int i = 3; i <= 22 && rest >> field; ++i) ticks = std::strtoull(field.c_str(), nullptr, 10);
  const uint64_t start = ticks * (1'000'000'000 / static_cast<uint64_t>(sysconf(_SC_CLK_TCK)));
  const uint64_t label = uint64_t{number} << 32 | static_cast<uint32_t>(start >> 20);
  processes_.meet(label);
  EXPECT_EQ(processes_.label_of(label).pid, self);
  EXPECT_EQ(processes_.thread_name(label), "sleeper");
  EXPECT_EQ(processes_.thread_of(label), number);
  done.set_value();
}

TEST_F(ThreadsTest, WithoutThreadsALabelHasNone) {
  Processes processes(symbols_);
  processes.add_label(kMain, info(kProcess, "main"));
  EXPECT_EQ(processes.thread_of(kMain), 0u);
  EXPECT_EQ(processes.label_of(kMain).pid, kProcess);
}

}  // namespace
}  // namespace pkprof
