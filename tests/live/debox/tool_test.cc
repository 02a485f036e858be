// SPDX-License-Identifier: Apache-2.0
// The command pkprof debox: its table and file, what is preloaded, programs that it attaches to.
#include <gtest/gtest.h>

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "debox/records.h"
#include "scenario.h"

namespace pkprof::live {
namespace {

using nlohmann::json;

class DeboxToolTest : public testing::Test {
 protected:
  void SetUp() override { skip_unless_able(); }

  Turn turn_{Turn::Kind::beside_others};
};

// What cannot be changed is marked by what is preloaded.
TEST_F(DeboxToolTest, AProgramIsMarkedByAPreload) {
  const TempDir dir;
  const std::string out = dir.file("records");
  const Finished done = run_pkprof(
      {"debox", "--serve", "--", "env", "LD_PRELOAD=" + testnet::sibling("libdebox-preload.so.1"),
       "DEBOX_OUT=" + out, testnet::sibling("pk_blocking_pie"), "100"});
  EXPECT_EQ(done.status, 0) << done.err;
  std::istringstream lines(read_file(out));
  std::map<std::string, int> calls;
  for (std::string line; std::getline(lines, line);) {
    const json record = json::parse(line);
    if (record.at("voluntary") == 1) ++calls[record.at("call")];
  }
  EXPECT_EQ(calls["nanosleep"], 10);
}

// The C library has other functions for programs that are built to be careful.
TEST_F(DeboxToolTest, APreloadMarksCheckedFunctions) {
  const TempDir dir;
  const std::string out = dir.file("records");
  const Finished done = run_pkprof(
      {"debox", "--serve", "--", "env", "LD_PRELOAD=" + testnet::sibling("libdebox-preload.so.1"),
       "DEBOX_OUT=" + out, testnet::sibling("pk_fortified"), "100", "512"});
  EXPECT_EQ(done.status, 0) << done.err;
  std::istringstream lines(read_file(out));
  int reads = 0;
  for (std::string line; std::getline(lines, line);) {
    const json record = json::parse(line);
    if (record.at("call") == "read" && record.at("result") == 512) ++reads;
  }
  EXPECT_EQ(reads, 100);
}

// A program that knows nothing of it: each of its calls, by kind.
TEST_F(DeboxToolTest, TheTableHasEveryCall) {
  const TempDir dir;
  const std::string out = dir.file("records");
  const Finished done = run_pkprof(
      {"debox", "-o", out, "--", "dd", "if=/dev/zero", "of=/dev/null", "bs=4096", "count=100"});
  EXPECT_EQ(done.status, 0) << done.err;
  std::istringstream lines(read_file(out));
  int reads = 0;
  uint64_t records = 0;
  for (std::string line; std::getline(lines, line); ++records) {
    const json record = json::parse(line);
    if (record.at("call") == "read" && record.at("result") == 4096 &&
        record.at("arguments").at(2) == 4096)
      ++reads;
  }
  EXPECT_EQ(reads, 100);
  EXPECT_NE(done.out.find(std::to_string(records) + " system calls"), std::string::npos)
      << done.out;
  EXPECT_NE(done.out.find("\nread "), std::string::npos) << done.out;
}

// Of programs that are gone when their records are read.
TEST_F(DeboxToolTest, StacksOfShortLivedProgramsHaveNames) {
  const TempDir dir;
  const std::string out = dir.file("records");
  const std::string program = testnet::sibling("pk_seamless_frames") + " 0.01";
  const Finished done = run_pkprof({"debox", "--stacks", "--filter", "read", "-o", out, "--", "sh",
                                    "-c", program + " && " + program + " && true"});
  EXPECT_EQ(done.status, 0) << done.err;
  std::istringstream lines(read_file(out));
  std::map<uint64_t, int> reads;  // by process
  for (std::string line; std::getline(lines, line);) {
    const json record = json::parse(line);
    if (record.at("result") != 1 << 20) continue;
    ++reads[number(record, "pid")];
    EXPECT_TRUE(record.at("stack").at(0).get<std::string>().starts_with("read_zeros")) << record;
  }
  EXPECT_EQ(reads.size(), 2U);
}

// Without frame pointers.
TEST_F(DeboxToolTest, StacksReachTheProgramsBeginning) {
  const TempDir dir;
  const std::string out = dir.file("records");
  write_file(dir.file("text"), "text");
  const Finished done =
      run_pkprof({"debox", "--stacks", "--filter", "read", "-o", out, "--", "/usr/bin/python3",
                  "-c", "open('" + dir.file("text") + "').read()"});
  EXPECT_EQ(done.status, 0) << done.err;
  std::istringstream lines(read_file(out));
  int whole = 0;
  int all = 0;
  for (std::string line; std::getline(lines, line);) {
    const json record = json::parse(line);
    const auto stack = record.at("stack").get<std::vector<std::string>>();
    // The dynamic linker reads libraries before the program begins.
    if (std::ranges::none_of(stack, [](const auto& f) { return f.starts_with("Py_"); })) continue;
    ++all;
    whole += stack.back().starts_with("_start") || stack.back().starts_with("python3") ? 1 : 0;
  }
  EXPECT_GT(all, 10);
  EXPECT_EQ(whole, all);
}

// It has the program's addresses in it.
TEST_F(DeboxToolTest, ItsFileIsItsOwnersAlone) {
  const TempDir dir;
  const std::string out = dir.file("records");
  EXPECT_EQ(run_pkprof({"debox", "--no-async", "-o", out, "--", "true"}).status, 0);
  struct stat info{};
  ASSERT_EQ(stat(out.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600U);
}

// What fails leaves it as it was, before it begins and after.
TEST_F(DeboxToolTest, ItsFileStaysWhereThereAreNoRecords) {
  const TempDir dir;
  const std::string out = dir.file("records");
  const std::string old = "{\"call\":\"read\"}\n";
  write_file(out, old);
  EXPECT_EQ(run_pkprof({"debox", "-o", out, "-p", "4000000"}).status, 125);
  EXPECT_EQ(read_file(out), old);
  EXPECT_EQ(run_pkprof({"debox", "-o", out, "--filter", "no_such_call", "--", "true"}).status, 125);
  EXPECT_EQ(read_file(out), old);
  EXPECT_EQ(run_pkprof({"debox", "-o", out, "--", "/no/such/command"}).status, 127);
  EXPECT_EQ(read_file(out), old);
  EXPECT_EQ(run_pkprof({"debox", "-o", out, "--filter", "reboot", "--", "true"}).status, 0);
  EXPECT_EQ(read_file(out), "") << "there was none";
}

TEST_F(DeboxToolTest, ItsFileIsWholeAfterASignal) {
  const TempDir dir;
  const std::string out = dir.file("records");
  Running pkprof(pkprof_argv({"debox", "--no-async", "-o", out, "--", "sh", "-c",
                              "while true; do read line </proc/uptime; done"}));
  const auto deadline = std::chrono::steady_clock::now() + patience();
  while (read_file(out).empty() && std::chrono::steady_clock::now() < deadline)
    poll(nullptr, 0, 10);
  const std::set<int> family = with_children(pkprof.pid(), 1);
  pkprof.signal(SIGTERM);
  EXPECT_EQ(pkprof.wait(), 0) << pkprof.err();
  for (const int pid : family)
    if (pid != pkprof.pid()) kill(pid, SIGKILL);
  const std::string text = read_file(out);
  ASSERT_TRUE(text.ends_with("}\n"));
  std::istringstream lines(text);
  uint64_t records = 0;
  for (std::string line; std::getline(lines, line); ++records)
    EXPECT_TRUE(json::accept(line)) << line;
  EXPECT_GT(records, 0U);
}

// Where a file that it reads at its beginning is on a disk that does not answer.
TEST_F(DeboxToolTest, ASignalEndsItWhileItReads) {
  utsname kernel{};
  ASSERT_EQ(uname(&kernel), 0);
  if (!std::filesystem::is_directory("/boot")) GTEST_SKIP() << "needs /boot";
  const std::string file = std::string("/boot/vmlinux-") + kernel.release;
  Running pkprof(pkprof_argv({"debox", "--no-async", "--", "true"}),
                 {.env = {}, .out_path = {}, .before_exec = [&file] {
                    if (unshare(CLONE_NEWNS) || mount("", "/", nullptr, MS_REC | MS_PRIVATE, "") ||
                        mount("none", "/boot", "tmpfs", 0, "") || mkfifo(file.c_str(), 0600))
                      _exit(99);
                  }});
  const std::string doing = "/proc/" + std::to_string(pkprof.pid()) + "/wchan";
  const auto deadline = std::chrono::steady_clock::now() + patience();
  while (read_file(doing) != "wait_for_partner" && std::chrono::steady_clock::now() < deadline)
    poll(nullptr, 0, 10);
  pkprof.signal(SIGTERM);
  EXPECT_EQ(pkprof.wait(10s), 128 + SIGTERM);
}

// The program itself is the one that is named.
TEST_F(DeboxToolTest, WithoutFollowingTheCommandIsThereItself) {
  const Finished done = run_pkprof(
      {"debox", "--no-async", "--no-follow", "--", "sh", "-c", "umask 077; cat /dev/null; exit 3"});
  EXPECT_EQ(done.status, 3) << done.err;
  EXPECT_NE(done.out.find("\numask "), std::string::npos) << done.out;
  EXPECT_EQ(done.out.find("\nfadvise64 "), std::string::npos) << done.out;
}

// Calls may come faster than records of them are read; of all but the slowest none are wanted, and
// each is counted. An emulated CPU is slow at reading them, too.
TEST_F(DeboxToolTest, AFloodOfCallsDoesNotDrownIt) {
  const Finished done =
      run_pkprof({"debox", "--", testnet::sibling("pk_syscall_static"), "3000000"});
  EXPECT_EQ(done.status, 0) << done.err;
  uint64_t lost = 0;
  if (const size_t at = done.out.find(" records were lost"); at != std::string::npos)
    lost = std::stoull(done.out.substr(done.out.rfind(' ', at - 1) + 1));
  EXPECT_LT(lost, in_guest() ? 1'500'000 : 300'000) << done.out;
  std::smatch row;
  ASSERT_TRUE(std::regex_search(done.out, row, std::regex("getppid +([0-9]+) "))) << done.out;
  EXPECT_EQ(row[1], "3000000") << done.out;
}

TEST_F(DeboxToolTest, LooksAtSomeCallsOnly) {
  const Finished done = run_pkprof({"debox", "--filter", "clock_nanosleep", "--", "sleep", "0.1"});
  EXPECT_EQ(done.status, 0) << done.err;
  EXPECT_NE(done.out.find("1 system calls"), std::string::npos) << done.out;
  EXPECT_NE(run_pkprof({"debox", "--filter", "no_such_call", "--", "true"}).status, 0);
}

TEST_F(DeboxToolTest, TheCommandsStatusIsOurs) {
  EXPECT_EQ(run_pkprof({"debox", "--", "sh", "-c", "exit 7"}).status, 7);
  EXPECT_EQ(run_pkprof({"debox", "--", "/no/such/command"}).status, 127);
  EXPECT_EQ(run_pkprof({"debox"}).status, 2);
  EXPECT_EQ(run_pkprof({"debox", "-p", "999999999"}).status, 125);
}

// A program that runs already, and that uses the library.
TEST_F(DeboxToolTest, AttachesToAProgramThatMarksItsCalls) {
  const TempDir dir;
  Running program({testnet::sibling("pk_debox"), "--wait", "60", "--file", dir.file("data")});
  Running pkprof(pkprof_argv({"debox", "--attach", std::to_string(program.pid())}));
  EXPECT_EQ(program.wait(), 0) << program.err();
  EXPECT_EQ(pkprof.wait(), 0) << "it ends with the program: " << pkprof.err();
  const Records records(program.out());
  EXPECT_EQ(records.one("begins").at("truth").at("serves"), true);
  expect_sleep(records.all("sleep").at(0).at("record"), "nanosleep");
}

// Which has a network of its own, and other numbers for its processes.
TEST_F(DeboxToolTest, AttachesToAProgramInAContainer) {
  for (const char* tool : {"unshare", "ip"})
    if (find_program(tool).empty()) GTEST_SKIP() << "needs " << tool;
  const TempDir dir;
  Running container({find_program("unshare"), "--net", "--pid", "--fork", "--kill-child", "sh",
                     "-c",
                     "ip link set lo up && exec " + testnet::sibling("pk_debox") +
                         " --wait 60 --file " + dir.file("data")});
  std::set<int> pids = with_children(container.pid(), 1);
  pids.erase(container.pid());
  ASSERT_EQ(pids.size(), 1U);
  Running pkprof(pkprof_argv({"debox", "--attach", std::to_string(*pids.begin())}));
  EXPECT_EQ(container.wait(), 0) << container.err();
  EXPECT_EQ(pkprof.wait(), 0) << pkprof.err();
  const Records records(container.out());
  EXPECT_EQ(records.one("begins").at("truth").at("serves"), true);
  const json nothing = records.one("nothing");
  EXPECT_EQ(nothing.at("truth").at("pid"), 1) << "its own number";
  expect_sleep(records.all("sleep").at(0).at("record"), "nanosleep");
}

}  // namespace
}  // namespace pkprof::live
