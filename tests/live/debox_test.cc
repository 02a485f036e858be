// SPDX-License-Identifier: Apache-2.0
// DeBox: a program that knows what its calls do reads their records (pk_debox), marked and with all
// calls recorded; and the table of pkprof debox.
#include <gtest/gtest.h>

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <regex>
#include <set>

#include "debox_records.h"
#include "scenario.h"
#include "testdisk.h"

namespace pkprof::live {
namespace {

using nlohmann::json;

constexpr uint32_t by_process = 1;
constexpr uint32_t by_softirq = 3;
constexpr uint32_t by_interrupt = 4;
constexpr uint32_t unknown = UINT32_MAX;

// On a device that has a driver of its own: not in memory, nor on a loop device.
bool lies_on_a_disk(const char* path) {
  struct stat info{};
  if (stat(path, &info)) return false;
  const std::string device = "/sys/dev/block/" + std::to_string(major(info.st_dev)) + ":" +
                             std::to_string(minor(info.st_dev));
  return std::filesystem::exists(device) && !std::filesystem::exists(device + "/loop");
}

class DeboxTest : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    skip_unless_able();
    if (IsSkipped()) return;
    auto disk = testnet::Disk::create({});
    if (!disk) GTEST_SKIP() << disk.error().message;
    disk_.emplace(std::move(*disk));
    file_ = disk_->path("file");
  }

  // The files that it reads are on a disk of their own.
  Records records_of(const Argv& arguments, const Argv& options = {}) {
    Argv command{"debox"};
    command.insert(command.end(), options.begin(), options.end());
    for (const std::string& word :
         {std::string("--"), testnet::sibling("pk_debox"), std::string("--file"), file_})
      command.push_back(word);
    if (GetParam()) command.emplace_back("--all-calls");
    command.insert(command.end(), arguments.begin(), arguments.end());
    const Finished done = run_pkprof(command);
    EXPECT_EQ(done.status, 0) << done.err << done.out;
    return Records(done.out);
  }

  Turn turn_;
  std::optional<testnet::Disk> disk_;
  std::string file_;  // that it reads
};

uint64_t number(const json& of, const char* name) {
  return of.at(name).get<uint64_t>();
}

// Asleep at least so long, and not longer than the call took by the program's own clock. Where
// another thread ends it, that one's clock may have begun long before: then it slept nearly all of
// the time.
void expect_time(const json& said, bool ended_by_another = false) {
  const json& record = said.at("record");
  const uint64_t truth = number(said.at("truth"), "ns");
  const uint64_t asleep = number(record, "asleep_ns");
  const uint64_t off = asleep + number(record, "runnable_ns");
  const uint64_t wall = number(record, "wall_ns");
  if (ended_by_another)
    EXPECT_GE(off + 5'000'000, wall - wall / 10) << said;
  else
    EXPECT_GE(asleep, truth - truth / (in_guest() ? 10 : 20)) << said;  // its way there is longer
  EXPECT_LE(off, wall) << said;
  EXPECT_LE(wall, number(said, "outer_ns")) << said;
}

// Where it waited for what it was to wait for: it may have met a lock besides, which is soon had.
json expect_sleep(const json& record, const std::string& place) {
  json found;
  uint64_t total = 0;
  for (const json& sleep : record.at("sleeps")) {
    total += number(sleep, "total_ns");
    if (sleep.at("place").get<std::string>().find(place) != std::string::npos) found = sleep;
  }
  EXPECT_EQ(total, number(record, "asleep_ns"));
  EXPECT_GE(number(record, "wall_ns"), number(record, "asleep_ns") + number(record, "runnable_ns"));
  EXPECT_TRUE(found.is_object()) << place << " " << record;
  if (!found.is_object()) return found;
  EXPECT_EQ(number(found, "count"), 1) << record;
  EXPECT_EQ(number(found, "total_ns"), number(found, "longest_ns"));
  return found;
}

