// SPDX-License-Identifier: Apache-2.0
// calls against programs that make so many calls, and no others. What is counted is no estimate:
// each number is the one that it has to be.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "scenario.h"

namespace pkprof::live {
namespace {

using nlohmann::json;

constexpr const char* counting = "counting calls";

// What was counted, for a pid or a name.
struct Counts {
  json report;

  explicit Counts(const std::string& text) : report(json::parse(text)) {}

  [[nodiscard]] uint64_t of(const std::string& function, const json& served) const {
    uint64_t sum = 0;
    for (const json& row : report.at("calls"))
      if (row.at("function") == function && row.at("served") == served)
        sum += row.at("calls").get<uint64_t>();
    return sum;
  }
  [[nodiscard]] uint64_t of(const std::string& function) const {
    uint64_t sum = 0;
    for (const json& row : report.at("calls"))
      if (row.at("function") == function) sum += row.at("calls").get<uint64_t>();
    return sum;
  }
  // How often each process of that name called it, in order of how often.
  [[nodiscard]] std::vector<uint64_t> by_process(const std::string& function,
                                                 const std::string& comm) const {
    std::map<json, uint64_t> sums;
    for (const json& row : report.at("calls"))
      if (row.at("function") == function && row.value("comm", "") == comm)
        sums[row.at("served")] += row.at("calls").get<uint64_t>();
    std::vector<uint64_t> calls;
    calls.reserve(sums.size());
    for (const auto& [served, sum] : sums) calls.push_back(sum);
    std::ranges::sort(calls);
    return calls;
  }
};

class CallsTest : public testing::Test {
 protected:
  void SetUp() override {
    skip_unless_able();
    if (IsSkipped()) return;
    PKPROF_NEEDS(counting);
  }

  static Counts counts_of(Argv arguments) {
    arguments.insert(arguments.begin(), {"calls", "--json"});
    const Finished done = run_pkprof(arguments);
    EXPECT_EQ(done.status, 0) << done.err;
    // The command may have said something, too.
    const size_t start = done.out.find("{\"schema\"");
    return Counts(start == std::string::npos ? "{}" : done.out.substr(start));
  }

  static std::string syscaller() { return testnet::sibling("pk_syscall_pie"); }

