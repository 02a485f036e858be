// SPDX-License-Identifier: Apache-2.0
// Known truth: programs that do nothing but communicate, and a bystander that does nothing but
// burn CPU. Whatever softirq time the network takes is for the former.

#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <thread>

#include "table.h"

namespace pkprof::accuracy {
namespace {

using testnet::Argv;
using testnet::Pair;

class AccuracyTest : public live::PairTest {};

TEST_F(AccuracyTest, UdpFlood) {
  const int receiver = serve({"pk_udp", "recv", "--port", "7001"});
  const int sender = talk({"pk_udp", "send", "--to", Pair::kServer4, "--port", "7001"});
  measure("UDP flood, RPS", {{receiver}, hog_, {receiver, sender}}, {98, 1});
}

// Most of the time all is off.
TEST_F(AccuracyTest, UdpFloodAtABudgetOfOnePercent) {
  const int receiver = serve({"pk_udp", "recv", "--port", "7001"});
  const int sender = talk({"pk_udp", "send", "--to", Pair::kServer4, "--port", "7001"});
  measure("UDP flood, RPS, budget of 1 %", {{receiver}, hog_, {receiver, sender}}, {98, 1},
          {.seconds = 12, .min_samples = 120, .frequency_hz = 1997, .budget = "1"});
}

TEST_F(AccuracyTest, UdpFloodBothEnds) {
  const int receiver = serve({"pk_udp", "recv", "--port", "7001", "--mode", "epoll"});
  const int sender = talk({"pk_udp", "send", "--to", Pair::kServer6, "--port", "7001"});
  measure("UDP flood IPv6, both ends", {{receiver, sender}, hog_, {}}, {98, 1});
}

// Receivers that are away from their sockets but for short visits, and have room for what comes
// meanwhile: then a packet costs the same whomever it is for. Waking a sleeper costs more than the
// packet, a receiver that polls contends for the socket's lock, and a packet thrown away costs
// less. Of 6,000 samples the ratio has a standard deviation of 0.09.
TEST_F(AccuracyTest, TwoReceiversAtThreeToOne) {
  const auto receiver = [&](const char* port) {
    return serve({"pk_udp", "recv", "--port", port, "--mode", "nap", "--rcvbuf", "16777216"});
  };
  const int one = receiver("7001");
  const int two = receiver("7002");
  const int sender =
      talk({"pk_udp", "send", "--to", Pair::kServer4, "--port", "7001,7002", "--ratio", "3:1"});
  const std::set<int> pinned = {one, two, sender};
  const Observed seen = measure("UDP to two, 3:1", {{one, two}, hog_, pinned}, {98, 1},
                                {.seconds = 14, .min_samples = 4000});
  const auto counts = [&](const live::Flow& f) { return is_received_elsewhere(f, pinned); };
  expect_ratio(seen.report, counts, one, two, 3);
}

// Two processes with a socket each on one port: which of them a packet is for is the kernel's
// choice, by the sender's port, and no header says it.
TEST_F(AccuracyTest, TwoReceiversOfOnePort) {
  const auto receiver = [&] {
    return serve({"pk_udp", "recv", "--port", "7001", "--reuseport", "1", "--mode", "nap",
                  "--rcvbuf", "16777216"});
  };
  const auto worker_of = [](int server) {
    std::set<int> both = live::with_children(server, 1);
    both.erase(server);
    return both.empty() ? 0 : *both.begin();
  };
  const int one = receiver();
  const int two = receiver();
  const int worker_one = worker_of(one);
  const int worker_two = worker_of(two);
  std::set<int> pinned = {one, two, worker_one, worker_two};
  // So many that hardly ever all come to one of the two.
  for (int i = 0; i < 16; ++i)
    pinned.insert(talk({"pk_udp", "send", "--to", Pair::kServer4, "--port", "7001", "--pps",
                        live::in_guest() ? "250" : "10000"}));
  const Observed seen = measure("UDP to one port of two", {{worker_one, worker_two}, hog_, pinned},
                                {98, 1}, {.seconds = 10, .min_samples = 2500});
  const auto counts = [&](const live::Flow& f) { return is_received_elsewhere(f, pinned); };
  expect_ratio(seen.report, counts, worker_one, worker_two, stage_.ratio(one, two, "packets"));
}

// A CPU that sleeps is asked to wake the receiver, by the softirq of another: such a call is for
// whoever is woken.
TEST_F(AccuracyTest, WakeupsOfReceivers) {
  PKPROF_NEEDS("interrupts: who has other CPUs call functions");
  const int one = serve({"pk_udp", "recv", "--port", "7001"});
  const int two = serve({"pk_udp", "recv", "--port", "7002"});
  talk({"pk_udp", "send", "--to", Pair::kServer4, "--port", "7001,7002", "--ratio", "3:1", "--pps",
        "4000"});
  // Linux 6.1 does not tell which function is called: among them are those for packet steering,
  // which the sender has a part in, and what others on the machine and the kernel have called.
  const std::set<int> judged = {one, two, hog_, live::kUnclaimed};
  const auto counts = [&judged](const live::Flow& f) {
    return f.source == "ipi:sched_ttwu_pending" ||
           (f.source == "ipi:call_function" && judged.contains(f.served));
  };
  const Observed seen = measure("wakeups on other CPUs, 3:1", {{one, two}, hog_, {}, counts},
                                {95, 5}, {.seconds = 8, .min_samples = 10, .frequency_hz = 1997});
  expect_ratio(seen.report, counts, one, two, 3, Time::measured);
}

// A CPU that is busy is asked to look for another task: by a softirq, for whom it wakes the
// receiver. How often for which of two is not known: who is woken while the CPU is about to look is
// not asked for again.
TEST_F(AccuracyTest, ReceiversWokenOnABusyCpu) {
  const int interrupted = stage_.start_hog(0);
  const int one = serve({"pk_udp", "recv", "--port", "7001"});
  const int two = serve({"pk_udp", "recv", "--port", "7002"});
  talk({"pk_udp", "send", "--to", Pair::kServer4, "--port", "7001,7002", "--ratio", "3:1", "--pps",
        "4000"});
  const uint64_t before = live::interrupts_had("RES");
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  if (live::interrupts_had("RES") < before + 10)
    GTEST_SKIP() << "no CPU interrupts another for this";
  // The kernel wakes threads of its own there, too.
  const std::set<int> judged = {one, two, interrupted, hog_, live::kUnclaimed};
  const auto counts = [&judged](const live::Flow& f) {
    return f.source == "ipi:reschedule" && judged.contains(f.served);
  };
  measure("reschedules", {{one, two}, interrupted, {}, counts}, {95, 5},
          {.seconds = 8, .min_samples = 10, .frequency_hz = 1997});
}

// A bystander that only computes: what it gets done beside a flood, over what it gets done by
// itself, is what it has of its CPU. The rest is taken from it by packets: softirqs, interrupts,
// and what entering those takes.
class BystandersLossTest : public AccuracyTest {
 protected:
  struct Computed {
    int pid = 0;
    double loops = 0;
  };
  static Computed computed(const std::string& out) {
    const auto result = nlohmann::json::parse(out.substr(out.find('{')));
    return {result.at("pid").get<int>(), result.at("loops").get<double>()};
  }
  static Argv compute() {
    return {testnet::sibling("pk_hog"), "--cpu", std::to_string(live::last_cpu()), "--seconds",
            "5"};
  }

