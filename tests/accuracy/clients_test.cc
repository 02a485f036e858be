// SPDX-License-Identifier: Apache-2.0
// Servers' time by their clients, against what the clients asked for: servers of the usual shapes,
// two clients at a known ratio, a third that is connected and idle, a fourth that asks another
// server.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <cmath>
#include <fstream>
#include <map>
#include <numeric>
#include <set>
#include <thread>
#include <utility>

#include "scenario.h"

namespace pkprof::accuracy {
namespace {

using live::Argv;
using live::find_program;
using live::Stage;
using live::TempDir;
using nlohmann::json;
using namespace std::chrono_literals;

constexpr double hz = 1997;
constexpr int server_cpu = 1;
constexpr int client_cpu = 0;

struct ClientLimits {
  double known = 97;       // percent of the servers' busy time that is some client's
  double ratio = 10;       // percent that the ratio may be off
  double bystander = 0.5;  // percent of it
};
constexpr ClientLimits pools = {.known = 93, .ratio = 15, .bystander = 1};

// What servers did: by client, and what of it is nobody's.
struct Charged {
  std::map<int, double> clients;  // by pid, seconds; 0: clients that are not processes
  std::map<int, double> user;     // the same, of user code alone
  double itself = 0;

  [[nodiscard]] double of(int pid) const {
    const auto it = clients.find(pid);
    return it == clients.end() ? 0 : it->second;
  }
  [[nodiscard]] double all() const {
    return std::accumulate(clients.begin(), clients.end(), itself,
                           [](double sum, const auto& client) { return sum + client.second; });
  }
};

class ClientsTest : public ::testing::Test {
 protected:
  // A bystander computes on each CPU: on a virtual machine a clock that is due on an idle
  // CPU ticks late, and of work that lasts no longer than that it tells too little.
  void SetUp() override {
    live::skip_unless_able();
    if (IsSkipped()) return;
    stage_.start_hog(server_cpu);
    stage_.start_hog(client_cpu);
  }
  int answer(const Argv& how, int cpu = server_cpu) {
    Argv argv = {"pk_answer", "--truth", dir_.file("truth" + std::to_string(servers_++))};
    argv.insert(argv.end(), how.begin(), how.end());
    return stage_.start(nullptr, argv, cpu);
  }
  int ask(const Argv& where, const std::string& rate, const std::string& cost_us) {
    Argv argv = {"pk_ask", "--rate", rate, "--cost-us", cost_us};
    argv.insert(argv.end(), where.begin(), where.end());
    return stage_.start(nullptr, argv, client_cpu);
  }
  // Connected, and asks once in a long time.
  int stay_idle(const Argv& where) { return ask(where, "0.001", "10"); }

  // The servers say what they did, at the recording's begin and at its end.
  Charged record(const std::set<int>& servers) {
    const std::string seconds = live::in_guest() ? "12" : "4";
    const auto done = live::run_pkprof(
        {"record", "-a", "-q", "-F", "1997", "--budget", "100", "--clients", "-o",
         dir_.file("profile"), "--", "sh", "-c",
         R"(cd "$0" && cat truth* >begin && sleep $1 && cat truth* >end)", dir_.path(), seconds});
    EXPECT_EQ(done.status, 0) << done.err;
    live::read_report(dir_.file("profile"));  // the ledger sums
    const auto view =
        live::run_pkprof({"report", dir_.file("profile"), "--view", "clients", "--json"});
    EXPECT_EQ(view.status, 0) << view.err;
    const json servers_of = json::parse(view.out)["servers"];
    Charged charged;
    for (const json& server : servers_of) {
      if (!servers.contains(server["pid"].get<int>())) continue;
      charged.itself += server["for_itself_ns"].get<double>() / 1e9;
      for (const json& client : server["for_clients"]) {
        const int pid = client["client"].is_number() ? client["client"].get<int>() : 0;
        charged.user[pid] += client["user_ns"].get<double>() / 1e9;
        for (const char* part : {"user_ns", "own_ns", "async_ns"})
          charged.clients[pid] += client[part].get<double>() / 1e9;
      }
    }
    return charged;
  }

