// SPDX-License-Identifier: Apache-2.0
// Ways that packets take besides from one end to the other: over a bridge, through a router, into
// a raw socket, to no one; and a driver polled by a thread.
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "scenario.h"

namespace pkprof::live {
namespace {

using testnet::Namespace;
using testnet::Pair;

class NetworkPathsTest : public PairTest {
 protected:
  // A veth polls its packets (NAPI) only where its peer leaves segmentation undone.
  void stop_segmentation() {
    must(pair_->client.exec({"ethtool", "-K", Pair::kDevice, "tso", "off"}));
  }
};

// Three namespaces: the ends, and one between them that the packets go through.
class NetworkMiddleTest : public testing::Test {
 protected:
  void SetUp() override {
    skip_unless_able();
    if (IsSkipped()) return;
    must(testnet::remove_leftovers());
    client_.emplace(must(Namespace::create("client")));
    middle_.emplace(must(Namespace::create("middle")));
    server_.emplace(must(Namespace::create("server")));
    hog_ = stage_.start_hog(last_cpu());
  }

  void join_by_bridge() {
    must(testnet::add_veth({*client_, "veth0", {"10.79.0.1/24"}}, {*middle_, "port1", {}}));
    must(testnet::add_veth({*server_, "veth0", {"10.79.0.2/24"}}, {*middle_, "port2", {}}));
    must(middle_->add_bridge("br0", {"port1", "port2"}));
    must(middle_->set_rps("port1", 1UL << last_cpu()));
    must(server_->set_rps("veth0", 1UL << last_cpu()));
  }

  void join_by_router() {
    must(testnet::add_veth({*client_, "veth0", {"10.79.0.1/24"}},
                           {*middle_, "veth1", {"10.79.0.254/24"}}));
    must(testnet::add_veth({*server_, "veth0", {"10.79.1.2/24"}},
                           {*middle_, "veth2", {"10.79.1.254/24"}}));
    must(middle_->enable_forwarding());
    must(client_->ip({"route", "add", "default", "via", "10.79.0.254"}));
    must(server_->ip({"route", "add", "default", "via", "10.79.1.254"}));
    must(middle_->set_rps("veth1", 1UL << last_cpu()));
  }

  // Its process's pid. Steered in the client's namespace only: in the server's it is in the
  // tunnel's own system call that packets are received.
  int join_by_tunnel() {
    const int tunnel = stage_.start(
        &*middle_, {"pk_tunnel", "--from", client_->path(), "--to", server_->path()}, 0);
    must(client_->add_address("tun0", "10.79.0.1/24"));
    must(server_->add_address("tun0", "10.79.0.2/24"));
    must(client_->link_up("tun0"));
    must(server_->link_up("tun0"));
    must(client_->set_rps("tun0", 1UL << last_cpu()));
    return tunnel;
  }

  // What is received is for the ends; the tunnel has its system calls.
  void expect_the_tunnel_has_its_own(const std::set<int>& ends, int tunnel) {
    const Report report = observe();
    expect_shares(report, network_shares(report, ends, hog_), 95, 5);
    EXPECT_LE(network_shares(report, {tunnel}, hog_).ends, bystander_limit()) << describe(report);
    EXPECT_GT(report.find(tunnel)->own_ns, 0) << describe(report);
  }

