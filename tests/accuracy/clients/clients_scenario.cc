// SPDX-License-Identifier: Apache-2.0
#include "clients_scenario.h"

#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <thread>
#include <utility>

namespace pkprof::accuracy {

using nlohmann::json;
using namespace std::chrono_literals;

namespace {
constexpr double hz = 1997;
}

double Charged::of(int pid) const {
  const auto it = clients.find(pid);
  return it == clients.end() ? 0 : it->second;
}

double Charged::all() const {
  return std::accumulate(clients.begin(), clients.end(), itself,
                         [](double sum, const auto& client) { return sum + client.second; });
}

void ClientsTest::SetUp() {
  live::skip_unless_able();
  if (IsSkipped()) return;
  live::write_file(truth_file(), "");  // so that there is one
  for (const int cpu : {server_cpu, client_cpu})
    stage_.start(nullptr, {live::find_program("nice"), "-n", "19", testnet::sibling("pk_hog")}, cpu,
                 false);
}

int ClientsTest::serve(std::string_view program, const Argv& arguments, int cpu) {
  Argv argv = {live::find_program(program)};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  return stage_.start(nullptr, argv, cpu, false);
}

int ClientsTest::answer(const Argv& how) {
  return start("pk_answer", how);
}

int ClientsTest::take(const Argv& how) {
  return start("pk_take", how);
}

int ClientsTest::start(const std::string& server, const Argv& how) {
  Argv argv = {server, "--truth", truth_file()};
  argv.insert(argv.end(), how.begin(), how.end());
  return stage_.start(nullptr, argv, server_cpu);
}

int ClientsTest::ask(const Argv& where, const std::string& rate, const std::string& cost_us) {
  Argv argv = {"pk_ask", "--rate", rate, "--cost-us", cost_us};
  argv.insert(argv.end(), where.begin(), where.end());
  return stage_.start(nullptr, argv, client_cpu);
}

std::string ClientsTest::truth_file() {
  return dir_.file("truth" + std::to_string(truths_++));
}

Charged ClientsTest::record(const std::set<int>& servers, const std::string& comm) {
  const std::string seconds = live::in_guest() ? "12" : "4";
  const auto done = live::run_pkprof(
      {"record", "-a", "-q", "-F", "1997", "--budget", "100", "--clients", "-o",
       dir_.file("profile"), "--", "sh", "-c",
       R"(cd "$0" && cat truth* >begin && sleep $1 && cat truth* >end)", dir_.path(), seconds});
  EXPECT_EQ(done.status, 0) << done.err;
  live::read_report(dir_.file("profile"));  // the ledger sums
  const auto view =
      live::run_pkprof({"report", dir_.file("profile"), "--view", "clients", "--json"});
  EXPECT_EQ(view.status, 0) << view.err;
  const json servers_of = json::parse(view.out)["servers"];
  Charged charged;
  for (const json& server : servers_of) {
    if (comm.empty() ? !servers.contains(server["pid"].get<int>()) : server["comm"] != comm)
      continue;
    charged.itself += server["for_itself_ns"].get<double>() / 1e9;
    charged.itself_async += server["itself"]["async_ns"].get<double>() / 1e9;
    for (const json& client : server["for_clients"]) {
      const int pid = client["client"].is_number() ? client["client"].get<int>() : 0;
      charged.user[pid] += client["user_ns"].get<double>() / 1e9;
      for (const char* part : {"user_ns", "own_ns", "async_ns"})
        charged.clients[pid] += client[part].get<double>() / 1e9;
    }
  }
  return charged;
}

double ClientsTest::truth(int one, int other) const {
  std::map<int64_t, double> did;
  for (const auto& [name, sign] : {std::pair{"begin", -1.0}, {"end", 1.0}}) {
    std::ifstream in(dir_.file(name), std::ios::binary);
    for (int64_t entry[2]; in.read(reinterpret_cast<char*>(entry), sizeof entry);)
      did[entry[0]] += sign * static_cast<double>(entry[1]);
  }
  return did[one] / did[other];
}

void ClientsTest::expect(Charged charged, int one, int other, double truth,
                         const std::set<int>& bystanders, const ClientLimits& limits) {
  const double all = charged.all();
  const double ratio = charged.user[one] / charged.user[other];
  const double left_out = limits.code_alone ? charged.itself_async : 0;
  const double known = 100 * (all - charged.itself) / (all - left_out);
  double strangers = 0;
  for (const auto& [pid, seconds] : charged.clients)
    if (pid != one && pid != other) strangers += seconds;
  std::printf("  %.2f s: known %.1f %%, ratio %.3f (truth %.3f), strangers %.2f %%\n", all, known,
              ratio, truth, 100 * strangers / all);
  EXPECT_GE(all, 0.1);
  EXPECT_GE(known, limits.known);
  // What chance makes of so many samples, twice.
  const double chance =
      2 * std::sqrt(1 / (charged.user[one] * hz) + 1 / (charged.user[other] * hz));
  EXPECT_NEAR(ratio / truth, 1, limits.ratio / 100 + chance);
  EXPECT_LE(100 * strangers / all, limits.bystander);
  for (const int pid : bystanders) EXPECT_LE(100 * charged.of(pid) / all, limits.bystander);
}

void ClientsTest::expect_two(const Argv& where, const std::set<int>& servers,
                             const ClientLimits& limits, const std::string& rate) {
  const int idle = stay_idle(where);
  const int one = ask(where, "1500", "100");
  const int other = ask(where, "500", "100");
  std::this_thread::sleep_for(300ms);
  Charged charged = record(servers);
  expect(charged, one, other, truth(one, other), {idle}, limits);
  stage_.stop(one);
  stage_.stop(other);
  const int cheap = ask(where, rate, "50");
  const int dear = ask(where, rate, "500");
  std::this_thread::sleep_for(300ms);
  charged = record(servers);
  expect(charged, cheap, dear, truth(cheap, dear), {idle}, limits);
}

void ClientsTest::expect_equal(const Ask& ask_at, const Servers& servers,
                               const ClientLimits& limits, double rate) {
  const int idle = ask_at("0.001", truth_file());
  answer({"--mode", "turns", "--port", "9399"});
  const int elsewhere = ask({"--port", "9399"}, "200", "50");
  const int one = ask_at(std::to_string(3 * rate), truth_file());
  const int other = ask_at(std::to_string(rate), truth_file());
  std::this_thread::sleep_for(300ms);
  const Charged charged = record(servers());
  // All of it, since hardly any may be user code.
  expect({charged.clients, charged.clients, charged.itself, charged.itself_async}, one, other,
         truth(one, other), {idle, elsewhere}, limits);
}

ClientsTest::Ask ClientsTest::text(const Argv& where) {
  return [this, where](const std::string& rate, const std::string& truth) {
    Argv told = where;
    told.insert(told.end(), {"--truth", truth});
    return ask(told, rate, "0");
  };
}

Argv ClientsTest::get(const std::string& port) {
  const std::string get = "GET / HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n";
  const size_t bytes = talk(port, get).size();
  EXPECT_GT(bytes, 20U);
  return {"--port", port, "--text", get, "--answer-bytes", std::to_string(bytes)};
}

std::string ClientsTest::talk(const std::string& port, const std::string& text) {
  const std::string script = "for i in $(seq 200); do exec 3<>/dev/tcp/127.0.0.1/" + port +
                             " && break; sleep 0.05; done 2>/dev/null; printf '" + text +
                             "' >&3; timeout 0.5 cat <&3; true";
  return live::run_program({"bash", "-c", script}).out;
}

namespace {

std::string programs_of_postgres() {
  std::error_code none;
  std::string bin;
  for (const auto& entry : std::filesystem::directory_iterator("/usr/lib/postgresql", none))
    bin = entry.path().string() + "/bin/";
  return bin;
}

}  // namespace

bool Postgres::is_here() {
  return !programs_of_postgres().empty() && getpwnam("postgres");
}

Argv Postgres::as_postgres(Argv argv) {
  const Argv as = {"setpriv", "--reuid", "postgres", "--regid", "postgres", "--clear-groups"};
  argv.insert(argv.begin(), as.begin(), as.end());
  return argv;
}

Postgres::Postgres(live::Stage& stage, const live::TempDir& dir) : directory_(dir.file("cluster")) {
  const std::string bin = programs_of_postgres();
  const passwd* user = getpwnam("postgres");
  chmod(dir.path().c_str(), 0755);
  std::filesystem::create_directory(directory_);
  EXPECT_EQ(chown(directory_.c_str(), user->pw_uid, user->pw_gid), 0);
  live::must(
      testnet::run_command(as_postgres({bin + "initdb", "-D", directory_, "-N", "-A", "trust"})));
  pid_ = stage.start(nullptr,
                     as_postgres({bin + "postgres", "-D", directory_, "-k", directory_, "-c",
                                  "listen_addresses=", "-c", "autovacuum=off"}),
                     server_cpu, false);
  while (!testnet::run_command(as_postgres({bin + "pg_isready", "-q", "-h", directory_})))
    std::this_thread::sleep_for(50ms);
}

}  // namespace pkprof::accuracy