  // What all servers burned for one over what they burned for the other.
  [[nodiscard]] double truth(int one, int other) const {
    std::map<int64_t, double> did;
    for (const auto& [name, sign] : {std::pair{"begin", -1.0}, {"end", 1.0}}) {
      std::ifstream in(dir_.file(name), std::ios::binary);
      for (int64_t entry[2]; in.read(reinterpret_cast<char*>(entry), sizeof entry);)
        did[entry[0]] += sign * static_cast<double>(entry[1]);
    }
    return did[one] / did[other];
  }

  // `truth`: what the server burned for one over what it burned for the other. What the kernel does
  // for a message is partly its receiver's, so the ratio is of user code.
  static void expect(Charged charged, int one, int other, double truth,
                     const std::set<int>& bystanders, const ClientLimits& limits = {}) {
    const double all = charged.all();
    const double ratio = charged.user[one] / charged.user[other];
    const double known = 100 * (all - charged.itself) / all;
    double strangers = 0;
    for (const auto& [pid, seconds] : charged.clients)
      if (pid != one && pid != other) strangers += seconds;
    std::printf("  %.2f s: known %.1f %%, ratio %.3f (truth %.3f), strangers %.2f %%\n", all, known,
                ratio, truth, 100 * strangers / all);
    EXPECT_GE(all, 0.1);
    EXPECT_GE(known, limits.known);
    // What chance makes of so many samples, twice.
    const double chance =
        2 * std::sqrt(1 / (charged.user[one] * hz) + 1 / (charged.user[other] * hz));
    EXPECT_NEAR(ratio / truth, 1, limits.ratio / 100 + chance);
    EXPECT_LE(100 * strangers / all, limits.bystander);
    for (const int pid : bystanders) EXPECT_LE(100 * charged.of(pid) / all, limits.bystander);
  }

  // Two clients at 3:1 in equal requests, or at 1:5 in what they cost.
  void expect_two(const Argv& where, const std::set<int>& servers,
                  const ClientLimits& limits = {}) {
    const int idle = stay_idle(where);
    const int one = ask(where, "1500", "100");
    const int other = ask(where, "500", "100");
    std::this_thread::sleep_for(300ms);
    Charged charged = record(servers);
    expect(charged, one, other, truth(one, other), {idle}, limits);
    stage_.stop(one);
    stage_.stop(other);
    const int cheap = ask(where, "600", "50");
    const int dear = ask(where, "600", "500");
    std::this_thread::sleep_for(300ms);
    charged = record(servers);
    expect(charged, cheap, dear, truth(cheap, dear), {idle}, limits);
  }

  // Two clients at 3:1 in equal requests, by what they had answered.
  void expect_equal(const Argv& where, const std::set<int>& servers,
                    const ClientLimits& limits = {}) {
    const int idle = stay_idle(where);
    Argv told = where;
    told.insert(told.end(), {"--truth", ""});
    const auto ask_and_tell = [&](const char* rate) {
      told.back() = dir_.file("truth" + std::to_string(servers_++));
      return ask(told, rate, "0");
    };
    const int one = ask_and_tell("1800");
    const int other = ask_and_tell("600");
    std::this_thread::sleep_for(300ms);
    const Charged charged = record(servers);
    // All of it, since hardly any is user code.
    expect({charged.clients, charged.clients, charged.itself}, one, other, truth(one, other),
           {idle}, limits);
  }
  // What somebody at that port says to this, once it is there.
  static std::string talk(const std::string& port, const std::string& text) {
    const std::string script = "for i in $(seq 200); do exec 3<>/dev/tcp/127.0.0.1/" + port +
                               " && break; sleep 0.05; done 2>/dev/null; printf '" + text +
                               "' >&3; timeout 0.5 cat <&3; true";
    return live::run_program({"bash", "-c", script}).out;
  }

