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

  live::TempDir dir_;
};

TEST_F(ProgramsTest, NginxUnderWrk) {
  if (find_program("nginx").empty() || find_program("wrk").empty()) {
    GTEST_SKIP() << "needs nginx and wrk";
  }
  chmod(dir_.path().c_str(), 0755);
  live::write_file(dir_.file("index.html"), std::string(2000, 'x'));
  live::write_file(dir_.file("nginx.conf"),
                   "daemon off; worker_processes 2; pid " + dir_.file("pid") +
                       "; error_log stderr crit; events { worker_connections 256; }\n"
                       "http { access_log off; client_body_temp_path " +
                       dir_.file("body") + "; proxy_temp_path " + dir_.file("proxy") +
                       "; fastcgi_temp_path " + dir_.file("fastcgi") + "; uwsgi_temp_path " +
                       dir_.file("uwsgi") + "; scgi_temp_path " + dir_.file("scgi") +
                       "; server { listen 8080; root " + dir_.path() + "; } }\n");
  const int server = stage_.start(
      &pair_->server,
      {find_program("nginx"), "-p", dir_.path(), "-c", dir_.file("nginx.conf"), "-e", "stderr"}, 0,
      false);
  wait_for_port("8080");
  const int client = stage_.start(&pair_->client,
                                  {find_program("wrk"), "-t", "1", "-c", "32", "-d", "60s",
                                   "http://" + std::string(Pair::kServer4) + ":8080/index.html"},
                                  0, false);
  poll_for(500ms);
  std::set<int> ends = live::with_children(server, 2);
  ends.insert(client);
  measure("nginx under wrk", {ends, hog_, {}}, {97, 3});
}

TEST_F(ProgramsTest, NginxWithAConnectionForEachRequest) {
  if (find_program("nginx").empty() || find_program("wrk").empty()) {
    GTEST_SKIP() << "needs nginx and wrk";
  }
  chmod(dir_.path().c_str(), 0755);
  live::write_file(dir_.file("nginx.conf"),
                   "daemon off; worker_processes 1; pid " + dir_.file("pid") +
                       "; error_log stderr crit; events { worker_connections 256; }\n"
                       "http { access_log off; keepalive_timeout 0; client_body_temp_path " +
                       dir_.file("body") + "; proxy_temp_path " + dir_.file("proxy") +
                       "; fastcgi_temp_path " + dir_.file("fastcgi") + "; uwsgi_temp_path " +
                       dir_.file("uwsgi") + "; scgi_temp_path " + dir_.file("scgi") +
                       "; server { listen 8080; location / { return 200 \"hello\"; } } }\n");
  const int server = stage_.start(
      &pair_->server,
      {find_program("nginx"), "-p", dir_.path(), "-c", dir_.file("nginx.conf"), "-e", "stderr"}, 0,
      false);
  wait_for_port("8080");
  const int client = stage_.start(&pair_->client,
                                  {find_program("wrk"), "-t", "1", "-c", "16", "-d", "60s",
                                   "http://" + std::string(Pair::kServer4) + ":8080/"},
                                  0, false);
  poll_for(500ms);
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