TEST_P(DeboxTest, RecordsSayWhatCallsDid) {
  const Records records = records_of({"--others", "3"});
  EXPECT_EQ(records.one("begins").at("truth").at("serves"), true);

  const json nothing = records.one("nothing");
  EXPECT_EQ(nothing.at("record").at("result"), nothing.at("truth").at("result"));
  EXPECT_EQ(nothing.at("record").at("tid"), nothing.at("truth").at("tid"));
  EXPECT_EQ(number(nothing.at("record"), "voluntary"), 0);
  EXPECT_EQ(nothing.at("record").at("sleeps").size(), 0);

  const std::vector<json> sleeps = records.all("sleep");
  ASSERT_EQ(sleeps.size(), 4) << "the child's, too";
  for (const json& sleep : sleeps) {
    const json& record = sleep.at("record");
    const json slept = expect_sleep(record, "nanosleep");
    expect_time(sleep);
    EXPECT_EQ(number(record, "voluntary"), 1);
    if (slept.is_object()) {
      EXPECT_EQ(number(slept, "waker_context"), by_interrupt) << sleep;
    }
  }

  for (const auto& [what, place] :
       {std::pair("pipe", "pipe_read"), {"futex", "futex"}, {"socket", "udp"}, {"flock", "lock"}}) {
    SCOPED_TRACE(what);
    const json waited = records.one(what);
    const json& record = waited.at("record");
    const json sleep = expect_sleep(record, place);
    if (!sleep.is_object()) continue;
    EXPECT_EQ(sleep.at("waiters_entry"), waited.at("truth").at("others"));
    EXPECT_NE(sleep.at("waiters_exit"), unknown);
    EXPECT_NE(number(sleep, "resource"), 0);
    if (waited.at("truth").contains("waker") && what != std::string("socket")) {
      EXPECT_EQ(number(sleep, "waker_context"), by_process);
      EXPECT_EQ(sleep.at("waker_tid"), waited.at("truth").at("waker"));
      EXPECT_EQ(sleep.at("waker_comm"), "pk_debox");
    }
    if (what == std::string("socket")) {
      EXPECT_EQ(number(sleep, "waker_context"), by_softirq);
    }
  }

  const json faults = records.one("faults");
  const uint64_t pages = number(faults.at("truth"), "pages");
  EXPECT_EQ(number(faults.at("record"), "minor_faults"), pages);
  EXPECT_EQ(number(faults.at("record"), "major_faults"), 0);
  ASSERT_EQ(faults.at("record").at("faults").size(), pages);
  for (uint64_t i = 0; i < pages; ++i) {
    const json& fault = faults.at("record").at("faults").at(i);
    EXPECT_EQ(number(fault, "address"), number(faults.at("truth"), "address") + i * 4096);
    EXPECT_EQ(number(fault, "minor"), 1);
    EXPECT_NE(fault.at("place"), "");
  }
  EXPECT_EQ(number(records.one("no faults").at("record"), "minor_faults"), 0);

  const json disk = records.one("read from disk");
  EXPECT_EQ(disk.at("record").at("result"), disk.at("truth").at("bytes"));
  EXPECT_GT(number(disk.at("record"), "voluntary"), 0);
  EXPECT_GT(number(disk.at("record"), "asleep_ns"), 0);
  EXPECT_EQ(number(records.one("read from memory").at("record"), "voluntary"), 0);

  const json interrupted = records.one("interrupted");
  EXPECT_EQ(interrupted.at("record").at("result"), -EINTR);
  expect_time(interrupted, true);
  const json restarted = records.one("restarted");
  EXPECT_EQ(restarted.at("record").at("result"), 1);
  expect_time(restarted, true);
  for (const json& record : {interrupted.at("record"), restarted.at("record")})
    EXPECT_EQ(number(record, "signals"), 1);
  EXPECT_EQ(number(interrupted.at("record"), "restarts"), 0);
  EXPECT_EQ(number(restarted.at("record"), "restarts"), 1);

  EXPECT_EQ(number(records.one("forked").at("truth"), "status"), 0);
}

