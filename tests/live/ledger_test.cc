// SPDX-License-Identifier: Apache-2.0
// Rule 1 on machines in different moods; processes that are gone before anyone looks.
#include <gtest/gtest.h>

#include "scenario.h"

namespace pkprof::live {
namespace {

class LedgerTest : public testing::Test {
 protected:
  void SetUp() override { skip_unless_able(); }

  // read_report() checks the sums.
  Report record_all(double seconds, const char* budget = "5") {
    const Finished done = run_pkprof({"record", "-a", "-d", std::to_string(seconds), "-F", "1997",
                                      "--budget", budget, "-o", file_});
    EXPECT_EQ(done.status, 0) << done.err;
    return read_report(file_);
  }

  TempDir dir_;
  std::string file_ = dir_.file("profile.pb.gz");
  Stage stage_;
};

TEST_F(LedgerTest, SumsWithNothingRunning) {
  const Report report = record_all(1.5);
  EXPECT_GT(report.idle_ns + report.other_ns, 0);
}

TEST_F(LedgerTest, SumsWithEveryCpuBusy) {
  std::vector<int> hogs;
  for (int cpu = 0; cpu <= last_cpu(); ++cpu) hogs.push_back(stage_.start_hog(cpu));
  const Report report = record_all(1.5);
  // A guest whose host has other work stands still at times, which looks like idle time.
  EXPECT_LT(report.idle_ns, report.cpu_ns / (in_guest() ? 2 : 20));
  uint64_t charged = 0;
  for (const int hog : hogs) charged += report.charged_to(hog);
  EXPECT_GT(charged, report.cpu_ns / 5);
}

TEST_F(LedgerTest, SumsAtEveryFrequency) {
  stage_.start_hog(last_cpu());
  for (const int hz : {1, 49, 997, 4999}) {
    const Recording r = record({"-a", "-d", "1", "-F", std::to_string(hz)});
    EXPECT_EQ(r.record.status, 0);
    EXPECT_EQ(r.report.frequency_hz, hz);
  }
}

// Short-lived processes are by name in the ledger, and their functions in the profile, though
// most of them are gone when pkprof looks.
TEST_F(LedgerTest, ShortLivedProcessesAreNamed) {
  const int parent = stage_.start(nullptr, {"pk_spawn", "--rate", "200"}, -1, false);
  // Of all of them, whatever it costs.
  const Report report = record_all(in_guest() ? 10 : 2, "100");
  const std::set<int> children = report.pids_running("pk_spawn");
  EXPECT_GE(children.size(), in_guest() ? 20 : 100);
  uint64_t charged = 0;
  for (const int child : children) charged += child == parent ? 0 : report.charged_to(child);
  EXPECT_GT(report.samples(charged), 100);
  const Finished flat = run_pkprof({"report", file_, "--view", "flat"}, {.env = {"COLUMNS=200"}});
  EXPECT_NE(flat.out.find("burn_us"), std::string::npos) << flat.out.substr(0, 2000);
}

// fork, then exec: the functions are those of the new program.
TEST_F(LedgerTest, ChildrenThatExecHaveTheirOwnFunctions) {
  const std::string hog = testnet::sibling("pk_hog");
  const std::string spawn =
      testnet::sibling("pk_spawn") + " --rate 100 --seconds " + (in_guest() ? "5" : "0.6");
  const Finished done = run_pkprof(
      {"record", "-F", "1997", "--budget", "100", "-o", file_, "--", "sh", "-c",
       hog + " --seconds 0.4; " + spawn + " >/dev/null; exec " + hog + " --seconds 0.4"});
  EXPECT_EQ(done.status, 0) << done.err;
  const Report report = read_report(file_);
  EXPECT_EQ(report.pids_of("pk_hog").size(), 2) << report.text;
  for (const Argv& view : {Argv{"report", file_, "--view", "flat"},
                           Argv{"report", file_, "--view", "tree", "--threshold", "0"}}) {
    const Finished shown = run_pkprof(view, {.env = {"COLUMNS=200"}});
    EXPECT_NE(shown.out.find("run(int, char**)"), std::string::npos) << shown.out.substr(0, 2000);
    EXPECT_NE(shown.out.find("burn_us"), std::string::npos) << shown.out.substr(0, 2000);
  }
}

}  // namespace
}  // namespace pkprof::live
