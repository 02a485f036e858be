// SPDX-License-Identifier: Apache-2.0
// What threads waited for and for whom, against what a program says of its own waits.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "scenario.h"
#include "testdisk.h"

namespace pkprof::accuracy {
namespace {

using live::Argv;
using Json = nlohmann::json;

class WaitsTest : public testing::Test {
 protected:
  void SetUp() override {
    live::skip_unless_able();
    if (IsSkipped()) return;
    PKPROF_NEEDS("waits: the waiting thread's stack");
  }

  // Records the mode: what it says, and what is said of it.
  void run(const std::string& mode, const Argv& arguments = {}) {
    const std::string file = dir_.file("waits.pb.gz");
    Argv argv = {"record", "-q", "--resource", "wait", "--budget",
                 "100",    "-o", file,         "--",   testnet::sibling("pk_wait"),
                 mode};
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    const live::Finished done = live::run_pkprof(argv);
    ASSERT_EQ(done.status, 0) << done.err;
    truth_ = Json::parse(done.out);
    const live::Finished report = live::run_pkprof({"report", file, "--view", "waits", "--json"});
    ASSERT_EQ(report.status, 0) << report.err;
    report_ = Json::parse(report.out);
    live::read_report(file);  // the ledger of CPU time sums beside it
  }

  // Seconds that the process waited for a kind of thing; of `whom` (a pid) alone, if that is given.
  [[nodiscard]] double waited(const std::string& kind, int whom = 0) const {
    double ns = 0;
    for (const Json& row : report_["waits"]) {
      if (row["who"]["pid"] != truth_["pid"]) continue;
      for (const Json& reason : row["reasons"]) {
        const bool is_it = whom == 0 || (reason["for"].is_object() && reason["for"]["pid"] == whom);
        if (reason["kind"] == kind && is_it) ns += reason["ns"].get<double>();
      }
    }
    return ns / 1e9;
  }
  [[nodiscard]] double all() const {
    for (const Json& row : report_["waits"])
      if (row["who"]["pid"] == truth_["pid"])
        return (row["wait_ns"].get<double>() + row["idle_ns"].get<double>() +
                row["cpu_ns"].get<double>()) /
               1e9;
    return 0;
  }
  [[nodiscard]] double truth() const { return truth_["waited_ns"].get<double>() / 1e9; }
  [[nodiscard]] int other() const { return truth_["other"].get<int>(); }
  static void expect_near(double found, double truth, double percent) {
    EXPECT_NEAR(found, truth, truth * percent / 100);
    RecordProperty("found", std::to_string(found));
    RecordProperty("truth", std::to_string(truth));
  }
  // For whom it was: all but a hundredth.
  void expect_for(const std::string& kind, int whom) const {
    EXPECT_GE(waited(kind, whom), 0.99 * waited(kind)) << report_["waits"].dump(1);
  }

  live::TempDir dir_;
  live::Turn turn_;
  Json truth_;
  Json report_;
};

// To wake up takes a while after the timer.
TEST_F(WaitsTest, Sleeps) {
  run("sleep");
  expect_near(waited("timer") + waited("runnable"), truth(), 2);
  EXPECT_LE(waited("runnable"), 0.1 * waited("timer"));
}

TEST_F(WaitsTest, Mutex) {
  run("mutex");
  expect_near(waited("lock"), truth(), 5);
  expect_for("lock", other());
}

TEST_F(WaitsTest, Pipe) {
  run("pipe");
  expect_near(waited("reply") + waited("runnable"), truth(), 5);
  expect_for("reply", other());
}

TEST_F(WaitsTest, Tcp) {
  run("tcp");
  expect_near(waited("reply") + waited("runnable"), truth(), 5);
  expect_for("reply", other());
}

TEST_F(WaitsTest, QueuedBehindAnother) {
  run("hogs");
  expect_near(waited("runnable"), truth(), 5);
  EXPECT_GE(waited("runnable", other()), 0.95 * waited("runnable"));
}

// This disk does one thing after the other. What reads take longer beside a writer they are behind
// it at most: their own part takes longer, too, with the CPU's caches full of what is written.
TEST_F(WaitsTest, BehindAnotherAtTheDisk) {
  const auto disk = testnet::Disk::create({}), other_disk = testnet::Disk::create({});
  ASSERT_TRUE(disk) << disk.error().message;
  ASSERT_TRUE(other_disk) << other_disk.error().message;
  run("disk", {disk->path(""), other_disk->path("")});
  expect_near(waited("disk"), truth(), 5);
  const double behind = truth_["took_ns"].get<double>() / 1e9;
  EXPECT_LE(waited("disk", other()), 1.05 * behind);
  EXPECT_GE(waited("disk", other()), 0.7 * behind);
  const int itself = truth_["pid"].get<int>();
  EXPECT_GE(waited("disk", other()) + waited("disk", itself), 0.97 * waited("disk"));
  RecordProperty("found_behind", std::to_string(waited("disk", other())));
  RecordProperty("truth_behind", std::to_string(behind));
  EXPECT_LE(waited("disk", truth_["bystander"].get<int>()), 0.01 * waited("disk"));
}

// With what they had of a CPU it is as long as they lived.
TEST_F(WaitsTest, ThreadsThatComeAndGo) {
  run("threads");
  double main_thread = 0;  // waits for the others to end
  for (const Json& row : report_["waits"])
    if (row["who"]["pid"] == truth_["pid"]) main_thread = row["kinds"].value("event", 0.0) / 1e9;
  expect_near(all() - main_thread - waited("lock"), truth(), 2);
}

}  // namespace
}  // namespace pkprof::accuracy
