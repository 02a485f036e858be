// SPDX-License-Identifier: Apache-2.0
// TCP: bulk, request and response, connections that come and go, splice and sendfile, pacing. The
// two ends are charged, and the bystander is not.
#include "scenario.h"

namespace pkprof::live {
namespace {

using testnet::Pair;

class NetworkTcpTest : public PairTest {
 protected:
  // `at_least`: percent of all network softirq time that the two ends are charged.
  Report expect_ends_are_charged(const std::set<int>& ends, double at_least) {
    Report report = observe();
    expect_shares(report, network_shares(report, ends, hog_), at_least, 100 - at_least);
    return report;
  }
};

struct Case {
  const char* name;
  const char* to;
  double at_least;
  Argv serve;
  Argv client;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.name;
}

class NetworkTcpModes : public NetworkTcpTest, public testing::WithParamInterface<Case> {};

TEST_P(NetworkTcpModes, EndsAreCharged) {
  Argv serve_argv = {"pk_tcp", "serve", "--port", "7001"};
  serve_argv.insert(serve_argv.end(), GetParam().serve.begin(), GetParam().serve.end());
  Argv client_argv = GetParam().client;
  const Argv to = {"--to", GetParam().to, "--port", "7001"};
  client_argv.insert(client_argv.end(), to.begin(), to.end());
  const int server = serve(serve_argv);
  const int client = talk(client_argv);
  expect_ends_are_charged({server, client}, GetParam().at_least);
}

const Argv kStream = {"pk_tcp", "stream"};
const Argv kEcho = {"--mode", "echo"};

INSTANTIATE_TEST_SUITE_P(
    Modes, NetworkTcpModes,
    testing::Values(
        Case{"Stream4", Pair::kServer4, 98, {}, kStream},
        Case{"Stream6", Pair::kServer6, 98, {}, kStream},
        Case{"StreamReno", Pair::kServer4, 98, {}, {"pk_tcp", "stream", "--congestion", "reno"}},
        Case{"Stream8", Pair::kServer4, 98, {}, {"pk_tcp", "stream", "--connections", "8"}},
        Case{"Rr4", Pair::kServer4, 98, kEcho, {"pk_tcp", "rr"}},
        Case{"Rr6", Pair::kServer6, 98, kEcho, {"pk_tcp", "rr"}},
        Case{"Rr16", Pair::kServer4, 98, kEcho, {"pk_tcp", "rr", "--connections", "16"}},
        Case{"Connect", Pair::kServer4, 98, {}, {"pk_tcp", "connect"}},
        Case{"Connect6", Pair::kServer6, 98, {}, {"pk_tcp", "connect", "--connections", "8"}},
        Case{"SpliceBoth", Pair::kServer4, 98, {"--splice"}, {"pk_tcp", "stream", "--splice"}},
        Case{"Sendfile", Pair::kServer4, 98, {}, {"pk_tcp", "stream", "--sendfile"}}),
    [](const auto& chosen) { return std::string(chosen.param.name); });

TEST_F(NetworkTcpTest, PacedByTimers) {
  const int server = serve({"pk_tcp", "serve", "--port", "7001"});
  const int client = talk({"pk_tcp", "stream", "--to", Pair::kServer4, "--port", "7001", "--pacing",
                           "120000000", "--size", "16384"});
  const Report report = expect_ends_are_charged({server, client}, 98);
  // TCP paces by itself with an hrtimer where the device has no fq: work that no packet brought.
  EXPECT_GT(report.sum([](const Flow& f) {
    return f.source == "softirq:HRTIMER" || f.source == "softirq:TASKLET";
  }),
            0)
      << describe(report);
}

TEST_F(NetworkTcpTest, PacedByTheFqQdisc) {
  if (find_program("tc").empty()) GTEST_SKIP() << "needs tc";
  if (auto r = pair_->client.exec({"tc", "qdisc", "add", "dev", Pair::kDevice, "root", "fq"}); !r) {
    GTEST_SKIP() << "this kernel lacks: sch_fq (" << r.error().message << ")";
  }
  const int server = serve({"pk_tcp", "serve", "--port", "7001"});
  // What cannot be reached without is not paced.
  const char* pace = in_guest() ? "9000000" : "60000000";
  const int client = talk({"pk_tcp", "stream", "--to", Pair::kServer4, "--port", "7001", "--pacing",
                           pace, "--size", "16384"});
  const Report report = expect_ends_are_charged({server, client}, 98);
  EXPECT_GT(report.sum([](const Flow& f) { return f.source == "softirq:NET_TX"; }), 0)
      << describe(report);
}

// A server that is too slow: the handshakes of connections that it has not accepted are for it,
// too.
TEST_F(NetworkTcpTest, ConnectionsWaitToBeAccepted) {
  const int server = serve({"pk_tcp", "serve", "--port", "7001", "--accept-ms", "100"});
  const int client = talk({"pk_tcp", "connect", "--to", Pair::kServer4, "--port", "7001", "--rate",
                           in_guest() ? "200" : "1500"});
  const Report report = observe({.seconds = 1.5, .min_samples = 60});
  expect_shares(report, network_shares(report, {server, client}, hog_), 95, 5);
  // Of a connection that waits the larger part is the client's, how large depends on the machine:
  // the server's was seen to be 3 % on a busy one, a third on others. If nobody knew the listener
  // it would have nothing.
  EXPECT_GT(report.sum([&](const Flow& f) { return is_network(f.source) && f.served == server; }),
            report.network_ns() / 100)
      << describe(report);
}

TEST_F(NetworkTcpTest, PreforkServersShareOneListener) {
  const int server =
      serve({"pk_tcp", "serve", "--port", "7001", "--mode", "echo", "--prefork", "2"});
  const int client =
      talk({"pk_tcp", "rr", "--to", Pair::kServer4, "--port", "7001", "--connections", "8"});
  std::set<int> ends = with_children(server, 2);
  ends.insert(client);
  EXPECT_EQ(ends.size(), 4);
  expect_ends_are_charged(ends, 98);
}

TEST_F(NetworkTcpTest, Loopback) {
  const int server = stage_.start(
      &pair_->client, {"pk_tcp", "serve", "--port", "7001", "--mode", "echo"}, last_cpu());
  const int client = talk({"pk_tcp", "rr", "--to", "127.0.0.1", "--port", "7001"});
  expect_ends_are_charged({server, client}, 98);
}

TEST_F(NetworkTcpTest, NobodyListens) {
  const int client = talk({"pk_tcp", "connect", "--to", Pair::kServer4, "--port", "7009"});
  const Report report = observe({.min_samples = 200});
  // Resets go back to the client; what the other side does for them is for nobody there.
  const Shares shares = network_shares(report, {client}, hog_);
  EXPECT_LE(shares.bystander, bystander_limit()) << describe(report);
  EXPECT_GE(shares.ends + shares.unclaimed + shares.kernel, 99) << describe(report);
}

}  // namespace
}  // namespace pkprof::live
