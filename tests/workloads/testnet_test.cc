// SPDX-License-Identifier: Apache-2.0
// The workloads and their network do what they say, or no accuracy test means anything.
#include "testnet.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace pkprof::testnet {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

class TestnetTest : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "needs root to make network namespaces";
    auto swept = remove_leftovers();
    ASSERT_TRUE(swept) << swept.error().message;
    auto pair = Pair::create(static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)) - 1);
    ASSERT_TRUE(pair) << pair.error().message;
    pair_.emplace(std::move(*pair));
  }

  Child start(const Namespace& ns, Argv argv, int cpu = -1) {
    argv[0] = sibling(argv[0]);
    auto child = Child::spawn(argv, {.ns = &ns, .cpu = cpu});
    if (!child) throw std::runtime_error(child.error().message);
    if (auto r = child->wait_for_line("ready"); !r) throw std::runtime_error(r.error().message);
    return std::move(*child);
  }

  static json result(Child& child) {
    auto done = child.stop();
    if (!done) throw std::runtime_error(done.error().message);
    return json::parse(child.last_line());
  }

  static json result_at_end(Child& child) {
    auto status = child.wait(10s);
    if (!status) throw std::runtime_error(status.error().message);
    if (*status != 0) throw std::runtime_error("status " + std::to_string(*status));
    return json::parse(child.last_line());
  }

  // Stops a server once it has read everything that was sent to it.
  static json result_when_read(Child& server) {
    for (int i = 0; i < 1000 && has_unread(server.pid()); ++i) std::this_thread::sleep_for(10ms);
    return result(server);
  }

  std::optional<Pair> pair_;

 private:
  // Whether a socket in the network namespace of the process has bytes to read, or a connection
  // that was not closed on both sides: proc(5), /proc/PID/net.
  static bool has_unread(pid_t pid) {
    const auto directory = "/proc/" + std::to_string(pid) + "/net/";
    for (const std::string table : {"udp", "udp6", "tcp", "tcp6", "raw", "packet"}) {
      std::ifstream file(directory + table);
      std::string line;
      std::getline(file, line);  // the columns' names
      while (std::getline(file, line)) {
        std::istringstream words(line);
        const std::vector<std::string> word{std::istream_iterator<std::string>(words), {}};
        if (table == "packet") {
          if (word.at(6) != "0") return true;
          continue;
        }
        const auto& state = word.at(3);
        const bool open = table.starts_with("tcp") && (state == "01" || state == "08");
        if (open || !word.at(4).ends_with(":00000000")) return true;
      }
    }
    return false;
  }
};

TEST_F(TestnetTest, EveryReceiveModeCountsWhatWasSent) {
  for (const char* mode : {"block", "poll", "busy", "epoll", "nap"}) {
    for (const char* call : {"recvfrom", "recvmsg", "recvmmsg", "read"}) {
      SCOPED_TRACE(std::string(mode) + " " + call);
      auto receiver = start(pair_->server,
                            {"pk_udp", "recv", "--port", "7001", "--mode", mode, "--call", call});
      auto sender = start(pair_->client, {"pk_udp", "send", "--to", Pair::kServer4, "--port",
                                          "7001", "--count", "500", "--pps", "20000"});
      const auto sent = result_at_end(sender);
      const auto got = result_when_read(receiver);
      EXPECT_EQ(sent["packets"], 500);
      EXPECT_EQ(got["packets"].get<int>() + got["dropped"].get<int>(), 500) << got;
      EXPECT_EQ(got["bytes"].get<int>(), got["packets"].get<int>() * 64);
    }
  }
}

TEST_F(TestnetTest, PacketsToTwoPortsKeepTheirRatioOverIPv6) {
  auto one = start(pair_->server, {"pk_udp", "recv", "--port", "7001"});
  auto two = start(pair_->server, {"pk_udp", "recv", "--port", "7002"});
  auto sender =
      start(pair_->client, {"pk_udp", "send", "--to", Pair::kServer6, "--connect", "--port",
                            "7001,7002", "--ratio", "3:1", "--count", "400", "--pps", "10000"});
  result_at_end(sender);
  EXPECT_EQ(result_when_read(one)["packets"], 300);
  EXPECT_EQ(result(two)["packets"], 100);
}

TEST_F(TestnetTest, MulticastReachesEveryMember) {
  auto one = start(pair_->server, {"pk_udp", "recv", "--port", "7001", "--multicast", "239.7.7.7",
                                   "--device", Pair::kDevice});
  auto sender =
      start(pair_->client, {"pk_udp", "send", "--multicast", "239.7.7.7", "--device", Pair::kDevice,
                            "--port", "7001", "--count", "100", "--pps", "10000"});
  result_at_end(sender);
  EXPECT_EQ(result_when_read(one)["packets"], 100);
}

