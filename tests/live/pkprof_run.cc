// SPDX-License-Identifier: Apache-2.0
#include "pkprof_run.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

namespace pkprof::live {
namespace {

using nlohmann::json;

int party_of(const json& value) {
  if (value.is_number()) return value.get<int>();
  const auto name = value.get<std::string>();
  if (name == "KERNEL") return kKernel;
  if (name == "IDLE") return kIdle;
  if (name == "OTHER") return kOther;
  if (name == "UNCLAIMED") return kUnclaimed;
  throw std::runtime_error("report: unknown party " + name);
}

}  // namespace

TempDir::TempDir() {
  std::string pattern = std::filesystem::temp_directory_path() / "pkprof-live-XXXXXX";
  if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp " + pattern);
  path_ = pattern;
}

TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string TempDir::file(std::string_view name) const {
  return std::filesystem::path(path_) / name;
}

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

void write_file(const std::string& path, std::string_view text) {
  std::ofstream out(path, std::ios::binary);
  out << text;
  out.flush();
  if (!out) throw std::runtime_error("writing " + path);
}

std::string find_program(std::string_view name) {
  const char* path = std::getenv("PATH");
  std::istringstream in(std::string(path != nullptr ? path : "") + ":/usr/sbin:/sbin");
  for (std::string dir; std::getline(in, dir, ':');) {
    const std::string file = std::filesystem::path(dir) / name;
    if (!dir.empty() && access(file.c_str(), X_OK) == 0) return file;
  }
  return {};
}

std::set<std::string> bpf_objects_of(int pid) {
  std::set<std::string> objects;
  std::error_code ignored;
  const std::string dir = "/proc/" + std::to_string(pid) + "/fdinfo";
  for (const auto& entry : std::filesystem::directory_iterator(dir, ignored)) {
    std::ifstream in(entry.path());
    for (std::string line; std::getline(in, line);) {
      for (std::string kind : {"prog", "map", "link"}) {
        if (!line.starts_with(kind + "_id:")) continue;
        std::istringstream rest(line.substr(kind.size() + 4));
        std::string id;
        rest >> id;
        // A link's information names its program, too.
        objects.insert(kind.append(" ").append(id));
      }
    }
  }
  return objects;
}

bool waits_for_signals(int pid) {
  const std::string status = read_file("/proc/" + std::to_string(pid) + "/status");
  const size_t at = status.find("SigBlk:");
  return at != std::string::npos &&
         std::stoull(status.substr(at + 7), nullptr, 16) >> (SIGTERM - 1) & 1;
}

bool in_guest() {
  return std::getenv("PKPROF_IN_VM") != nullptr;
}

int last_cpu() {
  return static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)) - 1;
}

std::chrono::milliseconds patience() {
  return in_guest() ? 400s : 120s;
}

