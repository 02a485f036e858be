// SPDX-License-Identifier: Apache-2.0
// pkprof serve, and what others on the machine can do to it.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <fstream>
#include <thread>

#include "scenario.h"

namespace pkprof::live {
namespace {

constexpr rlim_t few_files = 64;
constexpr const char* in_page = "pkprof.page/1";  // as its data begin

class Client {
 public:
  explicit Client(uint16_t port) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    if (!fd_.valid()) throw std::runtime_error("socket");
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = connect(fd_.get(), reinterpret_cast<sockaddr*>(&to), sizeof(to)) == 0;
    const timeval patience{.tv_sec = 20, .tv_usec = 0};
    setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  }
  [[nodiscard]] bool connected() const { return connected_; }
  // False when the other end has gone.
  bool say(std::string_view text) {
    return send(fd_.get(), text.data(), text.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(text.size());
  }
  // Up to the end.
  std::string hear() {
    std::string all;
    char part[65536];
    for (ssize_t n; (n = recv(fd_.get(), part, sizeof(part), 0)) > 0;)
      all.append(part, static_cast<size_t>(n));
    return all;
  }

 private:
  Fd fd_;
  bool connected_ = false;
};

// User and system, in ticks.
uint64_t cpu_ticks_of(int pid) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/stat");
  std::string field;
  uint64_t sum = 0;
  for (int i = 1; i <= 15 && in >> field; ++i)
    if (i >= 14) sum += std::stoull(field);
  return sum;
}

class ServeTest : public testing::Test {
 protected:
  void SetUp() override {
    skip_unless_able();
    if (IsSkipped()) return;
    run_pkprof({"record", "-d", "0.2", "-o", file_});
    server_.emplace(pkprof_argv({"serve", file_}), Running::Options{.before_exec = [] {
                      const rlimit files{few_files, few_files};
                      setrlimit(RLIMIT_NOFILE, &files);
                    }});
    const std::string begin = "http://127.0.0.1:";
    while (server_->out().find("Ctrl-C") == std::string::npos) std::this_thread::sleep_for(5ms);
    const std::string said = server_->out();
    ASSERT_TRUE(said.starts_with(begin)) << said;
    port_ = static_cast<uint16_t>(std::stoul(said.substr(begin.size())));
    target_ = said.substr(said.find("/?"), said.find('\n') - said.find("/?"));
  }

  std::string ask(const std::string& method, const std::string& target,
                  const std::string& headers = "Host: localhost\r\n") {
    Client client(port_);
    EXPECT_TRUE(client.say(method + " " + target + " HTTP/1.1\r\n" + headers + "\r\n"));
    return client.hear();
  }
  void expect_page() {
    const std::string page = ask("GET", target_);
    EXPECT_TRUE(page.starts_with("HTTP/1.1 200 ")) << page.substr(0, 200);
    EXPECT_NE(page.find("</html>"), std::string::npos);
  }

  TempDir dir_;
  std::string file_ = dir_.file("profile.pb.gz");
  std::optional<Running> server_;
  uint16_t port_ = 0;
  std::string target_;
};

TEST_F(ServeTest, ThePageIsForTheTokenAlone) {
  expect_page();
  for (const char* method : {"GET", "HEAD", "POST", "PUT", "OPTIONS", "TRACE"})
    for (const std::string& target : {std::string("/"), target_ + "0", target_.substr(0, 30)}) {
      const std::string answer = ask(method, target);
      EXPECT_TRUE(answer.starts_with("HTTP/1.1 4") || answer.starts_with("HTTP/1.1 501 "))
          << answer;
      EXPECT_EQ(answer.find(in_page), std::string::npos);
    }
  EXPECT_TRUE(ask("POST", target_).starts_with("HTTP/1.1 501 "));
  EXPECT_TRUE(ask("GET", "/etc/passwd" + target_.substr(1)).starts_with("HTTP/1.1 404 "));
}

// As a page does that has its name point to 127.0.0.1, or that asks for ours.
TEST_F(ServeTest, OtherSitesGetNothing) {
  for (const char* headers :
       {"Host: example.org\r\n", "", "Host: example.org\r\nHost: localhost\r\n",
        "Host: localhost\r\nOrigin: http://example.org\r\n", "Host: localhost\r\nOrigin: null\r\n"})
    EXPECT_EQ(ask("GET", target_, headers).find(in_page), std::string::npos) << headers;
}

TEST_F(ServeTest, NobodyIsToldTheToken) {
  const std::string page = ask("GET", target_);
  const std::string token = target_.substr(target_.find('=') + 1);
  EXPECT_EQ(page.find(token), std::string::npos);
  for (const char* header :
       {"Referrer-Policy: no-referrer\r\n", "Cache-Control: no-store\r\n", "X-Frame-Options: DENY",
        "Content-Security-Policy: frame-ancestors 'none'", "X-Content-Type-Options: nosniff"})
    EXPECT_NE(page.find(header), std::string::npos) << header;
  EXPECT_EQ(ask("GET", "/?token=wrong").find(token), std::string::npos);
  EXPECT_EQ(server_->err(), "") << "there is no log";
}

TEST_F(ServeTest, HeadAndRanges) {
  const std::string whole = ask("GET", target_);
  const std::string head = ask("HEAD", target_);
  EXPECT_TRUE(head.ends_with("\r\n\r\n"));
  EXPECT_TRUE(head.starts_with("HTTP/1.1 200 "));
  EXPECT_EQ(head.find(in_page), std::string::npos);
  const std::string part = ask("GET", target_, "Host: localhost\r\nRange: bytes=0-10\r\n");
  EXPECT_EQ(part.size(), whole.size());
}

// Those who connect and say nothing cost no CPU time and no log, and keep nobody out.
TEST_F(ServeTest, ManyWhoSayNothing) {
  std::vector<Client> idle;
  idle.reserve(3 * few_files);
  const uint64_t before = cpu_ticks_of(server_->pid());
  for (rlim_t i = 0; i < 3 * few_files; ++i) idle.emplace_back(port_);
  std::this_thread::sleep_for(2s);
  EXPECT_LT(cpu_ticks_of(server_->pid()) - before, static_cast<uint64_t>(sysconf(_SC_CLK_TCK)))
      << "half of a CPU";
  expect_page();
  EXPECT_TRUE(idle.back().connected());
  EXPECT_EQ(server_->err(), "");
}

TEST_F(ServeTest, SlowClients) {
  Client slow(port_);
  int said = 0;
  while (said < 150 && slow.say("G")) {
    ++said;
    std::this_thread::sleep_for(100ms);
    if (said % 20 == 0) expect_page();
  }
  EXPECT_LT(said, 150) << "a request has ten seconds";
  Client endless(port_);
  endless.say(std::string(1 << 20, 'x'));
  EXPECT_EQ(endless.hear().find(in_page), std::string::npos);
  Client deaf(port_);  // that does not take what it asked for
  EXPECT_TRUE(deaf.say("GET " + target_ + " HTTP/1.1\r\nHost: localhost\r\n\r\n"));
  expect_page();
  EXPECT_EQ(server_->err(), "");
}

}  // namespace
}  // namespace pkprof::live
