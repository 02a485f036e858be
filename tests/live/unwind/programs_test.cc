// SPDX-License-Identifier: Apache-2.0
// Stacks of user code reach the thread's beginning in programs as distributions build them: servers
// under load, interpreters, JIT compilers, Go, Rust, a browser. Those of which the same is expected
// run side by side, in one recording.
#include <gtest/gtest.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "user_stacks.h"

namespace pkprof::live {
namespace {

using namespace std::chrono_literals;

class UnwindProgramsTest : public UserStacksTest {
 protected:
  // Ends the test where one is not there.
  void need(const std::vector<std::string>& programs) {
    for (const std::string& program : programs)
      if (find_program(program).empty()) missing_ += " " + program;
  }
  void start(const Argv& argv) { stage_.start(nullptr, argv, -1, false); }
  // Again and again.
  void repeat(const std::string& command) {
    start({"bash", "-c", "trap 'kill $!; exit' TERM; while :; do " + command + " & wait; done"});
  }
  static void wait_for_port(int port) {
    const std::string connects = "exec 3<>/dev/tcp/127.0.0.1/" + std::to_string(port);
    for (int i = 0; i < 200; ++i) {
      if (testnet::run_command({"bash", "-c", connects})) return;
      std::this_thread::sleep_for(50ms);
    }
    FAIL() << "nothing listens at port " << port;
  }
  void expect(const std::vector<std::string>& comms, double at_least) {
    expect(comms, at_least, at_least);
  }
  // `of_all`: of the walks of all programs.
  void expect(const std::vector<std::string>& comms, double at_least, double of_all) {
    const Profile profile = record({}, in_guest() ? "20" : "5");
    for (const std::string& comm : comms) expect_whole(profile, comm, at_least);
    // By how the walks themselves ended.
    uint64_t all = 0;
    for (const auto& [end, samples] : profile.meta.user_stacks) all += samples;
    const auto whole = profile.meta.user_stacks.find(whole_stack);
    ASSERT_NE(whole, profile.meta.user_stacks.end());
    EXPECT_GE(static_cast<double>(whole->second), of_all * static_cast<double>(all));
  }
  std::string missing_;

