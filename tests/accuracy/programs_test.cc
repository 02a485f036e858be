// SPDX-License-Identifier: Apache-2.0
// Someone else's programs: a web server and a database under their own load generators, in
// namespaces of their own, with the network's work steered to a bystander's CPU.
#include <sys/stat.h>

#include "table.h"

namespace pkprof::accuracy {
namespace {

using live::Argv;
using live::find_program;
using live::must;
using testnet::Pair;
using namespace std::chrono_literals;

class ProgramsTest : public live::PairTest {
 protected:
  // Tries until something accepts connections there.
  void wait_for_port(const std::string& port) {
    const std::string script = "exec 3<>/dev/tcp/" + std::string(Pair::kServer4) + "/" + port;
    for (int i = 0; i < 200; ++i) {
      if (pair_->client.exec({"bash", "-c", script})) return;
      poll_for(50ms);
    }
    throw std::runtime_error("nothing listens on port " + port);
  }

  static void poll_for(std::chrono::milliseconds time) {
    must(testnet::run_command({"sleep", std::to_string(static_cast<double>(time.count()) / 1e3)}));
  }

  // nginx on port 8080, with this many workers.
  int start_nginx(int workers, const std::string& settings) {
    chmod(dir_.path().c_str(), 0755);
    live::write_file(dir_.file("nginx.conf"),
                     "user root; daemon off; worker_processes " + std::to_string(workers) +
                         "; pid " + dir_.file("pid") +
                         "; error_log stderr crit; events { worker_connections 256; }\n"
                         "http { access_log off; client_body_temp_path " +
                         dir_.file("body") + "; proxy_temp_path " + dir_.file("proxy") +
                         "; fastcgi_temp_path " + dir_.file("fastcgi") + "; uwsgi_temp_path " +
                         dir_.file("uwsgi") + "; scgi_temp_path " + dir_.file("scgi") +
                         "; server { listen 8080; " + settings + " } }\n");
    const int server = stage_.start(
        &pair_->server,
        {find_program("nginx"), "-p", dir_.path(), "-c", dir_.file("nginx.conf"), "-e", "stderr"},
        0, false);
    wait_for_port("8080");
    return server;
  }

  // wrk, fetching this path.
  int start_wrk(int connections, const std::string& path) {
    const int client =
        stage_.start(&pair_->client,
                     {find_program("wrk"), "-t", "1", "-c", std::to_string(connections), "-d",
                      "60s", "http://" + std::string(Pair::kServer4) + ":8080/" + path},
                     0, false);
    poll_for(500ms);
    return client;
  }

  live::TempDir dir_;
};

TEST_F(ProgramsTest, NginxUnderWrk) {
  if (find_program("nginx").empty() || find_program("wrk").empty()) {
    GTEST_SKIP() << "needs nginx and wrk";
  }
  live::write_file(dir_.file("index.html"), std::string(2000, 'x'));
  const int server = start_nginx(2, "root " + dir_.path() + ";");
  const int client = start_wrk(32, "index.html");
  std::set<int> ends = live::with_children(server, 2);
  ends.insert(client);
  measure("nginx under wrk", {ends, hog_, {}}, {97, 3});
}

TEST_F(ProgramsTest, NginxWithAConnectionForEachRequest) {
  if (find_program("nginx").empty() || find_program("wrk").empty()) {
    GTEST_SKIP() << "needs nginx and wrk";
  }
  const int server = start_nginx(1, "keepalive_timeout 0; location / { return 200 \"hello\"; }");
  const int client = start_wrk(16, "");
  std::set<int> ends = live::with_children(server, 1);
  ends.insert(client);
  measure("nginx, short connections", {ends, hog_, {}}, {97, 3});
}

TEST_F(ProgramsTest, RedisUnderItsBenchmark) {
  if (find_program("redis-server").empty() || find_program("redis-benchmark").empty()) {
    GTEST_SKIP() << "needs redis-server and redis-benchmark";
  }
  const int server =
      stage_.start(&pair_->server,
                   {find_program("redis-server"), "--port", "6390", "--bind", "0.0.0.0",
                    "--protected-mode", "no", "--save", "", "--appendonly", "no", "--dir",
                    dir_.path(), "--daemonize", "no", "--logfile", dir_.file("log")},
                   0, false);
  wait_for_port("6390");
  const int client = stage_.start(&pair_->client,
                                  {find_program("redis-benchmark"), "-h", Pair::kServer4, "-p",
                                   "6390", "-q", "-n", "100000000", "-c", "20", "-t", "get"},
                                  0, false);
  poll_for(500ms);
  measure("redis under its benchmark", {{server, client}, hog_, {}}, {97, 3});
}

}  // namespace
}  // namespace pkprof::accuracy
