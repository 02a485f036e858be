// SPDX-License-Identifier: Apache-2.0
// Off means off: after kill -9 nothing of pkprof is left in the kernel, in the file system or among
// the processes.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "scenario.h"

namespace pkprof::live {
namespace {

bool exists(const std::string& object) {
  const size_t space = object.find(' ');
  return run_program({find_program("bpftool"), object.substr(0, space), "show", "id",
                      object.substr(space + 1)})
             .status == 0;
}

class CleanupTest : public testing::Test {
 protected:
  void SetUp() override { skip_unless_able(); }

  // Waits until pkprof has its programs in the kernel and its clock runs.
  static std::set<std::string> objects_while_recording(const Running& pkprof) {
    for (int i = 0; i < 1500; ++i) {
      const std::set<std::string> objects = bpf_objects_of(pkprof.pid());
      int links = 0;
      for (const std::string& object : objects) links += object.starts_with("link");
      if (links >= 5) {
        std::this_thread::sleep_for(300ms);
        return bpf_objects_of(pkprof.pid());
      }
      std::this_thread::sleep_for(20ms);
    }
    throw std::runtime_error("pkprof does not get going: " + pkprof.err());
  }

  // Ends it, once it has got going, by a signal; what it had in the kernel then.
  static std::set<std::string> objects_when_ended(Running& pkprof, int signal, int status) {
    const std::set<std::string> objects = objects_while_recording(pkprof);
    EXPECT_GE(objects.size(), 10);
    for (const std::string& object : objects) EXPECT_TRUE(exists(object)) << object;
    pkprof.signal(signal);
    EXPECT_EQ(pkprof.wait(), status);
    return objects;
  }

  static void expect_gone(const std::set<std::string>& objects) {
    for (const std::string& object : objects) {
      bool there = true;
      for (int i = 0; i < 100 && there; ++i) {  // the kernel frees them after a grace period
        if (i > 0) std::this_thread::sleep_for(50ms);
        there = exists(object);
      }
      EXPECT_FALSE(there) << object << " is still there";
    }
  }

  static std::set<std::string> pins() {
    std::set<std::string> found;
    std::error_code ignored;
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator("/sys/fs/bpf", ignored)) {
      found.insert(entry.path());
    }
    return found;
  }

  TempDir dir_;
  std::string file_ = dir_.file("profile.pb.gz");
};

// With no pause of the hooks, in which some of what was there is not.
TEST_F(CleanupTest, NothingIsLeftAfterKill9) {
  if (find_program("bpftool").empty()) GTEST_SKIP() << "needs bpftool";
  const std::set<std::string> pinned_before = pins();
  Running pkprof(pkprof_argv({"record", "--budget", "100", "-a", "-o", file_}));
  expect_gone(objects_when_ended(pkprof, SIGKILL, 128 + SIGKILL));
  EXPECT_EQ(pins(), pinned_before);
  EXPECT_TRUE(std::filesystem::is_empty(dir_.path()));
}

// The program that uses the library goes on, and has its records' times.
TEST_F(CleanupTest, NothingIsLeftOfDebox) {
  if (find_program("bpftool").empty()) GTEST_SKIP() << "needs bpftool";
  Running program({testnet::sibling("pk_debox"), "--wait", "2", "--naps", "20000"});
  Running pkprof(pkprof_argv({"debox", "--no-async", "-p", std::to_string(program.pid())}));
  expect_gone(objects_when_ended(pkprof, SIGKILL, 128 + SIGKILL));
  EXPECT_EQ(kill(program.pid(), 0), 0);
}

// A program that is served holds the memory of its own records, as long as it lives.
TEST_F(CleanupTest, NothingIsLeftOfDeboxThatServed) {
  if (find_program("bpftool").empty()) GTEST_SKIP() << "needs bpftool";
  Running pkprof(pkprof_argv(
      {"debox", "--no-async", "--serve", "--", testnet::sibling("pk_debox"), "--naps", "20000"}));
  std::set<int> family = with_children(pkprof.pid(), 1);
  family.erase(pkprof.pid());
  const std::set<std::string> objects = objects_when_ended(pkprof, SIGKILL, 128 + SIGKILL);
  for (const int pid : family) kill(pid, SIGKILL);
  expect_gone(objects);
}

TEST_F(CleanupTest, NothingIsLeftAfterTheEnd) {
  if (find_program("bpftool").empty()) GTEST_SKIP() << "needs bpftool";
  const std::set<std::string> pinned_before = pins();
  Running pkprof(pkprof_argv({"record", "--budget", "100", "-a", "-o", file_}));
  expect_gone(objects_when_ended(pkprof, SIGINT, 0));
  EXPECT_EQ(pins(), pinned_before);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(dir_.path()), {}), 1);
}

int only_child_of(int pid) {
  std::set<int> family = with_children(pid, 0);
  family.erase(pid);
  return family.empty() ? 0 : *family.begin();
}

// The command waits at its gate while pkprof gets ready; with pkprof gone it must not run.
TEST_F(CleanupTest, AWaitingCommandDiesWithPkprof) {
  const std::string mark = dir_.file("it-ran");
  Running pkprof(pkprof_argv({"record", "-o", file_, "--", "touch", mark}));
  int child = 0;
  for (int i = 0; i < 5000 && child == 0; ++i) {
    child = only_child_of(pkprof.pid());
    if (child == 0) std::this_thread::sleep_for(1ms);
  }
  ASSERT_NE(child, 0);
  pkprof.signal(SIGKILL);
  pkprof.wait();
  for (int i = 0; i < 200 && kill(child, 0) == 0; ++i) std::this_thread::sleep_for(10ms);
  EXPECT_NE(kill(child, 0), 0) << "the command is still waiting";
  EXPECT_TRUE(std::filesystem::is_empty(dir_.path()));
}

// A command that runs is the user's: it goes on.
TEST_F(CleanupTest, ARunningCommandIsLeftAlone) {
  const std::string mark = dir_.file("it-ran");
  const char* const seconds = in_guest() ? "10" : "1";
  Running pkprof(pkprof_argv(
      {"record", "-o", file_, "--", "sh", "-c", "sleep \"$1\"; touch \"$0\"", mark, seconds}));
  objects_while_recording(pkprof);
  std::this_thread::sleep_for(in_guest() ? 3s : 500ms);
  pkprof.signal(SIGKILL);
  pkprof.wait();
  for (int i = 0; i < 2000 && !std::filesystem::exists(mark); ++i) {
    std::this_thread::sleep_for(10ms);
  }
  EXPECT_TRUE(std::filesystem::exists(mark));
  EXPECT_FALSE(std::filesystem::exists(file_));
}

}  // namespace
}  // namespace pkprof::live
