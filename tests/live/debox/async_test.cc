// SPDX-License-Identifier: Apache-2.0
// What is done elsewhere for a program, told in the records of its own calls.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "debox/records.h"
#include "pkprof_run.h"
#include "scenario.h"
#include "testnet.h"

namespace pkprof::live {
namespace {

using nlohmann::json;
using testnet::Pair;
using namespace std::chrono_literals;

struct Traffic {
  const char* name;
  bool stream;
  bool all_calls;
};

class DeboxAsyncTest : public testing::TestWithParam<Traffic> {
 protected:
  void SetUp() override {
    skip_unless_able();
    if (sysconf(_SC_NPROCESSORS_ONLN) < 2) GTEST_SKIP() << "needs two CPUs";
    auto swept = testnet::remove_leftovers();
    ASSERT_TRUE(swept) << swept.error().message;
    auto pair = Pair::create(work_cpu_);
    ASSERT_TRUE(pair) << pair.error().message;
    pair_.emplace(std::move(*pair));
  }

  // A program that reads the records of its own calls; at port 0 it is the bystander.
  int start(int port, int cpu) {
    testnet::Argv argv{"pk_debox",          "--wait", "30", "--records", "4096", "--receive",
                       std::to_string(port)};
    if (GetParam().stream && port) argv.emplace_back("--stream");
    if (GetParam().all_calls) argv.emplace_back("--all-calls");
    return stage_.start(&pair_->server, argv, cpu, false);
  }

  // Of datagrams the first is sent three times as much; of streams, each of its own sender, the
  // same: how much work there is for a packet depends on how many come at once.
  void send() {
    const auto sends = [this](testnet::Argv argv) {
      argv.insert(argv.begin() + 2, {"--to", Pair::kServer4});
      senders_.push_back(stage_.start(&pair_->client, argv, 0));
    };
    if (GetParam().stream) {
      for (const char* port : {"7001", "7002"})
        sends({"pk_tcp", "stream", "--port", port, "--size", "8192", "--rate",
               in_guest() ? "8000000" : "240000000"});
    } else {
      sends({"pk_udp", "send", "--port", "7001,7002", "--ratio", "3:1", "--pps",
             in_guest() ? "4000" : "100000"});
    }
  }

  // What a program said at its end.
  json result(int pid) {
    auto output = stage_.child(pid).stop();
    EXPECT_TRUE(output) << output.error().message;
    return Records(output ? *output : "").one("received").at("truth");
  }

  static uint64_t async_ns(const json& received) {
    return received.at("within_ns").get<uint64_t>() + received.at("between_ns").get<uint64_t>();
  }

  // The same, as a recording beside says.
  static uint64_t async_ns(const json& report, int pid) {
    for (const json& process : report.at("processes"))
      if (process.at("pid") == pid) return process.at("async_ns").get<uint64_t>();
    return 0;
  }

  std::vector<int> senders_;
  const int work_cpu_ = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)) - 1;
  std::optional<Pair> pair_;
  Stage stage_;
  Turn turn_;
};

// Two receivers, and a bystander on the CPU where the packets are processed.
TEST_P(DeboxAsyncTest, IsTheReceiversAsTheyAreSentTo) {
  const int one = start(7001, 0);
  const int two = start(7002, 0);
  const int bystander = start(0, work_cpu_);
  Running pkprof(
      pkprof_argv({"debox", "--attach", std::to_string(one), "--attach", std::to_string(two),
                   "--attach", std::to_string(bystander), "--budget", "100"}));
  // A stream's receiver is ready before it is connected to, and waits then.
  for (const int pid : {one, two, bystander}) {
    const auto ready = stage_.child(pid).wait_for_line("ready", 30s);
    ASSERT_TRUE(ready) << ready.error().message << pkprof.err();
  }
  const TempDir dir;
  const std::string file = dir.file("recording");
  Running recording(pkprof_argv({"record", "-a", "--budget", "100", "-o", file}));
  std::this_thread::sleep_for(in_guest() ? 10s : 2s);  // it takes a while to begin
  send();
  std::this_thread::sleep_for(in_guest() ? 40s : 15s);
  for (const int sender : senders_) stage_.stop(sender);
  std::this_thread::sleep_for(100ms);  // what is on its way
  const json for_one = result(one);
  const json for_two = result(two);
  const json for_bystander = result(bystander);
  kill(recording.pid(), SIGINT);
  EXPECT_EQ(recording.wait(), 0) << recording.err();
  const json report = json::parse(run_pkprof({"report", "--json", file}).out);
  const std::string all = for_one.dump() + for_two.dump() + for_bystander.dump() +
                          " the recording: " + std::to_string(async_ns(report, one)) + " and " +
                          std::to_string(async_ns(report, two));
  RecordProperty("results", all);
  for (const json& each : {for_one, for_two, for_bystander}) EXPECT_EQ(each.at("lost"), 0) << all;
  constexpr double by_chance = 0.25;  // three sigmas and more: the fewest are some 400 samples
  const auto ns_one = static_cast<double>(async_ns(for_one));
  const auto ns_two = static_cast<double>(async_ns(for_two));
  const double truth = for_one.at("bytes").get<double>() / for_two.at("bytes").get<double>();
  if (GetParam().stream && !in_guest()) {
    // One of two streams may take a third more for as many bytes, for seconds: their senders keep
    // their rates, and so the order in which their packets come.
    for (const auto& [pid, ns] : {std::pair(one, ns_one), {two, ns_two}}) {
      const auto recorded = static_cast<double>(async_ns(report, pid));
      EXPECT_NEAR(ns, recorded, by_chance * recorded) << all;
    }
  } else {
    EXPECT_NEAR(ns_one / ns_two, truth, by_chance * truth) << all;
  }
  EXPECT_LE(static_cast<double>(async_ns(for_bystander)), 0.01 * (ns_one + ns_two)) << all;
  // An emulated CPU has enough to do with one of the two.
  if (in_guest()) return;
  const auto recorded = static_cast<double>(async_ns(report, one) + async_ns(report, two));
  EXPECT_NEAR(ns_one + ns_two, recorded, 0.2 * recorded) << all;
}

INSTANTIATE_TEST_SUITE_P(Traffic, DeboxAsyncTest,
                         testing::Values(Traffic{"Datagrams", false, false},
                                         Traffic{"StreamsAllCalls", true, true}),
                         [](const auto& of) { return of.param.name; });

}  // namespace
}  // namespace pkprof::live