  TempDir dir_;
  Stage stage_;
  int servers_ = 0;
};

TEST_F(ClientsTest, Redis) {
  if (find_program("redis-server").empty()) GTEST_SKIP() << "needs redis-server";
  const int server = stage_.start(nullptr,
                                  {find_program("redis-server"), "--port", "9311", "--save", "",
                                   "--loglevel", "warning", "--dir", dir_.path()},
                                  server_cpu, false);
  talk("9311", "SET k abc\\r\\n");
  expect_equal({"--port", "9311", "--text", "GET k\\r\\n", "--answer-bytes", "9"}, {server});
}

TEST_F(ClientsTest, Memcached) {
  if (find_program("memcached").empty()) GTEST_SKIP() << "needs memcached";
  const int server =
      stage_.start(nullptr,
                   {find_program("memcached"), "-u", "root", "-l", "127.0.0.1", "-p", "9312", "-U",
                    "0", "-t", "4", "-o", "no_lru_maintainer,no_lru_crawler"},
                   server_cpu, false);
  talk("9312", "set k 0 0 3\\r\\nabc\\r\\n");
  expect_equal({"--port", "9312", "--text", "get k\\r\\n", "--answer-bytes", "23"}, {server},
               pools);
}

TEST_F(ClientsTest, Nginx) {
  if (find_program("nginx").empty()) GTEST_SKIP() << "needs nginx";
  live::write_file(dir_.file("nginx.conf"),
                   "daemon off; worker_processes 1; error_log stderr crit; pid " +
                       dir_.file("pid") +
                       "; events {} http { access_log off; keepalive_requests 100000000; "
                       "server { listen 127.0.0.1:9313; location / { return 200 hello; } } }\n");
  const int server = stage_.start(
      nullptr,
      {find_program("nginx"), "-p", dir_.path(), "-c", dir_.file("nginx.conf"), "-e", "stderr"},
      server_cpu, false);
  const std::string get = "GET / HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n";
  const size_t bytes = talk("9313", get).size();
  expect_equal({"--port", "9313", "--text", get, "--answer-bytes", std::to_string(bytes)},
               live::with_children(server, 1));
}

TEST_F(ClientsTest, OneThreadByTurns) {
  const int server = answer({"--mode", "turns", "--port", "9301"});
  expect_two({"--port", "9301"}, {server});
}

TEST_F(ClientsTest, UnixSocket) {
  const int server = answer({"--mode", "turns", "--unix", dir_.file("socket")});
  expect_two({"--unix", dir_.file("socket")}, {server});
}

TEST_F(ClientsTest, Datagrams) {
  const int server = answer({"--mode", "datagrams", "--port", "9302"});
  expect_two({"--port", "9302", "--datagrams"}, {server});
}

TEST_F(ClientsTest, Batches) {
  const int server = answer({"--mode", "batches", "--port", "9303"});
  expect_two({"--port", "9303"}, {server}, pools);
}

TEST_F(ClientsTest, PoolOfThreads) {
  const int server = answer({"--mode", "pool", "--threads", "3", "--port", "9304"});
  expect_two({"--port", "9304"}, {server}, pools);
}

TEST_F(ClientsTest, ProcessForEachConnection) {
  const int server = answer({"--mode", "processes", "--port", "9305"});
  const Argv where = {"--port", "9305"};
  const int idle = stay_idle(where);
  const int one = ask(where, "1500", "100");
  const int other = ask(where, "500", "100");
  std::this_thread::sleep_for(300ms);
  const Charged charged = record(live::with_children(server, 3));
  expect(charged, one, other, truth(one, other), {idle});
}

TEST_F(ClientsTest, ThroughAProxy) {
  const int last = answer({"--mode", "turns", "--port", "9306"});
  const int proxy = answer({"--mode", "proxy", "--port", "9307", "--upstream-port", "9306"});
  const Argv where = {"--port", "9307"};
  const int idle = stay_idle(where);
  const int one = ask(where, "900", "100");
  const int other = ask(where, "300", "100");
  std::this_thread::sleep_for(300ms);
  const Charged charged = record({last, proxy});
  expect(charged, one, other, truth(one, other), {idle, proxy}, pools);
}

}  // namespace
}  // namespace pkprof::accuracy
