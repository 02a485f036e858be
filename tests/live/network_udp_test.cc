// SPDX-License-Identifier: Apache-2.0
// UDP floods, steered onto a CPU where a bystander runs: the receiver is charged, however it
// waits, and the bystander is not.
#include <signal.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "scenario.h"

namespace pkprof::live {
namespace {

using testnet::Pair;

class NetworkUdpTest : public PairTest {
 protected:
  // Of NET_RX time on the bystander's CPU.
  void expect_receivers_are_charged(const std::set<int>& receivers, int sender,
                                    double unclaimed = 1) {
    std::set<int> pinned = receivers;
    pinned.insert(sender);
    const Report report = observe({.counted = [&](const Report& r) {
      return r.sum([&](const Flow& f) { return is_received_elsewhere(f, pinned); });
    }});
    expect_shares(report, received_elsewhere(report, receivers, hog_, pinned),
                  std::min(98.0, 100 - unclaimed), unclaimed);
  }
};

struct Case {
  const char* name;
  const char* to;
  Argv receive;
  Argv send;
  double unclaimed = 1;  // percent at most
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.name;
}

class NetworkUdpModes : public NetworkUdpTest, public testing::WithParamInterface<Case> {};

TEST_P(NetworkUdpModes, ReceiverIsCharged) {
  Argv receive = {"pk_udp", "recv", "--port", "7001"};
  receive.insert(receive.end(), GetParam().receive.begin(), GetParam().receive.end());
  Argv send = {"pk_udp", "send", "--to", GetParam().to, "--port", "7001"};
  send.insert(send.end(), GetParam().send.begin(), GetParam().send.end());
  const int receiver = serve(receive);
  expect_receivers_are_charged({receiver}, talk(send), GetParam().unclaimed);
}

INSTANTIATE_TEST_SUITE_P(Modes, NetworkUdpModes,
                         testing::Values(Case{"Block4", Pair::kServer4, {}, {}},
                                         Case{"Block6", Pair::kServer6, {}, {}},
                                         Case{"Epoll4", Pair::kServer4, {"--mode", "epoll"}, {}},
                                         Case{"Busy4", Pair::kServer4, {"--mode", "busy"}, {}},
                                         Case{"PollRecvmmsg",
                                              Pair::kServer4,
                                              {"--mode", "poll", "--call", "recvmmsg"},
                                              {}},
                                         Case{"Connected", Pair::kServer4, {}, {"--connect"}},
                                         // A fragment that is alone in its softirq run has no port
                                         // to go by. On an emulated CPU most are.
                                         Case{"Fragments",
                                              Pair::kServer4,
                                              {},
                                              {"--size", "8000", "--pps", "20000"},
                                              in_guest() ? 15.0 : 2.0}),
                         [](const auto& chosen) { return std::string(chosen.param.name); });

TEST_F(NetworkUdpTest, SlowReceiverIsChargedForWhatItsFullBufferDrops) {
  const int receiver =
      serve({"pk_udp", "recv", "--port", "7001", "--work-us", "500", "--rcvbuf", "8192"});
  const int sender = talk({"pk_udp", "send", "--to", Pair::kServer4, "--port", "7001"});
  expect_receivers_are_charged({receiver}, sender);
}

TEST_F(NetworkUdpTest, NobodyListens) {
  const int sender = talk({"pk_udp", "send", "--to", Pair::kServer4, "--port", "7009"});
  const Report report = observe();
  // The answer, an ICMP error, comes back to the sender's socket.
  const Shares shares = received_elsewhere(report, {sender}, hog_, {sender});
  EXPECT_LE(shares.bystander, bystander_limit()) << describe(report);
  EXPECT_GE(shares.unclaimed + shares.ends + shares.kernel, 99) << describe(report);
  EXPECT_GT(report.unclaimed_ns("dropped") + report.unclaimed_ns("icmp"), 0) << describe(report);
}

// Hooks that a recording has attached.
long links_of(const Running& record) {
  const auto objects = bpf_objects_of(record.pid());
  return std::ranges::count_if(objects, [](const auto& o) { return o.starts_with("link "); });
}

// A receiver that asks in vain runs one hook without a pause: that one goes and comes to keep the
// budget, and those beside it stay. What it says it cost is what it was allowed.
TEST_F(NetworkUdpTest, HooksThatHardlyRunStayInPauses) {
  if (in_guest()) GTEST_SKIP() << "on an emulated CPU those that hardly run cost too much, too";
  serve({"pk_udp", "recv", "--port", "7001", "--mode", "busy"});
  const TempDir dir;
  Running record(pkprof_argv({"record", "-a", "-o", dir.file("profile")}));
  const auto links = [&record] { return links_of(record); };
  const auto limit = std::chrono::steady_clock::now() + 60s;
  while (links() == 0 && std::chrono::steady_clock::now() < limit)
    std::this_thread::sleep_for(20ms);
  // What the first turn took too much the first pause makes up for, which may last longer than we
  // look: the turn itself shows them all.
  const auto begin = std::chrono::steady_clock::now() + 1s;
  long all = 0;
  while (std::chrono::steady_clock::now() < begin) {
    all = std::max(all, links());
    std::this_thread::sleep_for(5ms);
  }
  std::map<long, int> looks;  // by how many hooks were on
  while (std::chrono::steady_clock::now() < begin + 6s) {
    ++looks[links()];
    std::this_thread::sleep_for(5ms);
  }
  // Most of the time is a pause of these. Those on interrupts may have one, too, now and then.
  all = std::max(all, looks.rbegin()->first);
  const long mostly =
      std::ranges::max_element(looks, {}, [](const auto& l) { return l.second; })->first;
  std::string seen;  // "51: 300 times, "
  for (const auto& [on, times] : looks)
    seen += std::to_string(on) + ": " + std::to_string(times) + " times, ";
  EXPECT_LT(mostly, all) << seen;
  EXPECT_GE(mostly, all - 8) << "of some seventeen that are turned together: " << seen;
  record.signal(SIGINT);
  ASSERT_EQ(record.wait(), 0) << record.err();
  // Of all CPUs, with the first turn, which is what it is, and with the interrupts of the sampling
  // clock, which no budget can spare. The other CPU has less to do.
  const auto cost = nlohmann::json::parse(read_report(dir.file("profile")).text).at("cost");
  EXPECT_GT(cost.at("fraction").get<double>(), 0.001);
  EXPECT_LT(cost.at("fraction").get<double>(), 0.016);
}

// The stack says which packet it is, and nobody sends in a softirq: three hooks rest. The two on
// sending are needed again when there is TCP.
TEST_F(NetworkUdpTest, HooksThatNothingNeedsRest) {
  serve({"pk_udp", "recv", "--port", "7001"});
  const TempDir dir;
  const Running record(pkprof_argv({"record", "-a", "--budget", "100", "-o", dir.file("profile")}));
  const auto links = [&record] { return links_of(record); };
  const auto becomes = [&](auto condition) {
    const auto limit = std::chrono::steady_clock::now() + 60s;
    while (std::chrono::steady_clock::now() < limit) {
      if (condition(links())) return true;
      std::this_thread::sleep_for(20ms);
    }
    return false;
  };
  // Before there are packets all are on.
  long all = 0;
  auto since = std::chrono::steady_clock::now();
  ASSERT_TRUE(becomes([&](long now) {
    if (now != all) since = std::chrono::steady_clock::now();
    all = now;
    return all > 0 && std::chrono::steady_clock::now() > since + (in_guest() ? 5s : 1s);
  }));
  const int sender = talk({"pk_udp", "send", "--to", Pair::kServer4, "--port", "7001"});
  ASSERT_TRUE(becomes([&](long now) { return now > 0 && now <= all - 3; })) << all;
  const long rested = links();
  stage_.stop(sender);
  serve({"pk_tcp", "serve", "--port", "7002"});
  talk({"pk_tcp", "stream", "--to", Pair::kServer4, "--port", "7002"});
  EXPECT_TRUE(becomes([&](long now) { return now >= rested + 2; })) << rested << " of " << all;
}

TEST_F(NetworkUdpTest, Loopback) {
  const int receiver = stage_.start(&pair_->client, {"pk_udp", "recv", "--port", "7001"});
  const int sender = stage_.start(
      &pair_->client, {"pk_udp", "send", "--to", "127.0.0.1", "--port", "7001"}, last_cpu());
  const Report report = observe();
  expect_shares(report, network_shares(report, {receiver, sender}, hog_), 95, 2);
}

}  // namespace
}  // namespace pkprof::live
