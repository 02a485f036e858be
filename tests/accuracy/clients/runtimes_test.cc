// SPDX-License-Identifier: Apache-2.0
// Event loops and runtimes that schedule by themselves, a message bus, and a chain of servers.
#include <unistd.h>

#include <optional>
#include <thread>

#include "clients_scenario.h"

namespace pkprof::accuracy {
namespace {

using live::find_program;
using namespace std::chrono_literals;

class RuntimesTest : public ClientsTest {
 protected:
  int script(const Argv& argv, int cpu = server_cpu) { return stage_.start(nullptr, argv, cpu); }
};

TEST_F(RuntimesTest, Asyncio) {
  const int server = script({"/usr/bin/python3", testnet::sibling("pk_asyncio.py"), "9321"});
  expect_equal(text({"--port", "9321", "--text", "ask\\n", "--answer-bytes", "5"}), {server},
               runtimes, 300);
}

TEST_F(RuntimesTest, Node) {
  if (find_program("node").empty()) GTEST_SKIP() << "needs node";
  const int server = script({find_program("node"), testnet::sibling("pk_node.mjs"), "9322"});
  expect_equal(text(get("9322")), {server}, runtimes, 300);
}

// On all CPUs, as it comes.
TEST_F(RuntimesTest, Go) {
  if (access(testnet::sibling("pk_go").c_str(), X_OK)) GTEST_SKIP() << "needs go, when built";
  const int server = script({testnet::sibling("pk_go"), "9323"}, -1);
  expect_equal(text(get("9323")), {server}, go_runtime, 300);
}

TEST_F(RuntimesTest, IoUring) {
  const int server = answer({"--mode", "ring", "--port", "9324"});
  // At twice the rate it often takes both clients' messages before it works on either: what they
  // share is by what they take alone, and comes out at 0.20 instead of 0.12.
  expect_two({"--port", "9324"}, {server}, pools, "300");
}

TEST_F(RuntimesTest, MessageBus) {
  if (find_program("dbus-daemon").empty()) GTEST_SKIP() << "needs dbus-daemon";
  const std::string address = "unix:path=" + dir_.file("bus");
  const int server =
      serve("dbus-daemon", {"--session", "--nofork", "--nopidfile", "--address=" + address});
  while (access(dir_.file("bus").c_str(), F_OK)) std::this_thread::sleep_for(20ms);
  expect_equal(
      [&](const std::string& rate, const std::string& truth) {
        return stage_.start(nullptr,
                            {"/usr/bin/python3", testnet::sibling("pk_client.py"), "--rate", rate,
                             "--truth", truth, "--bus", address},
                            client_cpu);
      },
      {server}, {}, 300);
}

// nginx, an application, a database: all three are at work for the two browsers.
TEST_F(RuntimesTest, AChain) {
  if (find_program("nginx").empty() || !Postgres::is_here())
    GTEST_SKIP() << "needs nginx and postgresql";
  const Postgres postgres(stage_, dir_);
  const int app = script({"/usr/bin/python3", testnet::sibling("pk_app.py"), "9325",
                          "host=" + postgres.directory() + " user=postgres dbname=postgres"});
  live::write_file(dir_.file("nginx.conf"),
                   "daemon off; worker_processes 1; error_log stderr crit; pid " +
                       dir_.file("pid") +
                       "; events {} http { access_log off; keepalive_requests 100000000; "
                       "upstream app { server 127.0.0.1:9325; keepalive 8; } "
                       "server { listen 127.0.0.1:9326; location / { proxy_pass http://app; "
                       "proxy_http_version 1.1; proxy_set_header Connection \"\"; } } }\n");
  const int nginx =
      serve("nginx", {"-p", dir_.path(), "-c", dir_.file("nginx.conf"), "-e", "stderr"});
  const Argv page = get("9326");
  expect_equal(
      text(page),
      [&] {
        std::set<int> servers = live::with_children(postgres.pid(), 1);
        servers.merge(live::with_children(nginx, 1));
        servers.insert(app);
        return servers;
      },
      pools, 150);
}

}  // namespace
}  // namespace pkprof::accuracy
