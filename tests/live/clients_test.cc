// SPDX-License-Identifier: Apache-2.0
// Servers' clients: who they are, where they are, and the way that their work takes. How right the
// times are is for the accuracy suite.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "scenario.h"

namespace pkprof::live {
namespace {

using nlohmann::json;
using testnet::Pair;
using namespace std::chrono_literals;

class ClientsLiveTest : public PairTest {
 protected:
  json record(const Argv& more = {}) {
    std::this_thread::sleep_for(300ms);
    Argv argv = {
        "record",   "-a", "-q", "--budget", "100", "-o", file(), "-d", in_guest() ? "8" : "2",
        "--clients"};
    argv.insert(argv.end(), more.begin(), more.end());
    const Finished done = run_pkprof(argv);
    EXPECT_EQ(done.status, 0) << done.err;
    read_report(file());  // the ledger sums
    return view({"--view", "clients"})["servers"];
  }
  json view(const Argv& more) {
    Argv argv = {"report", file(), "--json"};
    argv.insert(argv.end(), more.begin(), more.end());
    const Finished report = run_pkprof(argv);
    EXPECT_EQ(report.status, 0) << report.err;
    return json::parse(report.out);
  }
  [[nodiscard]] std::string file() const { return dir_.file("profile"); }

  // The client that a server did most for.
  static json first_client(const json& servers, int server) {
    for (const json& one : servers)
      if (one["pid"] == server && !one["for_clients"].empty()) return one["for_clients"][0];
    return nullptr;
  }

