// SPDX-License-Identifier: Apache-2.0
// Servers as distributions build them. Clients count what they had answered.
#include <sys/stat.h>

#include <optional>
#include <thread>

#include "clients_scenario.h"

namespace pkprof::accuracy {
namespace {

using live::find_program;
using namespace std::chrono_literals;

#define NEED(program) \
  if (find_program(program).empty()) GTEST_SKIP() << "needs " << (program)

TEST_F(ClientsTest, Redis) {
  NEED("redis-server");
  const int server = serve("redis-server", {"--port", "9311", "--save", "", "--loglevel", "warning",
                                            "--dir", dir_.path()});
  talk("9311", "SET k abc\\r\\n");
  expect_equal(text({"--port", "9311", "--text", "GET k\\r\\n", "--answer-bytes", "9"}), {server});
}

TEST_F(ClientsTest, Memcached) {
  NEED("memcached");
  const int server = serve("memcached", {"-u", "root", "-l", "127.0.0.1", "-p", "9312", "-U", "0",
                                         "-t", "4", "-o", "no_lru_maintainer,no_lru_crawler"});
  talk("9312", "set k 0 0 3\\r\\nabc\\r\\n");
  expect_equal(text({"--port", "9312", "--text", "get k\\r\\n", "--answer-bytes", "23"}), {server},
               pools);
}

class NginxClientsTest : public ClientsTest {
 protected:
  int nginx(const std::string& server) {
    live::write_file(
        dir_.file("nginx.conf"),
        "daemon off; worker_processes 1; error_log stderr crit; pid " + dir_.file("pid") +
            "; events {} http { access_log off; keepalive_requests 100000000; " + server + " }\n");
    return serve("nginx", {"-p", dir_.path(), "-c", dir_.file("nginx.conf"), "-e", "stderr"});
  }
};

TEST_F(NginxClientsTest, AnswersByItself) {
  NEED("nginx");
  const int server = nginx("server { listen 127.0.0.1:9313; location / { return 200 hello; } }");
  expect_equal(text(get("9313")), live::with_children(server, 1));
}

// With a connection each, and pauses in between. Those of several would come together, and what
// nginx does once for all of them is most of what it does. It compresses what it answers: else
// there were too few samples.
TEST_F(NginxClientsTest, TwoOfWrk) {
  NEED("nginx");
  NEED("wrk");
  std::string page;
  for (int i = 0; i < 4000; ++i) page += std::to_string(i * i) + " ";
  live::write_file(dir_.file("page.html"), page);
  chmod(dir_.path().c_str(), 0755);  // nginx works as nobody
  const int server = nginx("gzip on; gzip_comp_level 9; server { listen 127.0.0.1:9314; root " +
                           dir_.path() + "; }");
  const auto wrk = [&](const std::string& pause) {
    const std::string script = dir_.file(pause + ".lua");
    live::write_file(script, "function delay() return math.random(0, " + pause + ") end\n");
    return stage_.start(nullptr,
                        {find_program("wrk"), "-t", "1", "-c", "1", "-d", "7", "-s", script, "-H",
                         "Accept-Encoding: gzip", "http://127.0.0.1:9314/page.html"},
                        client_cpu, false);
  };
  (void)get("9314");  // it is there
  const int one = wrk("4");
  const int other = wrk("20");
  std::this_thread::sleep_for(300ms);
  const Charged charged = record(live::with_children(server, 1));
  const auto requests = [&](int pid) {
    EXPECT_EQ(live::must(stage_.child(pid).wait(20s)), 0);
    const std::string& out = stage_.child(pid).output();
    const size_t at = out.find("requests in");
    EXPECT_NE(at, std::string::npos) << out;
    return at == std::string::npos ? 0 : std::stod(out.substr(out.rfind('\n', at) + 1));
  };
  const double truth = requests(one) / requests(other);
  expect({charged.clients, charged.clients, charged.itself, charged.itself_async}, one, other,
         truth, {});
}

class PostgresClientsTest : public ClientsTest {
 protected:
  void SetUp() override {
    if (!Postgres::is_here()) GTEST_SKIP() << "needs postgresql";
    ClientsTest::SetUp();
    if (!IsSkipped()) postgres_.emplace(stage_, dir_);
  }
  // A client that has so many rows summed up, through this port.
  Ask query(const std::string& port) {
    return [this, port](const std::string& rate, const std::string& truth) {
      return stage_.start(
          nullptr,
          {"/usr/bin/python3", testnet::sibling("pk_client.py"), "--rate", rate, "--truth", truth,
           "--postgres",
           "host=" + postgres_->directory() + " port=" + port + " user=postgres dbname=postgres"},
          client_cpu);
    };
  }
  [[nodiscard]] std::set<int> processes() const { return live::with_children(postgres_->pid(), 1); }

  std::optional<Postgres> postgres_;
};

TEST_F(PostgresClientsTest, AProcessForEach) {
  expect_equal(query("5432"), [this] { return processes(); });
}

TEST_F(PostgresClientsTest, ThroughAPooler) {
  NEED("pgbouncer");
  live::write_file(
      dir_.file("pgbouncer.ini"),
      "[databases]\n* = host=" + postgres_->directory() +
          " user=postgres\n[pgbouncer]\nlisten_addr=\nunix_socket_dir=" + postgres_->directory() +
          "\nlisten_port=6432\nauth_type=any\npool_mode=transaction\n"
          "default_pool_size=1\nadmin_users=postgres\n");
  chmod(dir_.file("pgbouncer.ini").c_str(), 0644);
  const int pooler = stage_.start(
      nullptr, Postgres::as_postgres({find_program("pgbouncer"), "-q", dir_.file("pgbouncer.ini")}),
      server_cpu, false);
  while (access((postgres_->directory() + "/.s.PGSQL.6432").c_str(), F_OK))
    std::this_thread::sleep_for(20ms);
  expect_equal(
      query("6432"),
      [this, pooler] {
        std::set<int> servers = processes();
        servers.insert(pooler);
        return servers;
      },
      pools);
}

}  // namespace
}  // namespace pkprof::accuracy