TEST_F(TestnetTest, ReuseportWorkersShareThePackets) {
  auto receiver = start(pair_->server, {"pk_udp", "recv", "--port", "7001", "--reuseport", "3"});
  for (int i = 0; i < 20; ++i) {
    auto sender = start(pair_->client, {"pk_udp", "send", "--to", Pair::kServer4, "--port", "7001",
                                        "--count", "10"});
    result_at_end(sender);
  }
  const auto got = result_when_read(receiver);
  EXPECT_EQ(got["packets"], 200);
  ASSERT_EQ(got["workers"].size(), 3);
  int busy = 0;
  for (const auto& worker : got["workers"]) busy += worker["operations"] > 0;
  EXPECT_GE(busy, 2);
}

TEST_F(TestnetTest, PreforkWorkersShareOneSocket) {
  auto receiver = start(pair_->server, {"pk_udp", "recv", "--port", "7001", "--prefork", "2"});
  auto sender = start(pair_->client, {"pk_udp", "send", "--to", Pair::kServer4, "--port", "7001",
                                      "--count", "200", "--pps", "5000"});
  result_at_end(sender);
  const auto got = result_when_read(receiver);
  EXPECT_EQ(got["packets"].get<int>() + got["dropped"].get<int>(), 200);
  EXPECT_EQ(got["workers"].size(), 2);
}

TEST_F(TestnetTest, StreamArrivesWholeInEveryMode) {
  const std::vector<Argv> servers = {{}, {"--splice"}, {"--prefork", "2"}};
  const std::vector<Argv> clients = {{}, {"--splice"}, {"--sendfile"}, {"--pacing", "20000000"}};
  for (const auto& server_flags : servers) {
    for (const auto& client_flags : clients) {
      Argv serve = {"pk_tcp", "serve", "--port", "7010"};
      serve.insert(serve.end(), server_flags.begin(), server_flags.end());
      auto server = start(pair_->server, serve);
      Argv stream = {"pk_tcp", "stream", "--to",     Pair::kServer4, "--port",
                     "7010",   "--rate", "20000000", "--seconds",    "0.3"};
      stream.insert(stream.end(), client_flags.begin(), client_flags.end());
      auto client = start(pair_->client, stream);
      const auto sent = result_at_end(client);
      const auto got = result_when_read(server);
      EXPECT_GT(sent["bytes"], 2 * 65536);
      EXPECT_EQ(sent["bytes"], got["bytes"]) << got;
    }
  }
}

TEST_F(TestnetTest, RequestsAreAnswered) {
  for (const Argv& flags : {Argv{}, Argv{"--splice"}}) {
    Argv serve = {"pk_tcp", "serve", "--port", "7010", "--mode", "echo"};
    serve.insert(serve.end(), flags.begin(), flags.end());
    auto server = start(pair_->server, serve);
    auto client = start(pair_->client, {"pk_tcp", "rr", "--to", Pair::kServer6, "--port", "7010",
                                        "--connections", "4", "--seconds", "0.3"});
    EXPECT_GT(result_at_end(client)["transactions"], 100);
    EXPECT_EQ(result_when_read(server)["connections"], 4);
  }
}

TEST_F(TestnetTest, ConnectionsComeAndGo) {
  auto server = start(pair_->server, {"pk_tcp", "serve", "--port", "7010"});
  auto client = start(pair_->client, {"pk_tcp", "connect", "--to", Pair::kServer4, "--port", "7010",
                                      "--rate", "500", "--seconds", "0.5"});
  const auto done = result_at_end(client);
  EXPECT_EQ(done["errors"], 0);
  EXPECT_NEAR(done["connections"], 250, 100);
}

TEST_F(TestnetTest, SnifferAndRawSocketSeePings) {
  auto sniffer = start(pair_->server, {"pk_raw", "sniff", "--device", Pair::kDevice});
  auto raw = start(pair_->server, {"pk_raw", "icmp"});
  auto pinger = start(pair_->client, {"pk_raw", "ping", "--to", Pair::kServer4, "--pps", "200",
                                      "--seconds", "0.5"});
  const auto sent = result_at_end(pinger);
  EXPECT_GT(sent["packets"], 20);
  EXPECT_EQ(result_when_read(raw)["packets"], sent["packets"]);
  EXPECT_GE(result(sniffer)["packets"].get<int>(), 2 * sent["packets"].get<int>());
}

