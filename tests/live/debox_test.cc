// SPDX-License-Identifier: Apache-2.0
// DeBox: a program that knows what its calls do reads their records (pk_debox), marked and with all
// calls recorded; and the table of pkprof debox.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "scenario.h"
#include "testdisk.h"

namespace pkprof::live {
namespace {

using nlohmann::json;

constexpr uint32_t by_process = 1;
constexpr uint32_t by_softirq = 3;
constexpr uint32_t by_interrupt = 4;
constexpr uint32_t unknown = UINT32_MAX;

// What pk_debox says, by its name.
class Records {
 public:
  explicit Records(const std::string& text) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);)
      if (line.starts_with("{\"what\"")) all_.push_back(json::parse(line));
  }
  [[nodiscard]] std::vector<json> all(const std::string& what) const {
    std::vector<json> found;
    for (const json& line : all_)
      if (line.at("what") == what) found.push_back(line);
    return found;
  }
  [[nodiscard]] json one(const std::string& what) const {
    const std::vector<json> found = all(what);
    EXPECT_FALSE(found.empty()) << what;
    return found.empty() ? json::object() : found.front();
  }

 private:
  std::vector<json> all_;
};

class DeboxTest : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    skip_unless_able();
    if (IsSkipped()) return;
    auto disk = testnet::Disk::create({});
    if (!disk) GTEST_SKIP() << disk.error().message;
    disk_.emplace(std::move(*disk));
  }

  // The files that it reads are on a disk of their own.
  Records records_of(const Argv& arguments) {
    Argv command{"debox", "--", testnet::sibling("pk_debox"), "--file", disk_->path("file")};
    if (GetParam()) command.emplace_back("--all-calls");
    command.insert(command.end(), arguments.begin(), arguments.end());
    const Finished done = run_pkprof(command);
    EXPECT_EQ(done.status, 0) << done.err << done.out;
    return Records(done.out);
  }

  Turn turn_;
  std::optional<testnet::Disk> disk_;
};

uint64_t number(const json& of, const char* name) {
  return of.at(name).get<uint64_t>();
}

// At least so long, and not much longer: the thread must get a CPU again. Where another thread ends
// it, that one's clock may have begun before.
void expect_time(uint64_t ns, uint64_t truth_ns, bool ended_by_another = false) {
  EXPECT_GE(ns, truth_ns - truth_ns / (ended_by_another ? 5 : 20));
  EXPECT_LE(ns, truth_ns + truth_ns / 2 + (in_guest() ? 400'000'000 : 20'000'000));
}

void expect_one_sleep(const json& record, const std::string& place) {
  ASSERT_EQ(record.at("sleeps").size(), 1) << record;
  const json& sleep = record.at("sleeps").at(0);
  EXPECT_NE(sleep.at("place").get<std::string>().find(place), std::string::npos) << sleep;
  EXPECT_EQ(number(sleep, "count"), 1);
  EXPECT_EQ(number(sleep, "total_ns"), number(record, "asleep_ns"));
  EXPECT_EQ(number(sleep, "total_ns"), number(sleep, "longest_ns"));
  EXPECT_GE(number(record, "wall_ns"), number(record, "asleep_ns") + number(record, "runnable_ns"));
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
    expect_one_sleep(record, "nanosleep");
    expect_time(number(record, "asleep_ns"), number(sleep.at("truth"), "ns"));
    EXPECT_EQ(number(record, "voluntary"), 1);
    EXPECT_EQ(number(record.at("sleeps").at(0), "waker_context"), by_interrupt);
  }

  for (const auto& [what, place] : {std::pair("pipe", "pipe_read"),
                                    {"futex", "futex"},
                                    {"socket", "skb_wait"},
                                    {"flock", "lock"}}) {
    SCOPED_TRACE(what);
    const json waited = records.one(what);
    const json& record = waited.at("record");
    expect_one_sleep(record, place);
    const json& sleep = record.at("sleeps").at(0);
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
  expect_time(number(interrupted.at("record"), "asleep_ns"), number(interrupted.at("truth"), "ns"),
              true);
  const json restarted = records.one("restarted");
  EXPECT_EQ(restarted.at("record").at("result"), 1);
  expect_time(number(restarted.at("record"), "asleep_ns"), number(restarted.at("truth"), "ns"),
              true);
  for (const json& record : {interrupted.at("record"), restarted.at("record")})
    EXPECT_EQ(number(record, "signals"), 1);
  EXPECT_EQ(number(interrupted.at("record"), "restarts"), 0);
  EXPECT_EQ(number(restarted.at("record"), "restarts"), 1);

  EXPECT_EQ(number(records.one("forked").at("truth"), "status"), 0);
}

TEST_P(DeboxTest, WhatIsOverwrittenIsCounted) {
  const Records records = records_of({"--calls", "100", "--records", "16"});
  const json truth = records.one("many").at("truth");
  EXPECT_EQ(number(truth, "read"), 16);
  EXPECT_GE(number(truth, "lost"), 84);  // and what was called before
  EXPECT_EQ(truth.at("in_order"), true);
}

INSTANTIATE_TEST_SUITE_P(Modes, DeboxTest, testing::Bool(),
                         [](const auto& of) { return of.param ? "AllCalls" : "Marked"; });

}  // namespace
}  // namespace pkprof::live