  void run_git() {
    // 900 commits, each of which changes a file.
    std::string stream;
    for (int i = 0; i < 900; ++i) {
      std::string text;
      for (int line = 0; line < 500; ++line)
        text += "line " + std::to_string(line * (line % 7 == i % 7 ? i : 1)) + "\n";
      stream += "commit refs/heads/main\ncommitter a <a@example.com> " + std::to_string(1000 + i) +
                " +0000\ndata 1\nx\nM 100644 inline file\ndata " + std::to_string(text.size()) +
                "\n" + text + "\n";
    }
    write_file(dir_.file("stream"), stream);
    const std::string repository = dir_.file("repository");
    must(testnet::run_command({"git", "init", "-q", repository}));
    must(testnet::run_command(
        {"bash", "-c", "git -C " + repository + " fast-import --quiet <" + dir_.file("stream")}));
    repeat("git -C " + repository + " log -p main >/dev/null");
  }
  void run_gofmt() {
    std::string source = "package p\n";
    for (int i = 0; i < 60000; ++i)
      source +=
          "func f" + std::to_string(i) + "(a int) int {\nif a > 1 { return a }\nreturn a+1}\n";
    write_file(dir_.file("p.go"), source);
    repeat("gofmt " + dir_.file("p.go") + " >/dev/null");
  }
  void run_ripgrep() {
    std::string text;
    for (int i = 0; i < 4'000'000; ++i)
      text += "a line of text, number " + std::to_string(i) + "\n";
    write_file(dir_.file("text"), text);
    repeat("rg -c '[a-f]+ [0-9]*7[0-9]*3$' " + dir_.file("text") + " >/dev/null");
  }
  void serve_redis() {
    start({"redis-server", "--port", "6392", "--save", "", "--loglevel", "warning"});
    wait_for_port(6392);
    start({"redis-benchmark", "-p", "6392", "-q", "-n", "100000000"});
  }
  void serve_nginx() {
    chmod(dir_.path().c_str(), 0755);
    write_file(dir_.file("index.html"), std::string(2000, 'x'));
    write_file(dir_.file("nginx.conf"),
               "daemon off; worker_processes 2; error_log stderr crit; pid " + dir_.file("pid") +
                   "; events { worker_connections 256; }\n"
                   "http { access_log off; server { listen 127.0.0.1:8091; root " +
                   dir_.path() + "; } }\n");
    start({"nginx", "-p", dir_.path(), "-c", dir_.file("nginx.conf"), "-e", "stderr"});
    wait_for_port(8091);
    start({"wrk", "-t", "1", "-c", "32", "-d", "60s", "http://127.0.0.1:8091/index.html"});
  }
  void serve_memcached() {
    start({"memcached", "-u", "root", "-l", "127.0.0.1", "-p", "11299", "-U", "0"});
    wait_for_port(11299);
    start({"/usr/bin/python3", "-c",
           "import socket\n"
           "s = socket.create_connection(('127.0.0.1', 11299))\n"
           "s.sendall(b'set k 0 0 100\\r\\n' + b'x' * 100 + b'\\r\\n')\n"
           "s.recv(100)\n"
           "ask = b'get k\\r\\n' * 100\n"
           "while True:\n"
           "  s.sendall(ask)\n"
           "  n = 0\n"
           "  while n < 100: n += s.recv(1 << 16).count(b'END')\n"});
  }
  // A daemon of long standing, with /run and /var/log of its own, and somebody who logs.
  void serve_journald() {
    const char* journald = "/lib/systemd/systemd-journald";
    start({"unshare", "-m", "bash", "-c",
           std::string("mount -t tmpfs tmpfs /run && mount -t tmpfs -o size=64m tmpfs /var/log && "
                       "mkdir -p /run/systemd/journal /run/log || exit 1\n"
                       "trap 'kill $(jobs -p)' TERM\n") +
               journald + " &\n" + R"(/usr/bin/python3 -c '
import socket, time
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
while True:
  try: s.connect("/run/systemd/journal/socket"); break
  except OSError: time.sleep(0.05)
n = 0
while True:
  s.send(b"MESSAGE=line %d\nPRIORITY=6\n" % n)
  n += 1
' &
wait)"});
  }
};

#define NEED(...)      \
  need({__VA_ARGS__}); \
  if (!missing_.empty()) GTEST_SKIP() << "needs" << missing_

TEST_F(UnwindProgramsTest, Interpreters) {
  NEED("perl", "sqlite3", "openssl");
  start({"perl", "-e", "my %h; while (1) { $h{$n++ % 1000} .= 'x'; %h = () if $n % 1e6 == 0 }"});
  start({"/usr/bin/python3", "-c",
         "import json\nwhile True: json.loads(json.dumps([{'a': i} for i in range(2000)]))"});
  start({"sqlite3", ":memory:",
         "with recursive c(x) as (select 1 union all select x+1 from c) select count(*) from c;"});
  start({"openssl", "speed", "-seconds", "60", "-evp", "aes-128-gcm"});
  start({"openssl", "speed", "-seconds", "60", "ecdsap256"});
  expect({"perl", "python3", "sqlite3", "openssl"}, 0.99);
}

TEST_F(UnwindProgramsTest, Servers) {
  NEED("redis-server", "redis-benchmark", "nginx", "wrk", "memcached",
       "/lib/systemd/systemd-journald");
  serve_redis();
  serve_nginx();
  serve_memcached();
  serve_journald();
  std::this_thread::sleep_for(2s);
  expect({"redis-server", "redis-benchmark", "nginx", "wrk", "memcached", "python3",
          "systemd-journal"},
         0.99);
}

TEST_F(UnwindProgramsTest, Postgres) {
  std::string bin;
  for (const auto& entry : std::filesystem::directory_iterator("/usr/lib/postgresql"))
    bin = entry.path().string() + "/bin/";
  const passwd* postgres = getpwnam("postgres");
  if (bin.empty() || !postgres) GTEST_SKIP() << "needs postgresql";
  chmod(dir_.path().c_str(), 0755);
  const std::string data = dir_.file("data");
  std::filesystem::create_directory(data);
  ASSERT_EQ(chown(data.c_str(), postgres->pw_uid, postgres->pw_gid), 0);
  const auto as_postgres = [](Argv argv) {
    const Argv as = {"setpriv", "--reuid", "postgres", "--regid", "postgres", "--clear-groups"};
    argv.insert(argv.begin(), as.begin(), as.end());
    return argv;
  };
  must(testnet::run_command(as_postgres({bin + "initdb", "-D", data, "-N"})));
  start(as_postgres({bin + "postgres", "-D", data, "-k", data, "-c", "listen_addresses="}));
  while (!testnet::run_command(as_postgres({bin + "pg_isready", "-q", "-h", data})))
    std::this_thread::sleep_for(50ms);
  must(testnet::run_command(
      as_postgres({bin + "pgbench", "-h", data, "-i", "-q", "-s", "2", "postgres"})));
  start(as_postgres({bin + "pgbench", "-h", data, "-S", "-c", "4", "-T", "600", "postgres"}));
  std::this_thread::sleep_for(500ms);
  // pgbench has 16 KB in one frame: its stacks are cut until its table is there.
  expect({"postgres"}, 0.99, 0.97);
}

// One process after the other, each over soon.
TEST_F(UnwindProgramsTest, AgainAndAgain) {
  NEED("git", "gofmt", "rg");
  run_git();
  run_gofmt();
  run_ripgrep();
  std::this_thread::sleep_for(500ms);
  expect({"git", "gofmt", "rg"}, 0.99);
}

TEST_F(UnwindProgramsTest, JitCompilers) {
  NEED("node", "keytool");
  start({"node", "-e",
         "function f(n) { return n < 2 ? n : f(n - 1) + f(n - 2); }\n"
         "for (;;) { f(22); JSON.parse(JSON.stringify(Array(1000).fill({a: [1, 'x']}))); }"});
  repeat(
      "keytool -J-XX:+PreserveFramePointer -genkeypair -keyalg RSA -keysize 8192 -storepass secret "
      "-dname CN=x -alias a "
      "-keystore " +
      dir_.file("keys") + "$RANDOM >/dev/null 2>&1");
  std::this_thread::sleep_for(1s);
  expect({"node", "keytool"}, 0.97);
}

TEST_F(UnwindProgramsTest, Chromium) {
  NEED("chromium");
  write_file(dir_.file("page.html"),
             "<canvas id=c width=800 height=600></canvas><script>\n"
             "const g = document.getElementById('c').getContext('2d');\n"
             "setInterval(() => { for (let i = 0; i < 500; i++) {\n"
             "  g.fillStyle = `rgb(${i % 255},0,0)`; g.fillRect(i % 800, i % 600, 50, 50);\n"
             "  document.body.title = JSON.stringify({i}); } }, 1);\n"
             "</script>");
  start({"chromium", "--headless", "--no-sandbox", "--disable-gpu",
         "--user-data-dir=" + dir_.file("browser"), "--remote-debugging-port=0",
         "file://" + dir_.file("page.html")});
  std::this_thread::sleep_for(4s);
  expect({"chromium"}, 0.97);
}

}  // namespace
}  // namespace pkprof::live
