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

struct UdpCase {
  const char* name;
  const char* to;
  Argv receive;
  Argv send;
  double unclaimed = 1;  // percent at most
};

void PrintTo(const UdpCase& c, std::ostream* out) {
  *out << c.name;
}

class NetworkUdpModes : public NetworkUdpTest, public testing::WithParamInterface<UdpCase> {};

TEST_P(NetworkUdpModes, ReceiverIsCharged) {
  Argv receive = {"pk_udp", "recv", "--port", "7001"};
  receive.insert(receive.end(), GetParam().receive.begin(), GetParam().receive.end());
  Argv send = {"pk_udp", "send", "--to", GetParam().to, "--port", "7001"};
  send.insert(send.end(), GetParam().send.begin(), GetParam().send.end());
  const int receiver = serve(receive);
  expect_receivers_are_charged({receiver}, talk(send), GetParam().unclaimed);
}

INSTANTIATE_TEST_SUITE_P(Modes, NetworkUdpModes,
                         testing::Values(UdpCase{"Block4", Pair::kServer4, {}, {}},
                                         UdpCase{"Block6", Pair::kServer6, {}, {}},
                                         UdpCase{"Epoll4", Pair::kServer4, {"--mode", "epoll"}, {}},
                                         UdpCase{"Busy4", Pair::kServer4, {"--mode", "busy"}, {}},
                                         UdpCase{"PollRecvmmsg",
                                                 Pair::kServer4,
                                                 {"--mode", "poll", "--call", "recvmmsg"},
                                                 {}},
                                         UdpCase{"Connected", Pair::kServer4, {}, {"--connect"}},
                                         // A fragment that is alone in its softirq run has no port
                                         // to go by. On an emulated CPU most are.
                                         UdpCase{"Fragments",
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

// All on, or all off: between windows only the hooks stay that note who owns what for long. What it
// says it cost is what it was allowed.
TEST_F(NetworkUdpTest, ABudgetIsKeptByWindows) {
  constexpr long lasting = 12;
  serve({"pk_udp", "recv", "--port", "7001", "--mode", "busy"});
  const TempDir dir;
  Running record(pkprof_argv({"record", "-a", "--budget", "1", "-o", dir.file("profile")}));
  std::map<long, int> looks;  // by how many hooks were on
  const auto begin = std::chrono::steady_clock::now();
  std::optional<std::chrono::steady_clock::time_point> hooked;
  while (!hooked || std::chrono::steady_clock::now() < *hooked + 60s) {
    const long links = links_of(record);
    if (!hooked && links > 3 * lasting) hooked = std::chrono::steady_clock::now();
    if (hooked) ++looks[links];
    std::this_thread::sleep_for(5ms);
    ASSERT_LT(std::chrono::steady_clock::now(), begin + 180s);
  }
  record.signal(SIGINT);
  ASSERT_EQ(record.wait(), 0) << record.err();
  std::string seen;  // "51: 300 times, "
  int all_off = 0;
  int all_on = 0;
  for (const auto& [on, times] : looks) {
    seen += std::to_string(on) + ": " + std::to_string(times) + " times, ";
    (on <= lasting + 4 ? all_off : all_on) += times;  // with the sampling clocks' links
  }
  EXPECT_GT(all_off, all_on) << seen;
  EXPECT_GT(all_on, 0) << seen;
  const Report report = read_report(dir.file("profile"));
  expect_ledger_sums(report);
  const auto whole = nlohmann::json::parse(report.text);
  const double watched = whole.at("watched");
  EXPECT_GT(watched, 0.01);
  EXPECT_LT(watched, 0.6);
  // Of all CPUs; on an emulated CPU it takes long to put hooks in and out.
  const double fraction = whole.at("cost").at("fraction");
  EXPECT_GT(fraction, 0.0005);
  EXPECT_LT(fraction, in_guest() ? 0.03 : 0.01);
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
