// SPDX-License-Identifier: Apache-2.0
// One packet or one socket, and more than one process: who is charged what?
#include "scenario.h"

namespace pkprof::live {
namespace {

using testnet::Pair;

class NetworkSharingTest : public PairTest {
 protected:
  static double charged(const Report& report, int pid) {
    return static_cast<double>(report.network_ns({pid}));
  }
};

TEST_F(NetworkSharingTest, MulticastIsSplitAmongItsReceivers) {
  // None of them sleeps: to wake one is dear, and for that one alone.
  const Argv receive = {"pk_udp",   "recv",        "--mode",      "busy",
                        "--port",   "7001",        "--multicast", "239.7.7.7",
                        "--device", Pair::kDevice, "--rcvbuf",    "4000000"};
  const int one = serve(receive);
  const int two = serve(receive);
  const int sender = talk({"pk_udp", "send", "--multicast", "239.7.7.7", "--device", Pair::kDevice,
                           "--port", "7001", "--pps", "60000"});
  const Report report = observe({.seconds = 2, .min_samples = 600});
  const std::set<int> pinned = {one, two, sender};
  expect_shares(report, received_elsewhere(report, {one, two}, hog_, pinned), 95, 5);
  const auto received = [&](int served) {
    return static_cast<double>(report.sum(
        [&](const Flow& f) { return is_received_elsewhere(f, pinned) && f.served == served; }));
  };
  const double share = 100 * received(one) / std::max(received(one) + received(two), 1.0);
  RecordProperty("share_of_one", std::to_string(share));
  EXPECT_GE(share, 35) << describe(report);
  EXPECT_LE(share, 65) << describe(report);
}

// More receivers than a CPU remembers of a packet.
TEST_F(NetworkSharingTest, MulticastToManyIsNobodysAlone) {
  constexpr int many = 6;
  std::set<int> receivers;
  for (int i = 0; i < many; ++i)
    receivers.insert(serve({"pk_udp", "recv", "--mode", "busy", "--port", "7001", "--multicast",
                            "239.7.7.7", "--device", Pair::kDevice, "--rcvbuf", "4000000"}));
  const int sender = talk({"pk_udp", "send", "--multicast", "239.7.7.7", "--device", Pair::kDevice,
                           "--port", "7001", "--pps", in_guest() ? "2000" : "60000"});
  const Report report = observe({.seconds = 3, .min_samples = 600});
  std::set<int> pinned = receivers;
  pinned.insert(sender);
  expect_shares(report, received_elsewhere(report, receivers, hog_, pinned), 95, 5);
  const auto received = [&](const Flow& f) { return is_received_elsewhere(f, pinned); };
  for (const int receiver : receivers) {
    const double share = shares_of(report, {receiver}, hog_, received).ends;
    EXPECT_GE(share, 6) << describe(report);
    EXPECT_LE(share, 32) << describe(report);
  }
}

TEST_F(NetworkSharingTest, PreforkReceiversShareOneSocket) {
  const int server = serve({"pk_udp", "recv", "--port", "7001", "--prefork", "2"});
  const std::set<int> workers = with_children(server, 2);
  ASSERT_EQ(workers.size(), 3);
  const int sender = talk({"pk_udp", "send", "--to", Pair::kServer4, "--port", "7001"});
  const Report report = observe();
  std::set<int> pinned = workers;
  pinned.insert(sender);
  expect_shares(report, received_elsewhere(report, workers, hog_, pinned), 95, 5);
  for (const int worker : workers) {
    if (worker == server) continue;
    EXPECT_GT(charged(report, worker), 0) << describe(report);
  }
}

TEST_F(NetworkSharingTest, ReuseportReceiversHaveASocketEach) {
  const int server = serve({"pk_udp", "recv", "--port", "7001", "--reuseport", "2"});
  const std::set<int> workers = with_children(server, 2);
  // Four senders: their ports decide which socket gets the packets.
  std::set<int> pinned = workers;
  for (int i = 0; i < 4; ++i) {
    pinned.insert(talk({"pk_udp", "send", "--to", Pair::kServer4, "--port", "7001"}));
  }
  const Report report = observe();
  expect_shares(report, received_elsewhere(report, workers, hog_, pinned), 95, 5);
}

// The same recording without and with a sniffer: what the packets cost their receiver stays
// theirs, and the copying for the sniffer is the sniffer's.
TEST_F(NetworkSharingTest, SnifferTakesNothingFromTheReceiver) {
  const int receiver = serve({"pk_udp", "recv", "--port", "7001"});
  const int sender = talk({"pk_udp", "send", "--to", Pair::kServer4, "--port", "7001"});
  const int sniffer = serve({"pk_raw", "sniff", "--device", Pair::kDevice});
  const std::set<int> pinned = {receiver, sender, sniffer};
  const Report report = observe();
  expect_shares(report, received_elsewhere(report, {receiver, sniffer}, hog_, pinned), 95, 5);
  const Shares receivers = received_elsewhere(report, {receiver}, hog_, pinned);
  RecordProperty("receiver", std::to_string(receivers.ends));
  // Handing a frame to the sniffer takes about as long as all the rest; the receiver must not have
  // less than a third.
  EXPECT_GE(receivers.ends, 33) << describe(report);
  EXPECT_GT(charged(report, sniffer), 0) << describe(report);
}

TEST_F(NetworkSharingTest, TwoConnectionsOfTwoServers) {
  const int one = serve({"pk_tcp", "serve", "--port", "7001", "--mode", "echo"});
  const int two = serve({"pk_tcp", "serve", "--port", "7002", "--mode", "echo"});
  const auto talk_at = [&](const char* port, int rate) {
    return talk({"pk_tcp", "rr", "--to", Pair::kServer4, "--port", port, "--rate",
                 std::to_string(in_guest() ? rate / 100 : rate)});
  };
  const int fast = talk_at("7001", 6000);
  const int slow = talk_at("7002", 1000);
  const Report report = observe({.seconds = 2, .min_samples = 200});
  expect_shares(report, network_shares(report, {one, two, fast, slow}, hog_), 95, 5);
  EXPECT_GT(charged(report, one), charged(report, two)) << describe(report);
}

}  // namespace
}  // namespace pkprof::live