  TempDir dir_;
};

TEST_F(ClientsLiveTest, InAnotherNamespaceAProcess) {
  const int server = stage_.start(
      &pair_->server, {"pk_answer", "--mode", "turns", "--bind", "0.0.0.0", "--port", "9401"});
  const int client = stage_.start(
      &pair_->client, {"pk_ask", "--to", Pair::kServer4, "--port", "9401", "--rate", "1000"});
  const json found = first_client(record(), server);
  ASSERT_FALSE(found.is_null());
  EXPECT_EQ(found["client"], client);
  EXPECT_EQ(found["comm"], "pk_ask");
  EXPECT_TRUE(found["via"].empty());
}

// Packets from an address that no socket of this machine has. Answers find their way: else they
// would wait for it, and the server for them.
TEST_F(ClientsLiveTest, ElsewhereAnAddress) {
  must(pair_->client.add_address(Pair::kDevice, "10.77.0.99/24"));
  const int server = stage_.start(
      &pair_->server, {"pk_answer", "--mode", "datagrams", "--bind", "0.0.0.0", "--port", "9402"});
  stage_.start(&pair_->client,
               {"/usr/bin/python3", "-c",
                "import socket, struct, sys, time\n"
                "s = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)\n"
                "ask = struct.pack('=Ii', 300, 1)\n"
                "udp = struct.pack('!HHHH', 4242, 9402, 8 + len(ask), 0) + ask\n"
                "ip = struct.pack('!BBHHHBBH4s4s', 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0,\n"
                "                 socket.inet_aton('10.77.0.99'), socket.inet_aton(sys.argv[1]))\n"
                "print('ready', flush=True)\n"
                "while True:\n"
                "  s.sendto(ip + udp, (sys.argv[1], 0))\n"
                "  time.sleep(0.001)\n",
                Pair::kServer4});
  const json servers = record();
  EXPECT_EQ(first_client(servers, server)["client"], "10.77.0.99") << servers;
  EXPECT_EQ(first_client(record({"--client-ports"}), server)["client"], "10.77.0.99:4242");
  const json by_client = view({"--by", "client"});
  EXPECT_TRUE(std::ranges::any_of(by_client["processes"], [](const json& row) {
    return row["comm"] == "10.77.0.99:4242" && row["async_ns"] > 0;
  }));
}

TEST_F(ClientsLiveTest, ThroughAProxyByWayOfIt) {
  const int last = stage_.start(nullptr, {"pk_answer", "--mode", "turns", "--port", "9403"});
  const int proxy = stage_.start(
      nullptr, {"pk_answer", "--mode", "proxy", "--port", "9404", "--upstream-port", "9403"});
  const int client = stage_.start(nullptr, {"pk_ask", "--port", "9404", "--rate", "500"});
  const json servers = record();
  const json at_proxy = first_client(servers, proxy);
  ASSERT_FALSE(at_proxy.is_null());
  EXPECT_EQ(at_proxy["client"], client);
  EXPECT_TRUE(at_proxy["via"].empty());
  const json at_last = first_client(servers, last);
  ASSERT_FALSE(at_last.is_null());
  EXPECT_EQ(at_last["client"], client);
  EXPECT_EQ(at_last["via"], json::array({proxy}));

  const json by_client = view({"--by", "client"});
  for (const json& row : by_client["processes"])
    if (row["pid"] == client) {
      EXPECT_GT(row["sources"]["server:pk_answer"], 0);
    }
}

// Each moment is once in what all cost with their servers; and gprof's listings have it, too.
TEST_F(ClientsLiveTest, AClientCostsWhatItsServersDoForIt) {
  const int last = stage_.start(nullptr, {"pk_answer", "--mode", "turns", "--port", "9406"});
  const int proxy = stage_.start(
      nullptr, {"pk_answer", "--mode", "proxy", "--port", "9407", "--upstream-port", "9406"});
  const int client = stage_.start(nullptr, {"pk_ask", "--port", "9407", "--rate", "500"});
  record();
  const json report = view({});
  int64_t sum = report["other_with_servers_ns"].get<int64_t>();
  for (const char* const key : {"kernel_ns", "idle_ns", "steal_ns"})
    sum += report[key].get<int64_t>();
  for (const auto& [reason, ns] : report["unclaimed"].items()) sum += ns.get<int64_t>();
  std::map<int, json> rows;
  for (const json& row : report["processes"]) {
    sum += row["with_servers_ns"].get<int64_t>();
    if (row["pid"] != 0) rows[row["pid"]] = row;
  }
  EXPECT_EQ(sum, report["cpu_ns"]);
  const auto costs = [&](int pid) {
    const json& row = rows[pid];
    return row["user_ns"].get<int64_t>() + row["own_ns"].get<int64_t>() +
           row["async_ns"].get<int64_t>();
  };
  const auto for_others = [&](int pid) { return rows[pid]["for_others_ns"].get<int64_t>(); };
  EXPECT_GT(for_others(last), costs(last) / 2);
  EXPECT_GT(for_others(proxy), costs(proxy) / 2);
  EXPECT_LT(for_others(client), costs(client) / 10);
  EXPECT_GT(rows[client]["with_servers_ns"].get<int64_t>(), costs(client) + for_others(last) / 2);

  const std::string id = std::to_string(client);
  std::map<std::string, int64_t> functions;
  const json graph = view({"--view", "graph", "--by", "client", "--pid", id});
  for (const json& one : graph["functions"])
    functions[one["name"]] += one["total_ns"].get<int64_t>();
  const Finished listed = run_program(
      {testnet::sibling("pkgprof"), "-i", file(), "--by", "client", "--threshold", "0", id});
  EXPECT_EQ(listed.status, 0) << listed.err;
  for (const int server : {last, proxy}) {
    const std::string of = std::to_string(server);
    const int64_t below = functions[(id + "k:served by pk_answer:").append(of)];
    EXPECT_GT(below, for_others(server) / 10 * 9) << listed.out;
    EXPECT_LE(below, for_others(server)) << listed.out;
    EXPECT_NE(listed.out.find((id + ">").append(of).append("u:main")), std::string::npos)
        << listed.out;
  }
}

// One tree through client, kernel and server: what a server did hangs under the call by which the
// client waited for it.
TEST_F(ClientsLiveTest, UnderTheClientsCall) {
  const int server = stage_.start(nullptr, {"pk_answer", "--mode", "turns", "--port", "9406"});
  stage_.start(nullptr, {"pk_ask", "--port", "9406", "--rate", "500"});
  ASSERT_FALSE(first_client(record(), server).is_null());
  const Finished folded = run_pkprof({"export", "--to", "folded", "--by", "client", file()});
  ASSERT_EQ(folded.status, 0) << folded.err;
  std::istringstream lines(folded.out);
  double under = 0;
  double all = 0;
  for (std::string line; std::getline(lines, line);) {
    const size_t served = line.find("served by pk_answer");
    if (served == std::string::npos || line.find("burn_us", served) == std::string::npos) continue;
    const double value = std::stod(line.substr(line.rfind(' ') + 1));
    all += value;
    const size_t call = line.find("read_all");
    if (call < served && line.find("syscall:read", call) < served) under += value;
  }
  ASSERT_GT(all, 0);
  EXPECT_GE(under / all, 0.95);
}

// What its children write to a shell it has asked for; whom pkprof has started nobody asked.
TEST_F(ClientsLiveTest, AShellIsNoServerOfItsChildren) {
  const Argv shell = {"bash", "-c",
                      "x=$(echo $(echo hi)); end=$((SECONDS + 2));"
                      "while [ $SECONDS -lt $end ]; do :; done"};
  Argv argv = {"record", "-a", "-q", "--budget", "100", "-o", file(), "--clients", "--"};
  argv.insert(argv.end(), shell.begin(), shell.end());
  const Finished done = run_pkprof(argv);
  EXPECT_EQ(done.status, 0) << done.err;
  const Report report = read_report(file());
  const json servers = view({"--view", "clients"})["servers"];
  double for_others = 0;
  for (const json& one : servers)
    if (one["comm"] == "bash")
      for (const json& client : one["for_clients"]) for_others += client["user_ns"].get<double>();
  double all = 0;
  for (const int pid : report.pids_of("bash"))
    all += static_cast<double>(
        report.sum([pid](const Flow& f) { return f.served == pid && f.source == "user"; }));
  EXPECT_GT(all, 0.5e9);
  EXPECT_LE(for_others / all, 0.01);
}

TEST_F(ClientsLiveTest, RequestsAreCounted) {
  const int server = stage_.start(nullptr, {"pk_answer", "--mode", "turns", "--port", "9407"});
  const int client = stage_.start(
      nullptr, {"pk_ask", "--port", "9407", "--rate", "500", "--truth", dir_.file("truth")});
  std::this_thread::sleep_for(300ms);
  const Finished done =
      run_pkprof({"record", "-a", "-q", "--budget", "100", "-o", file(), "--clients", "--", "sh",
                  "-c", R"(cd "$0" && cat truth >begin && sleep $1 && cat truth >end)", dir_.path(),
                  in_guest() ? "8" : "3"});
  EXPECT_EQ(done.status, 0) << done.err;
  const auto answered = [&](const char* name) {
    const std::string entry = read_file(dir_.file(name));
    int64_t of[2] = {};
    std::memcpy(of, entry.data(), std::min(sizeof of, entry.size()));
    return of[0] == client ? static_cast<double>(of[1]) : 0;
  };
  const json found = first_client(view({"--view", "clients"})["servers"], server);
  ASSERT_FALSE(found.is_null());
  // The recording begins and ends around that; where the CPU is emulated, seconds around it.
  const double counted = found["requests"].get<double>() / (answered("end") - answered("begin"));
  EXPECT_GE(counted, 0.99);
  EXPECT_LE(counted, in_guest() ? 1.5 : 1.05);
}

// What is done between accepting a connection and reading from it; and what a fork for it does.
TEST_F(ClientsLiveTest, WhoConnectsIsWorkedFor) {
  struct Case {
    const char* mode;
    Argv at;
  };
  for (const auto& [mode, at] :
       {Case{"accepts", {"--port", "9408"}}, Case{"forks", {"--port", "9409"}},
        Case{"accepts", {"--unix", dir_.file("socket")}}}) {
    Argv serve = {"pk_answer", "--mode", mode, "--cost-us", in_guest() ? "40000" : "10000"};
    Argv ask = {"pk_ask", "--anew", "--rate", in_guest() ? "5" : "30"};
    serve.insert(serve.end(), at.begin(), at.end());
    ask.insert(ask.end(), at.begin(), at.end());
    const int server = stage_.start(nullptr, serve);
    const int client = stage_.start(nullptr, ask);
    double known = 0;
    double all = 0;
    for (const json& one : record()) {
      if (one["comm"] != "pk_answer") continue;
      all += one["itself"]["user_ns"].get<double>();
      for (const json& of : one["for_clients"]) {
        EXPECT_EQ(of["client"], client) << mode;
        known += of["user_ns"].get<double>();
      }
    }
    all += known;
    EXPECT_GT(all, 0.1e9) << mode;
    EXPECT_GE(known / all, 0.9) << mode;
    stage_.stop(client);
    stage_.stop(server);
  }
}

TEST_F(ClientsLiveTest, WithoutTheOptionThereAreNone) {
  stage_.start(nullptr, {"pk_answer", "--mode", "turns", "--port", "9405"});
  stage_.start(nullptr, {"pk_ask", "--port", "9405", "--rate", "500"});
  const Finished done =
      run_pkprof({"record", "-a", "-q", "--budget", "100", "-d", "1", "-o", file()});
  EXPECT_EQ(done.status, 0) << done.err;
  EXPECT_TRUE(view({"--view", "clients"})["servers"].empty());
}

}  // namespace
}  // namespace pkprof::live