TEST_F(TestnetTest, SteeredPacketsAreProcessedOnTheChosenCpu) {
  const auto cpus = sysconf(_SC_NPROCESSORS_ONLN);
  if (cpus < 2) GTEST_SKIP() << "needs two CPUs";
  const auto processed = [](long cpu) {
    std::ifstream file("/proc/net/softnet_stat");
    std::string line;
    for (long i = 0; i <= cpu; ++i) std::getline(file, line);
    return std::strtoul(line.c_str(), nullptr, 16);
  };
  const long last = cpus - 1;
  auto receiver = start(pair_->server, {"pk_udp", "recv", "--port", "7001"}, 0);
  const auto before = processed(last);
  auto sender = start(pair_->client,
                      {"pk_udp", "send", "--to", Pair::kServer4, "--port", "7001", "--count",
                       "2000", "--pps", "20000"},
                      0);
  result_at_end(sender);
  EXPECT_GE(processed(last) - before, 2000UL);
}

TEST_F(TestnetTest, BridgeForwardsBetweenNamespaces) {
  auto hub = Namespace::create("hub");
  auto left = Namespace::create("left");
  auto right = Namespace::create("right");
  ASSERT_TRUE(hub && left && right);
  ASSERT_TRUE(add_veth({*left, "veth0", {"10.78.0.1/24"}}, {*hub, "port0", {}}));
  ASSERT_TRUE(add_veth({*right, "veth0", {"10.78.0.2/24"}}, {*hub, "port1", {}}));
  auto bridged = hub->add_bridge("br0", {"port0", "port1"});
  ASSERT_TRUE(bridged) << bridged.error().message;
  auto receiver = start(*right, {"pk_udp", "recv", "--port", "7001"});
  auto sender = start(*left, {"pk_udp", "send", "--to", "10.78.0.2", "--port", "7001", "--count",
                              "100", "--pps", "1000"});
  result_at_end(sender);
  EXPECT_EQ(result_when_read(receiver)["packets"], 100);
}

TEST_F(TestnetTest, ThreadedNapiHasAKernelThread) {
  auto threaded = pair_->server.set_threaded(Pair::kDevice, true);
  ASSERT_TRUE(threaded) << threaded.error().message;
  auto names = run_command({"sh", "-c", "cat /proc/[0-9]*/comm 2>/dev/null || true"});
  ASSERT_TRUE(names) << names.error().message;
  EXPECT_NE(names->find("napi/veth0"), std::string::npos);
}

TEST_F(TestnetTest, HogAsksTheKernelForNothing) {
  auto hog = start(pair_->client, {"pk_hog", "--seconds", "0.5", "--cpu", "0"});
  const auto done = result_at_end(hog);
  EXPECT_GT(done["loops"], 1000);
  EXPECT_GT(done["user_ns"], 10 * done["system_ns"].get<uint64_t>());
}

TEST_F(TestnetTest, SpawnerKeepsItsRate) {
  // An emulated CPU starts hardly more than 30 a second.
  auto spawner = start(pair_->client, {"pk_spawn", "--rate", "20", "--seconds", "1"});
  const auto done = result_at_end(spawner);
  EXPECT_NEAR(done["spawned"], 20, 6);
  EXPECT_EQ(done["failed"], 0);
}

TEST_F(TestnetTest, KilledTestLeavesNoNamespaceAndNoChild) {
  const pid_t victim = fork();
  if (victim == 0) {
    // A process of its own: the guardian of this one is not inherited by exec.
    execl("/proc/self/exe", "testnet_tests", "--victim", nullptr);
    _exit(127);
  }
  const auto prefix = "pkt-" + std::to_string(victim) + "-";
  const auto there = [&] {
    std::error_code ignored;
    for (const auto& e : std::filesystem::directory_iterator("/run/netns", ignored)) {
      if (e.path().filename().string().starts_with(prefix)) return true;
    }
    return false;
  };
  for (int i = 0; i < 1000 && !there(); ++i) std::this_thread::sleep_for(10ms);
  ASSERT_TRUE(there());
  std::this_thread::sleep_for(200ms);
  kill(victim, SIGKILL);
  waitpid(victim, nullptr, 0);
  for (int i = 0; i < 500 && there(); ++i) std::this_thread::sleep_for(10ms);
  EXPECT_FALSE(there());
}

// What the test above runs, and kills.
int be_the_victim() {
  auto pair = Pair::create();
  if (!pair) return 1;
  auto child = Child::spawn({sibling("pk_hog"), "--seconds", "60"}, {.ns = &pair->server});
  std::this_thread::sleep_for(30s);
  return child ? 0 : 1;
}

}  // namespace
}  // namespace pkprof::testnet

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--victim") {
    return pkprof::testnet::be_the_victim();
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
