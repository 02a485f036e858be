// SPDX-License-Identifier: Apache-2.0
// What TCP sends again, where packets are lost by a rule of the firewall's, against what the kernel
// counts of it.
#include "testnet.h"
#include "usage_scenario.h"

namespace pkprof::accuracy {
namespace {

using live::must;

class ResentTest : public UsageTest {
 protected:
  // Stops the sender before it is asked what it sent again: by then what was lost has come.
  static constexpr const char* script = R"(
    retransmitted() { ip netns exec "$1" cat /proc/net/snmp | awk '/^Tcp: [0-9]/ { print $13 }'; }
    stream() { exec ip netns exec "$1" "$2" stream --to "$3" --port 9510 --pacing 20000000; }
    retransmitted "$1" >begin
    (stream "$1" "$3" "$4") >/dev/null & lossy=$!
    (stream "$2" "$3" "$4") >/dev/null & other=$!
    sleep 4; kill -STOP $lossy $other; sleep 2
    ip netns exec "$1" ss -tinH dport = :9510 >socket
    ip netns exec "$2" ss -tinH dport = :9510 >other_socket
    retransmitted "$1" >end
    kill -KILL $lossy $other; wait; echo $lossy $other)";

  // A number of what ss says of a socket: "bytes_retrans:1234".
  [[nodiscard]] double of_socket(const std::string& file, const std::string& name) const {
    const std::string text = read(file);
    const size_t at = text.find(" " + name + ":");
    return at == std::string::npos ? 0 : std::stod(text.substr(at + name.size() + 2));
  }
};

// Three of a hundred packets are lost on the way to the server.
TEST_F(ResentTest, AStreamWithLosses) {
  testnet::Pair lossy = must(testnet::Pair::create()), other = must(testnet::Pair::create());
  const auto rule = lossy.server.exec(
      {"nft",
       "add table ip loss; add chain ip loss in { type filter hook input priority 0; }; "
       "add rule ip loss in tcp dport 9510 numgen random mod 100 < 3 drop"});
  if (!rule) GTEST_SKIP() << "no nftables, or no random numbers in it: " << rule.error().message;
  for (testnet::Pair* pair : {&lossy, &other})
    stage_.start(&pair->server, {"pk_tcp", "serve", "--port", "9510"});
  const Json net = record("net", script,
                          {lossy.client.name(), other.client.name(), testnet::sibling("pk_tcp"),
                           testnet::Pair::kServer4});
  const auto [sender, bystander] = pids<2>();
  const auto resent = [&](int pid, const char* value) {
    return of_pid(net, pid, {"ways", "resent", value});
  };
  expect_near(resent(sender, "bytes"), of_socket("socket", "bytes_retrans"), 2, "bytes sent again");
  expect_near(resent(sender, "count"), grown(0), 2, "segments sent again");
  const double all = number_at(net["total"], {"ways", "resent", "bytes"});
  EXPECT_GE(resent(sender, "bytes"), 0.95 * all);
  EXPECT_GT(of_pid(net, bystander, {"ways", "sent", "bytes"}), 0);
  std::printf("  the bystander sent %.0f bytes again, and says %.0f\n", resent(bystander, "bytes"),
              of_socket("other_socket", "bytes_retrans"));
  EXPECT_LE(resent(bystander, "bytes"), 0.01 * all);
}

}  // namespace
}  // namespace pkprof::accuracy