  Turn turn_;
  Stage stage_;
};

// Where the kernel lets it be done, calls are counted; where it does not, a line says so, and the
// command is not run.
TEST(CallsRefusedTest, IsSaidInALine) {
  skip_unless_able();
  if (testing::Test::IsSkipped()) return;
  const TempDir dir;
  const Finished done =
      run_pkprof({"calls", "--functions", "vfs_read", "--", "touch", dir.file("it-ran")});
  const bool works = capability_works(counting);
  EXPECT_EQ(done.status, works ? 0 : 125);
  EXPECT_EQ(std::filesystem::exists(dir.file("it-ran")), works);
  if (works) return;
  EXPECT_EQ(done.out, "");
  EXPECT_EQ(std::ranges::count(done.err, '\n'), 1) << done.err;
  EXPECT_TRUE(done.err.starts_with("pkprof: counting calls: ")) << done.err;
  const Finished doctor = run_pkprof({"doctor"});
  EXPECT_NE(doctor.out.find("without it: no pkprof calls"), std::string::npos) << doctor.out;
}

TEST_F(CallsTest, EveryCallAndItsCaller) {
  const Counts counts = counts_of({"--functions", "__x64_sys_getppid", "--", syscaller(), "30000"});
  EXPECT_EQ(counts.report.at("total"), 30000);
  ASSERT_EQ(counts.report.at("calls").size(), 1) << counts.report;
  const json& row = counts.report.at("calls")[0];
  EXPECT_EQ(row.at("calls"), 30000);
  EXPECT_TRUE(row.at("caller") == "do_syscall_64" || row.at("caller") == "x64_sys_call") << row;
}

// On one CPU, where they take turns.
TEST_F(CallsTest, TwoAtOnceAreToldApart) {
  const std::string both =
      "taskset -c 0 " + syscaller() + " 30000 & taskset -c 0 " + syscaller() + " 11000 & wait";
  const Counts counts = counts_of({"--functions", "__x64_sys_getppid", "--", "sh", "-c", both});
  EXPECT_EQ(counts.by_process("__x64_sys_getppid", "pk_syscall_pie"),
            (std::vector<uint64_t>{11000, 30000}))
      << counts.report;
}

// Two receivers and a sender, which is the process in whose context packets are received: what is
// done for a packet is the receiver's, also before it is known which one it is.
TEST_F(CallsTest, PacketsAreTheirReceivers) {
  auto lone = testnet::Namespace::create("calls");
  ASSERT_TRUE(lone) << lone.error().message;
  const int one = stage_.start(&*lone, {"pk_udp", "recv", "--port", "7001"});
  const int other = stage_.start(&*lone, {"pk_udp", "recv", "--port", "7002"});
  constexpr uint64_t packets = 4000;
  const Counts counts = counts_of(
      {"-a",     "--functions", "udp_queue_rcv_skb,ip_rcv,__netif_receive_skb,udp_sendmsg",
       "--",     "ip",          "netns",
       "exec",   lone->name(),  testnet::sibling("pk_udp"),
       "send",   "--to",        "127.0.0.1",
       "--port", "7001,7002",   "--ratio",
       "3:1",    "--count",     std::to_string(packets),
       "--pps",  "2000"});
  for (const char* function : {"udp_queue_rcv_skb", "ip_rcv", "__netif_receive_skb"}) {
    EXPECT_EQ(counts.of(function, one), packets * 3 / 4) << function << counts.report;
    EXPECT_EQ(counts.of(function, other), packets / 4) << function;
  }
  EXPECT_EQ(counts.of("udp_sendmsg", one), 0);
  EXPECT_EQ(counts.of("udp_sendmsg"), packets) << counts.report;
}

// More than are attached one by one; of the same calls, the same number.
TEST_F(CallsTest, ManyFunctions) {
  const json doctor = json::parse(run_pkprof({"doctor", "--json"}).out);
  bool many = false;
  for (const json& row : doctor.at("capabilities"))
    many = many || (row.at("name") == counting &&
                    row.at("how").get<std::string>().find("kprobe.multi") != std::string::npos);
  if (!many) GTEST_SKIP() << "this kernel has no program for many functions";
  const Counts counts =
      counts_of({"--functions", "vfs_*,__x64_sys_get*", "--", syscaller(), "30000"});
  EXPECT_EQ(counts.report.at("means"), "kprobe.multi");
  EXPECT_GT(counts.report.at("functions"), 64);
  EXPECT_EQ(counts.of("__x64_sys_getppid"), 30000) << counts.report;
  EXPECT_GT(counts.of("vfs_read"), 0);
}

// They join the times: the profile says how often a function was called that has time.
TEST_F(CallsTest, JoinTheProfile) {
  const TempDir dir;
  const std::string file = dir.file("calls.pb.gz");
  const Counts counts =
      counts_of({"-o", file, "--functions", "__x64_sys_getppid", "--", syscaller(), "100000"});
  const Finished flat = run_pkprof({"report", "--view", "flat", "--json", file});
  ASSERT_EQ(flat.status, 0) << flat.err;
  uint64_t calls = 0;
  uint64_t total_ns = 0;
  const json report = json::parse(flat.out);
  for (const json& function : report.at("functions")) {
    if (function.at("name") != "k:__x64_sys_getppid") continue;
    calls = function.at("calls");
    total_ns = function.at("total_ns");
  }
  EXPECT_EQ(calls, 100000) << flat.out;
  EXPECT_GT(total_ns, 0) << "of " << counts.report.at("total") << " calls none was sampled";
  expect_ledger_sums(read_report(file));
}

// Nothing is named: a look at the first second shows what is hot.
TEST_F(CallsTest, WhatIsHotIsFound) {
  const int busy = stage_.start(nullptr, {"pk_udp", "send", "--to", "127.0.0.1", "--port", "9"});
  const Counts counts = counts_of({"-p", std::to_string(busy), "-d", "2"});
  EXPECT_GT(counts.report.at("functions"), 3);
  uint64_t calls = 0;
  for (const json& row : counts.report.at("calls"))
    if (row.at("served") == busy) calls += row.at("calls").get<uint64_t>();
  EXPECT_GT(calls, 100) << counts.report;
}

TEST_F(CallsTest, AnUnknownFunctionIsAnError) {
  const Finished done = run_pkprof({"calls", "--functions", "vfs_reed", "--", "true"});
  EXPECT_EQ(done.status, 125);
  EXPECT_NE(done.err.find("vfs_reed"), std::string::npos) << done.err;
}

}  // namespace
}  // namespace pkprof::live