Running::Running(const Argv& argv, const Options& options)
    : out_path_(options.out_path.empty() ? dir_.file("out") : options.out_path) {
  std::vector<char*> words;
  for (const auto& word : argv) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  const std::string err_path = dir_.file("err");
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ < 0) throw std::runtime_error("fork");
  if (pid_ > 0) return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);
  const int null = open("/dev/null", O_RDONLY);
  const int out = open(out_path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  const int err = open(err_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (null < 0 || out < 0 || err < 0) _exit(127);
  dup2(null, STDIN_FILENO);
  dup2(out, STDOUT_FILENO);
  dup2(err, STDERR_FILENO);
  for (const auto& setting : options.env) putenv(const_cast<char*>(setting.c_str()));
  if (options.before_exec) options.before_exec();
  execvp(words[0], words.data());
  dprintf(STDERR_FILENO, "%s cannot be run: %s\n", words[0], std::strerror(errno));
  _exit(127);
}

Running::~Running() {
  if (reaped_) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

void Running::signal(int number) const {
  if (!reaped_) kill(pid_, number);
}

int Running::wait(std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (!reaped_) {
    int status = 0;
    if (waitpid(pid_, &status, WNOHANG) == pid_) {
      reaped_ = true;
      status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      break;
    }
    if (std::chrono::steady_clock::now() > deadline) {
      throw std::runtime_error("a program did not end in time; it said: " + err());
    }
    poll(nullptr, 0, 5);
  }
  return status_;
}

std::string Running::out() const {
  return read_file(out_path_);
}

std::string Running::err() const {
  return read_file(dir_.file("err"));
}

Finished run_program(const Argv& argv, const Running::Options& options) {
  Running running(argv, options);
  Finished finished;
  finished.status = running.wait();
  if (options.out_path.empty()) finished.out = running.out();
  finished.err = running.err();
  return finished;
}

Argv pkprof_argv(Argv arguments) {
  arguments.insert(arguments.begin(), testnet::sibling("pkprof"));
  return arguments;
}

Finished run_pkprof(Argv arguments, const Running::Options& options) {
  return run_program(pkprof_argv(std::move(arguments)), options);
}

bool is_network(std::string_view source) {
  return source == "softirq:NET_RX" || source == "softirq:NET_TX" || source == "softirq:TASKLET" ||
         source == "softirq:HRTIMER";
}

Report Report::parse(const std::string& text) {
  const json j = json::parse(text);
  if (j.at("schema") != "pkprof.report/1") throw std::runtime_error("report: unknown schema");
  Report r;
  r.text = text;
  j.at("cpus").get_to(r.cpus);
  j.at("duration_ns").get_to(r.duration_ns);
  j.at("frequency_hz").get_to(r.frequency_hz);
  j.at("cpu_ns").get_to(r.cpu_ns);
  j.at("samples").at("taken").get_to(r.samples_taken);
  j.at("samples").at("lost").get_to(r.samples_lost);
  j.at("watched").get_to(r.watched);
  j.at("degraded").get_to(r.degraded);
  j.at("kernel_ns").get_to(r.kernel_ns);
  j.at("idle_ns").get_to(r.idle_ns);
  j.at("steal_ns").get_to(r.steal_ns);
  j.at("other_ns").get_to(r.other_ns);
  j.at("unclaimed").get_to(r.unclaimed);
  for (const json& p : j.at("processes")) {
    Process out;
    p.at("pid").get_to(out.pid);
    p.at("comm").get_to(out.comm);
    p.at("exe").get_to(out.exe);
    p.at("cgroup").get_to(out.cgroup);
    p.at("user_ns").get_to(out.user_ns);
    p.at("own_ns").get_to(out.own_ns);
    p.at("async_ns").get_to(out.async_ns);
    p.at("stolen_ns").get_to(out.stolen_ns);
    p.at("sources").get_to(out.sources);
    p.at("basis").get_to(out.basis);
    r.processes.push_back(std::move(out));
  }
  for (const json& f : j.at("flows")) {
    r.flows.push_back({party_of(f.at("ran_on")), party_of(f.at("served")),
                       f.at("source").get<std::string>(), f.at("ns").get<uint64_t>()});
  }
  return r;
}

uint64_t Report::sum(const std::function<bool(const Flow&)>& wanted) const {
  uint64_t ns = 0;
  for (const Flow& f : flows) ns += wanted(f) ? f.ns : 0;
  return ns;
}

uint64_t Report::network_ns() const {
  return sum([](const Flow& f) { return is_network(f.source); });
}

uint64_t Report::network_ns(const std::set<int>& served) const {
  return sum([&](const Flow& f) { return is_network(f.source) && served.contains(f.served); });
}

uint64_t Report::softirq_ns(int served) const {
  return sum([&](const Flow& f) { return f.source.starts_with("softirq:") && f.served == served; });
}

uint64_t Report::softirq_on(int ran_on, int served) const {
  return sum([&](const Flow& f) {
    return f.source.starts_with("softirq:") && f.ran_on == ran_on && f.served == served;
  });
}

uint64_t Report::charged_to(int pid) const {
  uint64_t ns = 0;
  for (const Process& p : processes) {
    if (p.pid == pid) ns += p.user_ns + p.own_ns + p.async_ns;
  }
  return ns;
}

const Process* Report::find(int pid) const {
  const auto it = std::ranges::find(processes, pid, &Process::pid);
  return it == processes.end() ? nullptr : &*it;
}

std::set<int> Report::pids_of(std::string_view comm) const {
  std::set<int> pids;
  for (const Process& p : processes) {
    if (p.comm == comm) pids.insert(p.pid);
  }
  return pids;
}

std::set<int> Report::pids_running(std::string_view program) const {
  std::set<int> pids;
  for (const Process& p : processes) {
    if (p.exe.ends_with("/" + std::string(program))) pids.insert(p.pid);
  }
  return pids;
}

uint64_t Report::samples(uint64_t ns) const {
  return static_cast<uint64_t>(static_cast<double>(ns) / 1e9 * static_cast<double>(frequency_hz) *
                               watched);
}

uint64_t Report::unclaimed_ns(const std::string& reason) const {
  const auto it = unclaimed.find(reason);
  return it == unclaimed.end() ? 0 : it->second;
}

void expect_adds_up(const Report& report) {
  uint64_t sum = report.kernel_ns + report.idle_ns + report.steal_ns + report.other_ns;
  for (const Process& p : report.processes) sum += p.user_ns + p.own_ns + p.async_ns;
  for (const auto& [reason, ns] : report.unclaimed) sum += ns;
  // Of a short one, what a CPU may be late that the host does not run when the time is taken.
  constexpr double late_ns = 5e6;
  EXPECT_NEAR(static_cast<double>(sum), static_cast<double>(report.cpu_ns),
              std::max(0.01 * static_cast<double>(report.cpu_ns),
                       late_ns * static_cast<double>(report.cpus)))
      << "the ledger does not sum: idle " << report.idle_ns << ", steal " << report.steal_ns
      << ", unsampled " << report.unclaimed_ns("unsampled");
  EXPECT_EQ(report.cpu_ns, report.cpus * report.duration_ns);
  const uint64_t flows = report.sum([](const Flow&) { return true; });
  EXPECT_LE(flows + report.steal_ns, sum);
  EXPECT_GE(flows + report.steal_ns + report.unclaimed_ns("unsampled"), sum);
  EXPECT_GT(report.watched, 0);
  EXPECT_LE(report.watched, 1);
  EXPECT_EQ(report.samples_lost, 0);
}

void expect_ledger_sums(const Report& report) {
  expect_adds_up(report);
  // What no sample stands for is in the sum by definition, so it must itself be small: a few
  // periods of each CPU at the most.
  // A sample of an emulated CPU takes so long that the budget makes them ever fewer.
  const uint64_t periods =
      report.cpus * (3'000'000'000 / report.frequency_hz + (in_guest() ? uint64_t{20'000'000} : 0));
  EXPECT_LE(report.unclaimed_ns("unsampled"), std::max(report.cpu_ns / 50, periods))
      << "steal " << report.steal_ns;
}

Report read_report(const std::string& file) {
  const Finished shown = run_pkprof({"report", file, "--json"});
  if (shown.status != 0) throw std::runtime_error("pkprof report: " + shown.err);
  Report report = Report::parse(shown.out);
  expect_ledger_sums(report);
  return report;
}

Recording record(const Argv& arguments) {
  const TempDir dir;
  const std::string file = dir.file("profile.pb.gz");
  Argv words = {"record", "-o", file};
  words.insert(words.end(), arguments.begin(), arguments.end());
  Recording recording;
  recording.record = run_pkprof(words);
  if (!std::filesystem::exists(file)) {
    throw std::runtime_error("pkprof record wrote no file, and ended with status " +
                             std::to_string(recording.record.status) + ": " + recording.record.err);
  }
  if (const char* keep = std::getenv("PKPROF_KEEP"); keep != nullptr) {
    const std::string name = testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::copy_file(
        file, std::filesystem::path(keep) / (name.substr(name.find('/') + 1) + ".pb.gz"),
        std::filesystem::copy_options::overwrite_existing);
  }
  recording.report = read_report(file);
  return recording;
}

namespace {

bool works_in(const json& doctor, const std::string& name) {
  for (const json& c : doctor.at("capabilities")) {
    if (c.at("name") == name) return c.at("works").get<bool>();
  }
  return true;
}

}  // namespace

bool capability_works_now(const std::string& name) {
  return works_in(json::parse(run_pkprof({"doctor", "--json"}).out), name);
}

bool capability_works(const std::string& name) {
  static const json doctor = json::parse(run_pkprof({"doctor", "--json"}).out);
  return works_in(doctor, name);
}

}  // namespace pkprof::live
