// SPDX-License-Identifier: Apache-2.0
#include "workloads.h"

#include <unistd.h>

#include <chrono>
#include <fstream>
#include <memory>

namespace pkprof::overhead {
namespace {

using testnet::Argv;
using testnet::Child;
using testnet::Pair;

constexpr int kCpu = 1;       // of what runs alone, and of servers
constexpr int kOtherCpu = 0;  // of clients
constexpr int kRequestBytes = 64;

Result<> nothing(Stage&) {
  return {};
}

// One of the counts of a program of ours, in units of so many.
using Count = Result<double> (Progress::*)() const;
Load::Meter meter_of(std::shared_ptr<Progress> progress, Count count, double unit) {
  return [progress = std::move(progress), count, unit]() -> Result<double> {
    const auto sum = ((*progress).*count)();
    if (!sum) return sum;
    return *sum / unit;
  };
}

Result<std::shared_ptr<Progress>> new_progress() {
  auto progress = Progress::create();
  if (!progress) return std::unexpected(progress.error());
  return std::make_shared<Progress>(std::move(*progress));
}

// bench_load, alone on a CPU unless that is -1. An operation of it is that much of our unit.
Result<Load> load(Stage& stage, Argv arguments, int cpu = kCpu, double unit = 1) {
  arguments.insert(arguments.begin(), stage.bin("bench_load"));
  auto progress = new_progress();
  if (!progress) return std::unexpected(progress.error());
  auto child = Child::spawn(arguments, {.cpu = cpu, .env = {(*progress)->setting()}});
  if (!child) return std::unexpected(child.error());
  std::vector<Child> processes;
  processes.push_back(std::move(*child));
  return Load(std::move(processes), meter_of(std::move(*progress), &Progress::operations, unit));
}

Workload simple(WorkloadInfo info, const char* subcommand, bool maps = false) {
  return {std::move(info), nothing,
          [subcommand](Stage& stage) { return load(stage, {subcommand}); }, false, maps};
}

Result<> need_pair(Stage& stage) {
  const auto pair = stage.pair();
  if (!pair) return std::unexpected(pair.error());
  return {};
}

Result<> need_bbr(Stage& stage) {
  std::ifstream in("/proc/sys/net/ipv4/tcp_available_congestion_control");
  for (std::string name; in >> name;)
    if (name == "bbr") return need_pair(stage);
  return fail("the kernel has no BBR (modprobe tcp_bbr)");
}

Result<> need_file(Stage& stage) {
  const auto file = stage.disk_file();
  if (!file) return std::unexpected(file.error());
  return {};
}

// A server and its client at the two ends of the pair. The server counts: what has arrived.
struct Talk {
  Argv server;
  Argv client;
  Count count;
  double unit = 1;
};
Result<Load> talk(Stage& stage, Talk talk) {
  const auto pair = stage.pair();
  if (!pair) return std::unexpected(pair.error());
  auto progress = new_progress();
  if (!progress) return std::unexpected(progress.error());
  auto server = Child::spawn(
      talk.server, {.ns = &(*pair)->server, .cpu = kCpu, .env = {(*progress)->setting()}});
  if (!server) return std::unexpected(server.error());
  if (auto ready = server->wait_for_line("ready"); !ready) return std::unexpected(ready.error());
  talk.client.insert(talk.client.end(), {"--to", Pair::kServer4});
  auto client = Child::spawn(talk.client, {.ns = &(*pair)->client, .cpu = kOtherCpu});
  if (!client) return std::unexpected(client.error());
  std::vector<Child> processes;
  processes.push_back(std::move(*client));
  processes.push_back(std::move(*server));
  return Load(std::move(processes), meter_of(std::move(*progress), talk.count, talk.unit));
}

Result<Load> udp(Stage& stage) {
  return talk(stage, {.server = {stage.bin("pk_udp"), "recv", "--port", "9000", "--mode", "busy"},
                      .client = {stage.bin("pk_udp"), "send", "--port", "9000", "--size", "64"},
                      .count = &Progress::operations});
}

Result<Load> stream(Stage& stage, const char* congestion) {
  return talk(stage, {.server = {stage.bin("pk_tcp"), "serve", "--port", "9001", "--mode", "sink"},
                      .client = {stage.bin("pk_tcp"), "stream", "--port", "9001", "--congestion",
                                 congestion},
                      .count = &Progress::bytes});
}

Result<Load> requests(Stage& stage) {
  return talk(stage, {.server = {stage.bin("pk_tcp"), "serve", "--port", "9001", "--mode", "echo"},
                      .client = {stage.bin("pk_tcp"), "rr", "--port", "9001", "--congestion",
                                 "cubic", "--size", std::to_string(kRequestBytes)},
                      .count = &Progress::bytes,
                      .unit = kRequestBytes});
}

// One process: nothing is left of it however it ends.
std::string nginx_settings(const Stage& stage) {
  const std::string& dir = stage.dir().path();
  return "daemon off; master_process off; pid " + dir +
         "/nginx.pid; error_log stderr crit; events { worker_connections 256; }\n"
         "http { access_log off; client_body_temp_path " +
         dir + "/body; proxy_temp_path " + dir + "/proxy; fastcgi_temp_path " + dir +
         "/fastcgi; uwsgi_temp_path " + dir + "/uwsgi; scgi_temp_path " + dir +
         "/scgi; server { listen 8080; root " + dir + "; } }\n";
}

Result<> start_nginx(Stage& stage) {
  const std::string nginx = find_program("nginx");
  if (nginx.empty()) return fail("nginx is not installed");
  if (find_program("wrk").empty()) return fail("wrk is not installed");
  const auto pair = stage.pair();
  if (!pair) return std::unexpected(pair.error());
  const std::string settings = stage.dir().file("nginx.conf");
  if (auto r = write_file(settings, nginx_settings(stage)); !r) return r;
  if (auto r = write_file(stage.dir().file("index.html"), std::string(2000, 'x')); !r) return r;
  auto server = Child::spawn({nginx, "-p", stage.dir().path(), "-c", settings, "-e", "stderr"},
                             {.ns = &(*pair)->server, .cpu = kCpu});
  if (!server) return std::unexpected(server.error());
  stage.keep(std::move(*server));
  const std::string knock =
      "exec 3<>/dev/tcp/" + std::string(Pair::kServer4) +
      R"(/8080 && printf 'GET /index.html HTTP/1.0\r\n\r\n' >&3 && read -r line <&3 && [[ $line = *' 200 '* ]])";
  for (int i = 0; i < 100; ++i) {
    if ((*pair)->client.exec({"bash", "-c", "{ " + knock + "; } 2>/dev/null"})) return {};
    usleep(50'000);
  }
  return fail("nginx does not answer as it should");
}

// What the client's network device receives counts: nothing but answers.
Result<Load> answers(Stage& stage, const Argv& client, int cpu) {
  const auto pair = stage.pair();
  if (!pair) return std::unexpected(pair.error());
  auto child = Child::spawn(client, {.ns = &(*pair)->client, .cpu = cpu});
  if (!child) return std::unexpected(child.error());
  const pid_t pid = child->pid();
  std::vector<Child> processes;
  processes.push_back(std::move(*child));
  return Load(std::move(processes), [pid] { return received_bytes(pid, Pair::kDevice); });
}

// wrk says nothing until its end.
Result<Load> web(Stage& stage) {
  const std::string url = "http://" + std::string(Pair::kServer4) + ":8080/index.html";
  return answers(stage, {find_program("wrk"), "-t", "1", "-c", "16", "-d", "1h", url}, kOtherCpu);
}

Result<> start_redis(Stage& stage) {
  const std::string redis = find_program("redis-server");
  if (redis.empty()) return fail("redis-server is not installed");
  if (find_program("redis-benchmark").empty()) return fail("redis-benchmark is not installed");
  const auto pair = stage.pair();
  if (!pair) return std::unexpected(pair.error());
  auto server = Child::spawn({redis, "--port", "6379", "--bind", Pair::kServer4, "--save", "",
                              "--dir", stage.dir().path(), "--protected-mode", "no"},
                             {.ns = &(*pair)->server, .cpu = kCpu});
  if (!server) return std::unexpected(server.error());
  stage.keep(std::move(*server));
  return {};
}

Result<Load> redis(Stage& stage) {
  return answers(stage,
                 {find_program("redis-benchmark"), "-h", Pair::kServer4, "-t", "get,set", "-n",
                  "1000000000", "-c", "50", "-q"},
                 kOtherCpu);
}

// A server of its own, which root may not run: as the user that Debian's package made for it.
constexpr const char* start_postgres_script = R"script(set -e
dir=$1 address=$2 bin=$(dirname "$(find /usr/lib/postgresql -name initdb | sort -V | tail -n 1)")
mkdir "$dir/postgres"
chmod 711 "$dir"
chown postgres "$dir/postgres"
as() { setpriv --reuid postgres --regid postgres --clear-groups "$@" >/dev/null 2>&1; }
as "$bin/initdb" -D "$dir/postgres/data" -A trust
echo "host all all all trust" >>"$dir/postgres/data/pg_hba.conf"
as "$bin/pg_ctl" -D "$dir/postgres/data" -w start -o "-k $dir/postgres -c listen_addresses=$address"
as "$bin/createdb" -h "$dir/postgres" bench
as pgbench -h "$dir/postgres" -i -s 10 -q bench
as "$bin/pg_ctl" -D "$dir/postgres/data" -m fast -w stop
echo ready
exec setpriv --reuid postgres --regid postgres --clear-groups "$bin/postgres" \
  -D "$dir/postgres/data" -k "$dir/postgres" -c listen_addresses="$address")script";

Result<> start_postgres(Stage& stage) {
  if (find_program("pgbench").empty()) return fail("pgbench is not installed");
  const auto pair = stage.pair();
  if (!pair) return std::unexpected(pair.error());
  auto server = Child::spawn(
      {"/bin/bash", "-c", start_postgres_script, "bash", stage.dir().path(), Pair::kServer4},
      {.ns = &(*pair)->server});
  if (!server) return std::unexpected(server.error());
  if (auto ready = server->wait_for_line("ready", std::chrono::seconds(60)); !ready)
    return std::unexpected(ready.error());
  stage.keep(std::move(*server));
  sleep(2);  // until it answers
  return {};
}

Result<Load> pgbench(Stage& stage) {
  return answers(stage,
                 {find_program("pgbench"), "-h", Pair::kServer4, "-U", "postgres", "-c", "4", "-j",
                  "2", "-T", "100000", "bench"},
                 -1);
}

Result<Load> read(Stage& stage, const char* chunk, bool direct) {
  const auto file = stage.disk_file();
  if (!file) return std::unexpected(file.error());
  Argv arguments = {"read", "--file", *file, "--chunk", chunk};
  // One reader would sleep at each read, and so would the disk: what is measured then is how fast
  // this machine wakes up.
  if (direct) arguments.insert(arguments.end(), {"--direct", "--processes", "4"});
  return load(stage, arguments);
}

Result<Load> write(Stage& stage) {
  const auto file = stage.disk_path("written");
  if (!file) return std::unexpected(file.error());
  constexpr double kChunksOfMiB = 16;
  return load(stage, {"write", "--file", *file, "--chunk", "65536"}, kCpu, kChunksOfMiB);
}

// A few functions for the compiler: it is gone as soon as it has come.
constexpr int kFunctions = 4;

std::string unit_text() {
  std::string text = "#include <stddef.h>\n";
  for (int i = 0; i < kFunctions; ++i) {
    const std::string n = std::to_string(i);
    text.append("size_t f").append(n).append("(const int *a, size_t n) { size_t s = ").append(n);
    text.append("; for (size_t i = 0; i < n; ++i) s += a[i] > ").append(n);
    text.append(" ? a[i] : i; return s; }\n");
  }
  return text;
}

std::string compiler() {
  for (const char* name : {"gcc-12", "gcc", "cc"}) {
    if (const std::string path = find_program(name); !path.empty()) return path;
  }
  return {};
}

Result<> need_unit(Stage& stage) {
  return write_file(stage.dir().file("unit.c"), unit_text());
}

Result<Load> build(Stage& stage) {
  std::string script = "/bin/true; x=$(/bin/echo $0); /usr/bin/test -n \"$x\"; ";
  if (const std::string cc = compiler(); !cc.empty()) {
    script += cc + " -c -o " + stage.dir().file("$x.o") + " " + stage.dir().file("unit.c") + "; ";
  }
  return load(stage, {"build", "--script", script + "/bin/true"}, -1);
}

std::string build_what() {
  const std::string cc = compiler();
  return "two at a time, as make -j2: a shell that starts four small programs" +
         (cc.empty() ? std::string("; no compiler was there")
                     : " and the compiler for a unit of four functions");
}

}  // namespace

std::vector<Workload> all_workloads() {
  return {
      {{"udp", "UDP flood, 64 B", "packets/s",
        "a sender on CPU 0 floods a receiver on CPU 1 that polls, through a veth pair; packets "
        "received"},
       need_pair,
       udp},
      {{"tcp-stream", "TCP stream", "bytes/s",
        "one connection through a veth pair, CPU 0 to CPU 1, with CUBIC"},
       need_pair,
       [](Stage& s) { return stream(s, "cubic"); }},
      {{"tcp-bbr", "TCP stream, BBR", "bytes/s",
        "the same, but the sender goes by the delays that it measures, not by what is lost"},
       need_bbr,
       [](Stage& s) { return stream(s, "bbr"); }},
      {{"tcp-rr", "TCP request/response", "requests/s",
        "one request of 64 bytes at a time, answered with as many, CPU 0 and CPU 1"},
       need_pair,
       requests},
      {{"tcp-rr-halt", "TCP request/response, CPUs that halt", "requests/s",
        "the same, on CPUs that halt when they are idle, as others of a machine that is not tuned "
        "do: waking them is most of it"},
       need_pair,
       requests,
       true},
      {{"nginx", "nginx", "bytes/s",
        "a file of 2000 bytes on 16 connections that stay; nginx on CPU 1, wrk on CPU 0; what the "
        "client's network device receives"},
       start_nginx,
       web},
      {{"redis", "redis under its benchmark", "bytes/s",
        "GET and SET of 50 clients; the server on CPU 1, redis-benchmark on CPU 0; what the "
        "client's "
        "network device receives"},
       start_redis,
       redis},
      {{"pgbench", "PostgreSQL under pgbench", "bytes/s",
        "its standard transactions, 4 clients over TCP, on both CPUs; what the client's network "
        "device "
        "receives"},
       start_postgres,
       pgbench},
      {{"read-1m", "page-cache read, 1 MiB", "reads/s",
        "of a cached file, over and over, on CPU 1"},
       need_file,
       [](Stage& s) { return read(s, "1048576", false); }},
      {{"read-4k", "page-cache read, 4 KiB", "reads/s",
        "of a cached file, over and over, on CPU 1"},
       need_file,
       [](Stage& s) { return read(s, "4096", false); }},
      {{"direct-read", "O_DIRECT read, 4 KiB", "reads/s",
        "four processes on CPU 1, each one at a time, from ext4 on a loop device whose file is in "
        "memory"},
       need_file,
       [](Stage& s) { return read(s, "4096", true); }},
      {{"write", "buffered write with write-back", "MiB/s",
        "64 KiB at a time on CPU 1, written back by the flusher every 16 MiB, to ext4 on a loop "
        "device whose file is in memory"},
       need_file,
       write},
      simple({"getppid", "getppid", "calls/s", "the cheapest system call, on CPU 1"}, "getppid"),
      simple({"spawn", "fork + exec", "processes/s", "/bin/true, one after the other, on CPU 1"},
             "spawn", true),
      simple({"switch", "context-switch ping-pong", "round trips/s",
              "a byte to and fro between two processes on CPU 1"},
             "switch"),
      {{"build", "compile-like: many short processes", "jobs/s", build_what()},
       need_unit,
       build,
       false,
       true},
  };
}

}  // namespace pkprof::overhead
