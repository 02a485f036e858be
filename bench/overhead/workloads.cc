// SPDX-License-Identifier: Apache-2.0
#include "workloads.h"

#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

namespace pkprof::overhead {
namespace {

using namespace std::chrono_literals;
using testnet::Argv;
using testnet::Child;
using testnet::Pair;
using testnet::SpawnOptions;

constexpr int kCpu = 1;       // of what runs alone, and of servers
constexpr int kOtherCpu = 0;  // of clients
constexpr int kParts = 5;     // of a slice with two ends

Result<> nothing(Stage&) {
  return {};
}

// A number in the result that a workload program printed.
Result<double> number_in(const Child& child, const char* key) {
  const auto json = nlohmann::json::parse(child.last_line(), nullptr, false);
  if (!json.is_object() || !json.contains(key) || !json.at(key).is_number()) {
    return fail("no \"" + std::string(key) + "\" in: " + child.last_line());
  }
  return json.at(key).get<double>();
}

// `count` of one program over the time that another one took.
Result<double> per_second(Result<double> count, Result<double> wall_ns) {
  if (!count) return count;
  if (!wall_ns) return wall_ns;
  if (*wall_ns <= 0) return fail("the slice took no time");
  return *count * 1e9 / *wall_ns;
}

Result<Child> run_to_end(const Argv& argv, double seconds, const SpawnOptions& where) {
  auto child = Child::spawn(argv, where);
  if (!child) return child;
  const auto limit = std::chrono::milliseconds(static_cast<long>((seconds + 10) * 1000));
  const auto status = child->wait(limit);
  if (!status) return std::unexpected(status.error().in(argv.front()));
  if (*status != 0) return fail(argv.front() + " ended with status " + std::to_string(*status));
  return child;
}

// bench_load, alone on a CPU unless that is -1.
Result<double> load(Stage& stage, double seconds, Argv arguments, int cpu = kCpu) {
  arguments.insert(arguments.begin(), stage.bin("bench_load"));
  arguments.insert(arguments.end(), {"--seconds", std::to_string(seconds)});
  const auto child = run_to_end(arguments, seconds, {.cpu = cpu});
  if (!child) return std::unexpected(child.error());
  return per_second(number_in(*child, "operations"), number_in(*child, "wall_ns"));
}

Workload simple(WorkloadInfo info, const char* subcommand) {
  return {std::move(info), nothing, [subcommand](Stage& stage, double seconds) {
            return load(stage, seconds, {subcommand});
          }};
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

// A server and its client at the two ends of the pair; both results.
struct Ends {
  Child server;
  Child client;
};
Result<Ends> talk(Stage& stage, double seconds, const Argv& server, Argv client) {
  const auto pair = stage.pair();
  if (!pair) return std::unexpected(pair.error());
  auto served = Child::spawn(server, {.ns = &(*pair)->server, .cpu = kCpu});
  if (!served) return std::unexpected(served.error());
  if (auto ready = served->wait_for_line("ready"); !ready) return std::unexpected(ready.error());
  client.insert(client.end(), {"--to", Pair::kServer4, "--seconds", std::to_string(seconds)});
  auto asked = run_to_end(client, seconds, {.ns = &(*pair)->client, .cpu = kOtherCpu});
  if (!asked) return std::unexpected(asked.error());
  if (auto ended = served->stop(); !ended) return std::unexpected(ended.error());
  return Ends{std::move(*served), std::move(*asked)};
}

// Packets that arrive while the sender sends.
Result<double> udp(Stage& stage, double seconds) {
  const auto ends =
      talk(stage, seconds, {stage.bin("pk_udp"), "recv", "--port", "9000", "--mode", "busy"},
           {stage.bin("pk_udp"), "send", "--port", "9000", "--size", "64"});
  if (!ends) return std::unexpected(ends.error());
  return per_second(number_in(ends->server, "packets"), number_in(ends->client, "wall_ns"));
}

Result<double> tcp(Stage& stage, double seconds, const char* mode, const char* client,
                   const char* count, const char* congestion = "cubic") {
  const auto ends =
      talk(stage, seconds, {stage.bin("pk_tcp"), "serve", "--port", "9001", "--mode", mode},
           {stage.bin("pk_tcp"), client, "--port", "9001", "--congestion", congestion});
  if (!ends) return std::unexpected(ends.error());
  return per_second(number_in(ends->client, count), number_in(ends->client, "wall_ns"));
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
  const std::string knock = "exec 3<>/dev/tcp/" + std::string(Pair::kServer4) + "/8080";
  for (int i = 0; i < 100; ++i) {
    if ((*pair)->client.exec({"bash", "-c", "{ " + knock + "; } 2>/dev/null"})) return {};
    usleep(50'000);
  }
  return fail("nginx does not answer");
}

Result<double> web(Stage& stage, double seconds) {
  const auto pair = stage.pair();
  if (!pair) return std::unexpected(pair.error());
  const std::string whole = std::to_string(static_cast<int>(std::ceil(seconds))) + "s";
  const auto wrk = run_to_end({find_program("wrk"), "-t", "1", "-c", "16", "-d", whole,
                               "http://" + std::string(Pair::kServer4) + ":8080/index.html"},
                              seconds, {.ns = &(*pair)->client, .cpu = kOtherCpu});
  if (!wrk) return std::unexpected(wrk.error());
  const std::string& said = wrk->output();
  for (const char* trouble : {"Socket errors", "Non-2xx"}) {
    if (said.find(trouble) != std::string::npos) return fail("wrk: " + said);
  }
  const size_t at = said.find("Requests/sec:");
  if (at == std::string::npos) return fail("wrk said nothing of requests: " + said);
  return std::strtod(said.c_str() + at + 13, nullptr);
}

Result<double> read(Stage& stage, double seconds, const char* chunk, bool direct) {
  const auto file = stage.disk_file();
  if (!file) return std::unexpected(file.error());
  Argv arguments = {"read", "--file", *file, "--chunk", chunk};
  // One reader would sleep at each read, and so would the disk: what is measured then is how fast
  // this machine wakes up.
  if (direct) arguments.insert(arguments.end(), {"--direct", "--processes", "4"});
  return load(stage, seconds, arguments);
}

Result<double> write(Stage& stage, double seconds) {
  const auto file = stage.disk_path("written");
  if (!file) return std::unexpected(file.error());
  const auto chunks = load(stage, seconds, {"write", "--file", *file, "--chunk", "65536"});
  if (!chunks) return chunks;
  return *chunks * 65536 / (1 << 20);
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

Result<double> build(Stage& stage, double seconds) {
  std::string script = "/bin/true; x=$(/bin/echo $0); /usr/bin/test -n \"$x\"; ";
  if (const std::string cc = compiler(); !cc.empty()) {
    script += cc + " -c -o " + stage.dir().file("$x.o") + " " + stage.dir().file("unit.c") + "; ";
  }
  return load(stage, seconds, {"build", "--script", script + "/bin/true"}, -1);
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
       udp,
       kParts},
      {{"tcp-stream", "TCP stream", "bytes/s",
        "one connection through a veth pair, CPU 0 to CPU 1, with CUBIC"},
       need_pair,
       [](Stage& s, double t) { return tcp(s, t, "sink", "stream", "bytes"); },
       kParts},
      {{"tcp-bbr", "TCP stream, BBR", "bytes/s",
        "the same, but the sender goes by the delays that it measures, not by what is lost"},
       need_bbr,
       [](Stage& s, double t) { return tcp(s, t, "sink", "stream", "bytes", "bbr"); },
       kParts},
      {{"tcp-rr", "TCP request/response", "requests/s",
        "one request of 64 bytes at a time, answered with as many, CPU 0 and CPU 1"},
       need_pair,
       [](Stage& s, double t) { return tcp(s, t, "echo", "rr", "transactions"); },
       kParts},
      {{"nginx", "nginx", "requests/s",
        "a file of 2000 bytes on 16 connections that stay; nginx on CPU 1, wrk on CPU 0"},
       start_nginx,
       web},
      {{"read-1m", "page-cache read, 1 MiB", "reads/s",
        "of a cached file, over and over, on CPU 1"},
       need_file,
       [](Stage& s, double t) { return read(s, t, "1048576", false); }},
      {{"read-4k", "page-cache read, 4 KiB", "reads/s",
        "of a cached file, over and over, on CPU 1"},
       need_file,
       [](Stage& s, double t) { return read(s, t, "4096", false); }},
      {{"direct-read", "O_DIRECT read, 4 KiB", "reads/s",
        "four processes on CPU 1, each one at a time, from ext4 on a loop device whose file is in "
        "memory"},
       need_file,
       [](Stage& s, double t) { return read(s, t, "4096", true); }},
      {{"write", "buffered write with write-back", "MiB/s",
        "64 KiB at a time on CPU 1, written back by the flusher every 16 MiB, to ext4 on a loop "
        "device whose file is in memory"},
       need_file,
       write},
      simple({"getppid", "getppid", "calls/s", "the cheapest system call, on CPU 1"}, "getppid"),
      simple({"spawn", "fork + exec", "processes/s", "/bin/true, one after the other, on CPU 1"},
             "spawn"),
      simple({"switch", "context-switch ping-pong", "round trips/s",
              "a byte to and fro between two processes on CPU 1"},
             "switch"),
      {{"build", "compile-like: many short processes", "jobs/s", build_what()}, need_unit, build},
  };
}

}  // namespace pkprof::overhead