  // Of a CPU, what a report has as its user time and what it really had, one run after the other.
  void compare(const char* scenario, const char* budget, const Limits& limits) {
    if (live::is_below_pvm()) GTEST_SKIP() << "what an interrupt takes is not to be seen here";
    stage_.stop(hog_);
    static const double alone = computed(live::must(testnet::run_command(compute()))).loops;
    const int receiver =
        serve({"pk_udp", "recv", "--port", "7001", "--mode", "nap", "--rcvbuf", "16777216"});
    const int sender =
        talk({"pk_udp", "send", "--to", Pair::kServer4, "--port", "7001", "--pps", "50000"});
    const live::TempDir dir;
    Argv argv =
        live::pkprof_argv({"record", "-a", "--budget", budget, "-o", dir.file("profile"), "--"});
    for (const std::string& word : compute()) argv.push_back(word);
    const Computed beside = computed(live::must(testnet::run_command(argv)));
    const live::Report report = live::read_report(dir.file("profile"));
    const auto percent = [&](const auto& counts) {
      return static_cast<double>(report.sum(counts)) / 5e7;
    };
    const double user = percent(
        [&](const live::Flow& f) { return f.ran_on == beside.pid && f.served == beside.pid; });
    const double taken = percent([&](const live::Flow& f) {
      return f.ran_on == beside.pid && (f.served == receiver || f.served == sender);
    });
    const double truth = 100 * beside.loops / alone;
    // What pkprof takes of it in windows nobody takes in between.
    const std::set<int> ours = report.pids_of("pkprof");
    const double lost = percent(
        [&](const live::Flow& f) { return f.ran_on == beside.pid && ours.contains(f.served); });
    const double between = lost * (1 - report.watched);
    char text[96];
    std::snprintf(text, sizeof text, "its own: %.0f %% of a CPU, truth %.0f %%; taken: %.0f %%",
                  user, truth, taken);
    note(scenario, report, {{receiver, sender}, beside.pid, {receiver, sender}}, limits);
    remark(text);
    if (live::in_guest()) return;
    EXPECT_NEAR(user + between, truth, 10) << text;
  }
};

TEST_F(BystandersLossTest, ByDefault) {
  compare("a bystander's loss", "5", {95, 5});
}

TEST_F(BystandersLossTest, AtABudgetOfOnePercent) {
  compare("a bystander's loss, budget of 1 %", "1", {95, 5});
}

TEST_F(AccuracyTest, TcpStream) {
  const int server = serve({"pk_tcp", "serve", "--port", "7001"});
  const int client = talk({"pk_tcp", "stream", "--to", Pair::kServer4, "--port", "7001"});
  measure("TCP stream", {{server, client}, hog_, {}}, {98, 2});
}

TEST_F(AccuracyTest, TcpRequestResponse) {
  const int server = serve({"pk_tcp", "serve", "--port", "7001", "--mode", "echo"});
  const int client = talk({"pk_tcp", "rr", "--to", Pair::kServer4, "--port", "7001"});
  measure("TCP request/response", {{server, client}, hog_, {}}, {98, 2});
}

TEST_F(AccuracyTest, TcpConnections) {
  const int server = serve({"pk_tcp", "serve", "--port", "7001"});
  const int client = talk({"pk_tcp", "connect", "--to", Pair::kServer4, "--port", "7001"});
  measure("TCP connect/close", {{server, client}, hog_, {}}, {95, 5});
}

}  // namespace
}  // namespace pkprof::accuracy
