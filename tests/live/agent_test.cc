// SPDX-License-Identifier: Apache-2.0
// pkprof agent: recording all the time, and what becomes of it.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <filesystem>
#include <sstream>
#include <thread>

#include "scenario.h"

namespace pkprof::live {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

std::string http_get(uint16_t port, const std::string& path) {
  const Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(fd.get(), reinterpret_cast<sockaddr*>(&to), sizeof(to))) return "";
  const std::string request = "GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n";
  if (send(fd.get(), request.data(), request.size(), MSG_NOSIGNAL) < 0) return "";
  std::string all;
  char part[65536];
  for (ssize_t n; (n = recv(fd.get(), part, sizeof(part), 0)) > 0;)
    all.append(part, static_cast<size_t>(n));
  return all;
}

// By name with labels, as it stands there.
std::map<std::string, double> figures_in(const std::string& answer) {
  std::map<std::string, double> figures;
  std::istringstream in(answer.substr(answer.find("\r\n\r\n") + 4));
  for (std::string line; std::getline(in, line);)
    if (!line.starts_with('#') && line.rfind(' ') != std::string::npos)
      figures[line.substr(0, line.rfind(' '))] = std::stod(line.substr(line.rfind(' ')));
  return figures;
}

class AgentTest : public testing::Test {
 protected:
  void SetUp() override { skip_unless_able(); }

  [[nodiscard]] std::string path(const std::string& name) const { return dir_.file(name); }
  void configure(const std::string& sinks) const {
    write_file(path("agent.toml"), "interval = 1\nbudget = 100\nspool = \"" + path("spool") +
                                       "\"\n[metrics]\nport = 0\nby = \"comm\"\n" + sinks);
  }
  [[nodiscard]] std::string sink(const std::string& name) const {
    return "[[sink]]\ntype = \"files\"\nname = \"" + name + "\"\ndirectory = \"" + path(name) +
           "\"\n";
  }
  [[nodiscard]] std::vector<std::string> files(const std::string& name) const {
    std::vector<std::string> all;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(path(name), error)) all.push_back(entry.path());
    std::ranges::sort(all);
    return all;
  }
  static bool soon(const std::function<bool()>& true_by_then) {
    const auto until = std::chrono::steady_clock::now() + patience();
    while (!true_by_then()) {
      if (std::chrono::steady_clock::now() > until) return false;
      std::this_thread::sleep_for(50ms);
    }
    return true;
  }
  // Seconds, of "HOST-1796009318.284228183-BOOT.pb.gz".
  static double start_of(const std::string& file) {
    const std::string name = fs::path(file).filename();
    const size_t boot = name.rfind('-');
    return std::stod(name.substr(name.rfind('-', boot - 1) + 1));
  }
  // Where it says that its figures are, the last time.
  static uint16_t port_of(const Running& agent) {
    const std::string said = agent.err();
    const std::string before = "http://127.0.0.1:";
    const size_t at = said.rfind(before);
    return at == std::string::npos
               ? 0
               : static_cast<uint16_t>(std::stoi(said.substr(at + before.size())));
  }
  [[nodiscard]] Argv argv() const { return pkprof_argv({"agent", "-c", path("agent.toml")}); }

  TempDir dir_;
  Turn turn_;
};

TEST_F(AgentTest, OnceIsOneCut) {
  configure(sink("cuts"));
  const Finished done = run_pkprof({"agent", "--once", "-c", path("agent.toml")});
  ASSERT_EQ(done.status, 0) << done.err;
  ASSERT_EQ(files("cuts").size(), 1);
  const Report report = read_report(files("cuts").front());  // the ledger sums
  EXPECT_GT(report.duration_ns, 900'000'000U);
  EXPECT_GT(report.samples_taken, 100U);
  EXPECT_TRUE(files("spool/cuts").empty());
}

// What comes out of a store is what the cuts have together, to the nanosecond.
TEST_F(AgentTest, AStoreHasWhatWasCut) {
  const std::string url = "sqlite:" + path("store.db");
  configure(sink("cuts") + "[[sink]]\ntype = \"store\"\nurl = \"" + url + "\"\n");
  Running agent(argv());
  ASSERT_TRUE(soon([&] { return files("cuts").size() >= 3; })) << agent.err();
  agent.signal(SIGTERM);
  ASSERT_EQ(agent.wait(), 0) << agent.err();
  EXPECT_TRUE(files("spool/store").empty()) << agent.err();
  std::map<std::string, uint64_t> cut, stored;
  uint64_t cut_ns = 0;
  const auto add = [](const Report& report, std::map<std::string, uint64_t>& to) {
    for (const Process& p : report.processes) {
      to[p.comm + " user"] += p.user_ns;
      to[p.comm + " own"] += p.own_ns;
      to[p.comm + " async"] += p.async_ns;
    }
    to["idle"] += report.idle_ns;
    to["kernel"] += report.kernel_ns;
    // What no sample stands for is what the others leave, which rounding may make too much of.
    for (const auto& [reason, ns] : report.unclaimed)
      if (reason != "unsampled") to["unclaimed " + reason] += ns;
  };
  for (const std::string& file : files("cuts")) {
    const Report report = read_report(file);
    cut_ns += report.cpu_ns;
    add(report, cut);
  }
  const Finished asked = run_pkprof({"query", url, "--json"});
  ASSERT_EQ(asked.status, 0) << asked.err;
  const Report report = Report::parse(asked.out);
  add(report, stored);
  EXPECT_EQ(report.cpu_ns, cut_ns);
  EXPECT_EQ(stored, cut);
}