  Turn turn_;
  Stage stage_;
  std::optional<Namespace> client_, middle_, server_;
  int hog_ = 0;
};

TEST_F(NetworkMiddleTest, BridgeUdp) {
  join_by_bridge();
  const int receiver = stage_.start(&*server_, {"pk_udp", "recv", "--port", "7001"}, 0);
  const int sender =
      stage_.start(&*client_, {"pk_udp", "send", "--to", "10.79.0.2", "--port", "7001"}, 0);
  const Report report = observe();
  expect_shares(report, network_shares(report, {receiver, sender}, hog_), 95, 5);
}

TEST_F(NetworkMiddleTest, BridgeTcp) {
  join_by_bridge();
  const int server =
      stage_.start(&*server_, {"pk_tcp", "serve", "--port", "7001", "--mode", "echo"}, 0);
  const int client =
      stage_.start(&*client_, {"pk_tcp", "rr", "--to", "10.79.0.2", "--port", "7001"}, 0);
  const Report report = observe();
  expect_shares(report, network_shares(report, {server, client}, hog_), 95, 5);
}

// What a router does for packets whose receiver is on this machine is for that receiver.
TEST_F(NetworkMiddleTest, RoutedToAReceiverHere) {
  join_by_router();
  const int receiver = stage_.start(&*server_, {"pk_udp", "recv", "--port", "7001"}, 0);
  const int sender =
      stage_.start(&*client_, {"pk_udp", "send", "--to", "10.79.1.2", "--port", "7001"}, 0);
  const Report report = observe();
  expect_shares(report, network_shares(report, {receiver, sender}, hog_), 95, 5);
}

TEST_F(NetworkMiddleTest, ForwardedToNowhere) {
  join_by_router();
  must(server_->ip({"link", "set", "veth0", "down"}));
  const int sender =
      stage_.start(&*client_, {"pk_udp", "send", "--to", "10.79.1.2", "--port", "7001"}, 0);
  const Report report = observe({.min_samples = 200});
  const Shares shares = network_shares(report, {sender}, hog_);
  EXPECT_LE(shares.bystander, bystander_limit()) << describe(report);
  EXPECT_GE(shares.ends + shares.unclaimed + shares.kernel, 98) << describe(report);
}

TEST_F(NetworkMiddleTest, TunnelTcp) {
  const int tunnel = join_by_tunnel();
  const int server =
      stage_.start(&*server_, {"pk_tcp", "serve", "--port", "7001", "--mode", "echo"}, 0);
  const int client =
      stage_.start(&*client_, {"pk_tcp", "rr", "--to", "10.79.0.2", "--port", "7001"}, 0);
  expect_the_tunnel_has_its_own({server, client}, tunnel);
}

// The kernel opens and closes connections while it has a packet from the tunnel's process.
TEST_F(NetworkMiddleTest, TunnelConnections) {
  const int tunnel = join_by_tunnel();
  const int server = stage_.start(&*server_, {"pk_tcp", "serve", "--port", "7001"}, 0);
  const int client =
      stage_.start(&*client_, {"pk_tcp", "connect", "--to", "10.79.0.2", "--port", "7001"}, 0);
  expect_the_tunnel_has_its_own({server, client}, tunnel);
}

TEST_F(NetworkPathsTest, EchoRequestsAreForThePingerOrNobody) {
  const int pinger = talk({"pk_raw", "ping", "--to", Pair::kServer4, "--pps", "0"});
  const Report report = observe();
  const Shares shares = network_shares(report, {pinger}, hog_);
  EXPECT_LE(shares.bystander, bystander_limit()) << describe(report);
  EXPECT_GE(shares.ends + shares.unclaimed + shares.kernel, 98) << describe(report);
  EXPECT_GT(report.unclaimed_ns("icmp"), 0) << describe(report);
}

TEST_F(NetworkPathsTest, EchoRequestsOverIPv6) {
  const int pinger = talk({"pk_raw", "ping", "--to", Pair::kServer6, "--pps", "0"});
  const Report report = observe();
  const Shares shares = network_shares(report, {pinger}, hog_);
  EXPECT_LE(shares.bystander, bystander_limit()) << describe(report);
  EXPECT_GE(shares.ends + shares.unclaimed + shares.kernel, 98) << describe(report);
}

// Sends ARP requests for the server's address, as many as it can.
class ArpFlood {
 public:
  explicit ArpFlood(const Namespace& ns) {
    const pid_t parent = getpid();
    pid_ = fork();
    if (pid_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int where = open(ns.path().c_str(), O_RDONLY | O_CLOEXEC);
    if (getppid() != parent || where < 0 || setns(where, CLONE_NEWNET) != 0) _exit(1);
    cpu_set_t first;
    CPU_ZERO(&first);
    CPU_SET(0, &first);
    sched_setaffinity(0, sizeof first, &first);
    send_for_ever();
  }
  ~ArpFlood() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  ArpFlood(const ArpFlood&) = delete;
  ArpFlood& operator=(const ArpFlood&) = delete;
  [[nodiscard]] int pid() const { return pid_; }

 private:
  [[noreturn]] static void send_for_ever() {
    const int fd = socket(AF_PACKET, SOCK_DGRAM, htons(ETH_P_ARP));
    if (fd < 0) _exit(1);
    sockaddr_ll to = {};
    to.sll_family = AF_PACKET;
    to.sll_protocol = htons(ETH_P_ARP);
    to.sll_ifindex = static_cast<int>(if_nametoindex(Pair::kDevice));
    to.sll_halen = 6;
    std::memset(to.sll_addr, 0xff, 6);
    // Ethernet and IPv4, a request, from 02:00:00:00:00:01 10.77.0.9, for 10.77.0.2.
    static constexpr unsigned char kRequest[] = {0,  1,  8, 0, 6, 4, 0, 1, 2, 0, 0,  0,  0, 1,
                                                 10, 77, 0, 9, 0, 0, 0, 0, 0, 0, 10, 77, 0, 2};
    for (;;) {
      (void)!sendto(fd, kRequest, sizeof kRequest, 0, reinterpret_cast<sockaddr*>(&to), sizeof to);
    }
  }

  pid_t pid_ = -1;
};

TEST_F(NetworkPathsTest, ArpIsForNobody) {
  const ArpFlood flood(pair_->client);
  const Report report = observe({.min_samples = 200});
  const Shares shares = network_shares(report, {flood.pid()}, hog_);
  EXPECT_LE(shares.bystander, bystander_limit()) << describe(report);
  EXPECT_GE(shares.ends + shares.unclaimed + shares.kernel, 98) << describe(report);
  EXPECT_GT(report.unclaimed_ns("arp"), 0) << describe(report);
}

TEST_F(NetworkPathsTest, ThreadedNapi) {
  if (auto r = pair_->server.set_threaded(Pair::kDevice, true); !r) {
    GTEST_SKIP() << "this kernel lacks: threaded NAPI (" << r.error().message << ")";
  }
  stop_segmentation();
  // Not steered, so that it is the thread that works; on the bystander's CPU.
  must(pair_->server.set_rps(Pair::kDevice, 0));
  must(testnet::run_command({"sh", "-c",
                             "for t in $(pgrep '^napi/" + std::string(Pair::kDevice) +
                                 "'); do taskset -pc \"$1\" $t || exit 1; done",
                             "sh", std::to_string(last_cpu())}));
  const int receiver = serve({"pk_udp", "recv", "--port", "7001"});
  const int sender = talk({"pk_udp", "send", "--to", Pair::kServer4, "--port", "7001"});
  const Report report = observe();
  expect_shares(report, network_shares(report, {receiver, sender}, hog_), 95, 5);
  EXPECT_GT(report.sum([&](const Flow& f) {
    const Process* ran_on = report.find(f.ran_on);
    return ran_on != nullptr && ran_on->comm.starts_with("napi/") && f.served == receiver;
  }),
            0)
      << describe(report);
}

TEST_F(NetworkPathsTest, GroOnTheDevice) {
  must(pair_->server.set_gro(Pair::kDevice, true));
  stop_segmentation();
  const int server = serve({"pk_tcp", "serve", "--port", "7001"});
  const int client = talk({"pk_tcp", "stream", "--to", Pair::kServer4, "--port", "7001"});
  const Report report = observe();
  expect_shares(report, network_shares(report, {server, client}, hog_), 95, 5);
}

}  // namespace
}  // namespace pkprof::live
