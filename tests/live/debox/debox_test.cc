// SPDX-License-Identifier: Apache-2.0
// DeBox: a program that knows what its calls do reads their records (pk_debox), marked and with all
// calls recorded.
#include <gtest/gtest.h>

#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "debox/records.h"
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