TEST_F(AgentTest, OnceTellsOfASinkThatTakesNothing) {
  write_file(path("cuts"), "a file, where a directory is to be");
  configure(sink("cuts"));
  const Finished done = run_pkprof({"agent", "--once", "-c", path("agent.toml")});
  EXPECT_EQ(done.status, 125);
  EXPECT_NE(done.err.find("a sink did not take the cut, which waits in"), std::string::npos)
      << done.err;
  EXPECT_EQ(files("spool/cuts").size(), 1);
}

TEST_F(AgentTest, GoesOnWhateverItsSinksDo) {
  write_file(path("later"), "a file, where a directory is to be");
  configure(sink("cuts") + sink("later"));
  Running agent(argv());
  ASSERT_TRUE(soon([&] { return files("cuts").size() >= 3; })) << agent.err();
  // Prometheus hears of it.
  const std::string answer = http_get(port_of(agent), "/metrics");
  ASSERT_TRUE(answer.starts_with("HTTP/1.1 200")) << answer;
  auto figures = figures_in(answer);
  double all = 0;
  for (const auto& [name, value] : figures)
    if (name.starts_with("pkprof_cpu_seconds_total") ||
        name.starts_with("pkprof_other_cpu_seconds_total"))
      all += value;
  EXPECT_NEAR(all, figures["pkprof_all_cpu_seconds_total"], 1e-6) << "the ledger sums";
  EXPECT_GE(figures["pkprof_sink_cuts_sent_total{sink=\"cuts\"}"], 3);
  EXPECT_EQ(figures["pkprof_sink_cuts_sent_total{sink=\"later\"}"], 0);
  EXPECT_GE(figures["pkprof_sink_waiting_cuts{sink=\"later\"}"], 2);
  EXPECT_GE(figures["pkprof_sink_errors_total{sink=\"later\"}"], 1);
  EXPECT_TRUE(http_get(port_of(agent), "/").starts_with("HTTP/1.1 404"));
  // The other sink has them all when it can take them.
  fs::remove(path("later"));
  ASSERT_TRUE(soon([&] { return files("later").size() >= 4; })) << agent.err();
  // Another configuration.
  configure(sink("new"));
  agent.signal(SIGHUP);
  ASSERT_TRUE(soon([&] { return files("new").size() >= 2; })) << agent.err();
  agent.signal(SIGTERM);
  EXPECT_EQ(agent.wait(), 0) << agent.err();
  EXPECT_TRUE(files("spool/cuts").empty());
  // One cut begins where the last one ended.
  double end = 0;
  for (const std::string& file : files("new")) {
    const Report report = read_report(file);
    const double start = start_of(file);
    if (end > 0) EXPECT_NEAR(start, end, 1e-3) << file;
    end = start + static_cast<double>(report.duration_ns) / 1e9;
  }
}

TEST_F(AgentTest, KilledItLosesTheCutOfThatMoment) {
  configure(sink("cuts"));
  {
    Running agent(argv());
    ASSERT_TRUE(soon([&] { return files("cuts").size() >= 2; })) << agent.err();
    agent.signal(SIGKILL);
    EXPECT_EQ(agent.wait(), 128 + SIGKILL);
  }
  const size_t before = files("cuts").size();
  for (const std::string& file : files("cuts")) read_report(file);
  Running agent(argv());
  ASSERT_TRUE(soon([&] { return files("cuts").size() > before; })) << agent.err();
  agent.signal(SIGTERM);
  EXPECT_EQ(agent.wait(), 0) << agent.err();
  for (const std::string& file : files("cuts")) read_report(file);
}

TEST_F(AgentTest, ConfigurationIsChecked) {
  configure(sink("cuts"));
  EXPECT_EQ(run_pkprof({"agent", "--check-config", "-c", path("agent.toml")}).status, 0);
  write_file(path("agent.toml"), "intervall = 1\n");
  const Finished wrong = run_pkprof({"agent", "--check-config", "-c", path("agent.toml")});
  EXPECT_EQ(wrong.status, 2);
  EXPECT_NE(wrong.err.find("agent.toml:1: \"intervall\" is not known here"), std::string::npos)
      << wrong.err;
  EXPECT_EQ(run_pkprof({"agent", "-c", path("none.toml")}).status, 2);
}

}  // namespace
}  // namespace pkprof::live