// A disk whose requests end in interrupts: the one that wakes a reader is for whoever asked for the
// pages, itself or another.
TEST_P(DeboxTest, InterruptsAreForWhoAskedForTheRequest) {
  if (!lies_on_a_disk("/var/tmp")) GTEST_SKIP() << "needs /var/tmp on a disk of its own kind";
  file_ = "/var/tmp/pk_debox." + std::to_string(getpid());
  const Records records = records_of({}, {"--budget", "100"});
  const json own = records.one("read from disk");
  bool known = false;
  for (const json& sleep : own.at("record").at("sleeps")) {
    const uint64_t context = number(sleep, "waker_context");
    if (context != by_softirq && context != by_interrupt) continue;
    known = true;
    EXPECT_EQ(sleep.at("waker_for"), own.at("record").at("pid")) << own;
  }
  EXPECT_TRUE(known) << own;
  const json another = records.one("read by another");
  EXPECT_EQ(another.at("record").at("sleeps").at(0).at("waker_for"),
            another.at("truth").at("child"));
}

TEST_P(DeboxTest, WhatIsOverwrittenIsCounted) {
  const Records records = records_of({"--calls", "100", "--records", "16"});
  const json truth = records.one("many").at("truth");
  EXPECT_EQ(number(truth, "read"), 16);
  EXPECT_GE(number(truth, "lost"), 84);  // and what was called before
  EXPECT_EQ(truth.at("in_order"), true);
}

TEST_P(DeboxTest, NoRecordIsTornNorLostUncounted) {
  const Records records = records_of({"--storm", "64", "--records", "256"});
  const json truth = records.one("storm").at("truth");
  EXPECT_GT(number(truth, "calls"), in_guest() ? 1'000 : 100'000);
  EXPECT_LT(number(truth, "read"), number(truth, "calls"));
  // With all calls recorded, others may be among the lost: those that a thread begins with.
  const uint64_t known = number(truth, "read") + number(truth, "lost");
  if (GetParam())
    EXPECT_GE(known, number(truth, "calls"));
  else
    EXPECT_EQ(known, number(truth, "calls"));
  EXPECT_EQ(number(truth, "wrong"), 0);
}

// Not even where the kernel runs no program for a moment.
TEST_P(DeboxTest, NoSleepIsLost) {
  const json truth = records_of({"--naps", "2000"}).one("naps").at("truth");
  EXPECT_EQ(number(truth, "too_short"), 0) << truth;
  EXPECT_LT(number(truth, "unseen"), number(truth, "naps") / 10) << truth;
}

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

// The program with the library in it, under a sanitizer: what that finds ends it with a status of
// its own.
class DeboxSanitizedTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    skip_unless_able();
    program_ = testnet::sibling(std::string("pk_debox_") + GetParam());
    if (find_program(program_).empty()) GTEST_SKIP() << "needs " << program_;
  }

  void expect_clean(Argv arguments) const {
    for (const char* mode : {"", "--all-calls"}) {
      Argv command{"debox", "--no-async", "--", program_};
      command.insert(command.end(), arguments.begin(), arguments.end());
      if (*mode) command.emplace_back(mode);
      const Finished done = run_pkprof(command);
      EXPECT_EQ(done.status, 0) << done.err << done.out;
      EXPECT_EQ(done.err.find("Sanitizer"), std::string::npos) << done.err;
      EXPECT_NE(done.out.find("{\"what\""), std::string::npos) << done.out;
    }
  }

  std::string program_;
  Turn turn_{Turn::Kind::beside_others};
};

TEST_P(DeboxSanitizedTest, EveryKindOfCall) {
  const TempDir dir;
  expect_clean({"--others", "2", "--file", dir.file("file")});
}

TEST_P(DeboxSanitizedTest, ManyThreads) {
  expect_clean({"--storm", "64", "--records", "64"});
}

TEST_P(DeboxSanitizedTest, Traces) {
  expect_clean({"--trace"});
}

INSTANTIATE_TEST_SUITE_P(Modes, DeboxTest, testing::Bool(),
                         [](const auto& of) { return of.param ? "AllCalls" : "Marked"; });

INSTANTIATE_TEST_SUITE_P(By, DeboxSanitizedTest, testing::Values("address", "thread"),
                         [](const auto& by) { return by.param; });

}  // namespace
}  // namespace pkprof::live
