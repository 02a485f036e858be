// SPDX-License-Identifier: Apache-2.0
// Threads and groups: who of a process's threads is charged, and what cgroups cost.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "scenario.h"

namespace pkprof::live {
namespace {

using nlohmann::json;
using testnet::Pair;

constexpr const char* seconds = "2";

struct Groups {
  json report;
  [[nodiscard]] const json* find(const char* key, const json& value) const {
    for (const json& group : report.at("groups"))
      if (group.contains(key) && group.at(key) == value) return &group;
    return nullptr;
  }
};

uint64_t cost_of(const json& group) {
  return group.at("user_ns").get<uint64_t>() + group.at("own_ns").get<uint64_t>() +
         group.at("async_ns").get<uint64_t>();
}

// `pkprof report --by`, its sums checked.
Groups groups_of(const std::string& file, const char* by) {
  const Finished shown = run_pkprof({"report", file, "--json", "--by", by});
  EXPECT_EQ(shown.status, 0) << shown.err;
  Groups groups{json::parse(shown.out)};
  const json& r = groups.report;
  EXPECT_EQ(r.at("by"), by);
  uint64_t sum = r.at("kernel_ns").get<uint64_t>() + r.at("idle_ns").get<uint64_t>() +
                 r.at("steal_ns").get<uint64_t>() + r.at("other_ns").get<uint64_t>();
  for (const json& group : r.at("groups")) sum += cost_of(group);
  for (const auto& [reason, ns] : r.at("unclaimed").items()) sum += ns.get<uint64_t>();
  EXPECT_GE(sum, r.at("cpu_ns").get<uint64_t>());
  EXPECT_LE(sum, r.at("cpu_ns").get<uint64_t>() * 1001 / 1000);
  return groups;
}

class GroupsTest : public PairTest {
 protected:
  TempDir dir_;
  std::string file_ = dir_.file("profile.pb.gz");
};

// Two threads on one CPU, one with three times the other's CPU time by their own clocks.
TEST_F(GroupsTest, ThreadsAtThreeToOne) {
  const int pid = stage_.start(nullptr, {"pk_threads", "--shares", "30:10"}, last_cpu());
  const std::string time = in_guest() ? "16" : "3";
  const std::string hz = in_guest() ? "199" : "1997";
  ASSERT_EQ(
      run_pkprof({"record", "--threads", "-F", hz, "--budget", "100", "-d", time, "-o", file_})
          .status,
      0);
  const Report whole = read_report(file_);
  const Groups groups = groups_of(file_, "thread");
  const json* heavy = groups.find("comm", "burn-30");
  const json* light = groups.find("comm", "burn-10");
  ASSERT_TRUE(heavy && light) << groups.report;
  for (const json* one : {heavy, light}) {
    EXPECT_EQ(one->at("pid"), pid);
    EXPECT_NE(one->at("tid"), pid);
    EXPECT_EQ(one->at("process"), "pk_threads");
  }
  const double ratio = static_cast<double>(cost_of(*heavy)) / static_cast<double>(cost_of(*light));
  RecordProperty("ratio", std::to_string(ratio));
  // An emulated CPU stands still in the middle of reading a thread's clock, for longer than a
  // thread's share: by the scheduler's account the ratio is 2:1 there, by perf's samples 15:1.
  EXPECT_GE(ratio, in_guest() ? 1.5 : 2.6) << groups.report;
  EXPECT_LE(ratio, in_guest() ? 15 : 3.4) << groups.report;
  // The threads of a process are the process.
  uint64_t threads = 0;
  for (const json& group : groups.report.at("groups"))
    if (group.at("pid") == pid) threads += cost_of(group);
  EXPECT_EQ(threads, whole.charged_to(pid));
  const Finished text = run_pkprof({"report", file_, "--by", "thread"});
  EXPECT_NE(text.out.find(std::to_string(pid) + "/" + heavy->at("tid").dump()), std::string::npos)
      << text.out;
}

// The thread that takes the data is charged, not the one that opened the socket.
TEST_F(GroupsTest, TheThreadThatTakesTheDataIsCharged) {
  PKPROF_NEEDS("network: who takes the data");
  const int pid = serve({"pk_threads", "--recv", "7001"});
  talk({"pk_udp", "send", "--to", Pair::kServer4, "--port", "7001"});
  // An account has room for so many samples between two visits of its taker: few, where the
  // emulated CPU takes ten times as long for all but the clock.
  const char* hz = in_guest() ? "199" : "1997";
  const std::string time = in_guest() ? "15" : seconds;
  ASSERT_EQ(
      run_pkprof({"record", "--threads", "-F", hz, "--budget", "100", "-d", time, "-o", file_})
          .status,
      0);
  const Groups groups = groups_of(file_, "thread");
  uint64_t taker = 0;
  uint64_t opener = 0;
  uint64_t any = 0;
  for (const json& group : groups.report.at("groups")) {
    if (group.at("pid") != pid) continue;
    const uint64_t ns = group.at("sources").value("softirq:NET_RX", uint64_t{0});
    (group.at("tid").is_null() ? any : group.at("comm") == "taker" ? taker : opener) += ns;
  }
  RecordProperty("taker_ms", std::to_string(taker / 1'000'000));
  RecordProperty("any_ms", std::to_string(any / 1'000'000));
  EXPECT_GT(taker, 100'000'000U) << groups.report;
  EXPECT_EQ(opener, 0U) << groups.report;
  // What did not wait for its taker goes to the process that holds the socket.
  EXPECT_LT(any, taker / 4) << groups.report;
  const json* thread = groups.find("comm", "taker");
  ASSERT_NE(thread, nullptr);
  EXPECT_GT(thread->at("basis").value("consumed", uint64_t{0}), 100'000'000U);
}

TEST_F(GroupsTest, WithoutThreadsAProcessIsOneRow) {
  const int pid = stage_.start(nullptr, {"pk_threads"}, last_cpu());
  ASSERT_EQ(run_pkprof({"record", "-d", "1", "-o", file_}).status, 0);
  const Groups groups = groups_of(file_, "thread");
  const json* process = groups.find("pid", pid);
  ASSERT_NE(process, nullptr);
  EXPECT_TRUE(process->at("tid").is_null());
  EXPECT_EQ(process->at("kind"), "any thread");
  EXPECT_NE(groups.report.at("degraded").dump().find("threads were not recorded"),
            std::string::npos);
}

// What a target's threads are called and mapped to is its process's.
TEST_F(GroupsTest, ThreadsOfATargetAreSelectedAndHaveSymbols) {
  const std::string program = testnet::sibling("pk_threads");
  ASSERT_EQ(run_pkprof({"record", "--threads", "-F", "1997", "-o", file_, "--", program,
                        "--seconds", in_guest() ? "4" : "1"})
                .status,
            0);
  const Groups groups = groups_of(file_, "thread");
  EXPECT_NE(groups.find("comm", "burn-30"), nullptr) << groups.report;
  const Finished flat = run_pkprof({"report", file_, "--view", "flat"}, {.env = {"COLUMNS=200"}});
  EXPECT_NE(flat.out.find("burn_together"), std::string::npos) << flat.out;
}

TEST_F(GroupsTest, TwoCgroups) {
  PKPROF_NEEDS("cgroups");
  const Cgroup one;
  const Cgroup two;
  Stage stage;  // ends before the groups go
  std::map<std::string, std::set<int>> members;
  for (int i = 0; i < 2; ++i) {
    const int hog = stage.start_hog(last_cpu());
    one.add(hog);
    members[one.name()].insert(hog);
  }
  const int hog = stage.start_hog(last_cpu());
  two.add(hog);
  members[two.name()].insert(hog);
  stage_.stop(hog_);
  // The scheduler's account of what each ran, from the recording's start to its end.
  std::string read;
  for (const auto& [name, pids] : members)
    for (const int pid : pids) read += "cat /proc/" + std::to_string(pid) + "/schedstat; ";
  const Finished recorded = run_pkprof({"record", "-a", "-F", "1997", "-o", file_, "--", "sh", "-c",
                                        read + "sleep " + (in_guest() ? "6; " : "3; ") + read});
  ASSERT_EQ(recorded.status, 0) << recorded.err;
  std::istringstream scheduler(recorded.out);
  std::map<std::string, double> ran;
  for (const double sign : {-1.0, 1.0})
    for (const auto& [name, pids] : members)
      for (size_t i = 0; i < pids.size(); ++i) {
        double ns = 0;
        std::string waited;
        std::string slices;
        ASSERT_TRUE(scheduler >> ns >> waited >> slices) << recorded.out;
        ran[name] += sign * ns;
      }
  const Report whole = read_report(file_);
  const Groups groups = groups_of(file_, "cgroup");
  std::map<std::string, double> seems;  // interrupts between, as the scheduler has it
  for (const auto& [name, pids] : members) {
    const json* group = groups.find("name", name);
    ASSERT_NE(group, nullptr) << groups.report;
    EXPECT_EQ(group->at("pids").get<std::set<int>>(), pids);
    uint64_t sum = 0;
    for (const int pid : pids) sum += whole.charged_to(pid);
    EXPECT_EQ(cost_of(*group), sum);
    seems[name] = group->at("seems_ns").get<double>();
  }
  // The scheduler shares by cgroup where the controller is on, else by process: 1 or 2, or so.
  const double truth = ran[one.name()] / ran[two.name()];
  const double ratio = seems[one.name()] / seems[two.name()];
  RecordProperty("ratio", std::to_string(ratio));
  RecordProperty("truth", std::to_string(truth));
  const double samples_of_ns = static_cast<double>(whole.frequency_hz) * whole.watched / 1e9;
  const double chance =
      std::sqrt(1 / (seems[one.name()] * samples_of_ns) + 1 / (seems[two.name()] * samples_of_ns));
  EXPECT_NEAR(ratio, truth, truth * (0.05 + 3 * chance)) << groups.report;
}

}  // namespace
}  // namespace pkprof::live
