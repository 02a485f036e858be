// SPDX-License-Identifier: Apache-2.0
#include "scenario.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/klog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>
#include <thread>

namespace pkprof::live {

using testnet::Child;

Sysctl::Sysctl(std::string path, const char* value)
    : path_(std::move(path)), old_(read_file(path_)) {
  write_file(path_, value);
}

Sysctl::~Sysctl() {
  try {
    write_file(path_, old_);
  } catch (const std::exception& e) {
    ADD_FAILURE() << e.what();
  }
}

Cgroup::Cgroup() {
  const std::string mount = must(testnet::run_command(
      {"awk", "$3 == \"cgroup2\" { printf \"%s\", $2; exit }", "/proc/mounts"}));
  if (mount.empty()) throw std::runtime_error("no cgroup v2 mount");
  path_ = mount + "/pkprof-live-XXXXXX";
  if (mkdtemp(path_.data()) == nullptr) throw std::runtime_error("making " + path_);
}

Cgroup::~Cgroup() {
  for (int i = 0; i < 100 && rmdir(path_.c_str()) != 0; ++i) std::this_thread::sleep_for(20ms);
}

void Cgroup::add(int pid) const {
  write_file(path_ + "/cgroup.procs", std::to_string(pid));
}

std::string Cgroup::name() const {
  return path_.substr(path_.rfind('/'));
}

// Of this directory, which every machine has: a file of our own would stay behind.
Turn::Turn(Kind kind) : lock_(open("/run", O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (lock_.valid()) flock(lock_.get(), kind == Kind::alone ? LOCK_EX : LOCK_SH);
}

Stage::~Stage() {
  // All are told before any is waited for.
  for (const Child& child : children_) kill(child.pid(), SIGTERM);
  while (!children_.empty()) children_.pop_back();
}

int Stage::start(const testnet::Namespace* ns, Argv argv, int cpu, bool wait_ready) {
  if (argv.at(0).starts_with("pk_")) argv[0] = testnet::sibling(argv[0]);
  children_.push_back(must(Child::spawn(argv, {.ns = ns, .cpu = cpu})));
  if (wait_ready) must(children_.back().wait_for_line("ready", 30s));
  return children_.back().pid();
}

int Stage::start_hog(int cpu) {
  return start(nullptr, {"pk_hog"}, cpu, false);
}

Child& Stage::child(int pid) {
  const auto it = std::ranges::find(children_, pid, &Child::pid);
  if (it == children_.end()) throw std::runtime_error("no such child");
  return *it;
}

void Stage::stop(int pid) {
  std::erase_if(children_, [pid](const Child& child) { return child.pid() == pid; });
}

double Stage::ratio(int one, int other, const char* key) {
  if (in_guest()) return 0;
  const auto rate = [&](int pid) {
    testnet::Child& workload = child(pid);
    must(workload.stop());
    const auto result = nlohmann::json::parse(workload.last_line());
    return result.at(key).get<double>() / result.at("wall_ns").get<double>();
  };
  const double first = rate(one);
  return first / rate(other);
}

namespace {

std::set<int> family_of(int pid) {
  std::set<int> pids = {pid};
  const std::string task = "/proc/" + std::to_string(pid) + "/task/" + std::to_string(pid);
  std::ifstream in(task + "/children");
  if (!in) {  // CONFIG_PROC_CHILDREN is off: by parent
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      const std::string name = entry.path().filename();
      if (name.find_first_not_of("0123456789") != std::string::npos) continue;
      const std::string stat = read_file(entry.path() / "stat");
      const size_t close = stat.rfind(')');
      if (close == std::string::npos) continue;
      std::istringstream rest(stat.substr(close + 1));
      std::string state;
      int parent = 0;
      rest >> state >> parent;
      if (parent == pid) pids.insert(std::stoi(name));
    }
  }
  for (int child = 0; in >> child;) pids.insert(child);
  return pids;
}

// A file of /proc/PID/ns, or of /run/netns: which network namespace it is. 0: gone.
ino_t namespace_at(const std::string& path) {
  struct stat info = {};
  return stat(path.c_str(), &info) == 0 ? info.st_ino : 0;
}

// Processes with a network of their own that is not one of ours: another suite, beside us.
std::set<int> strangers(const Report& report) {
  std::set<ino_t> ours = {namespace_at("/proc/self/ns/net")};
  const std::string prefix = "pkt-" + std::to_string(getpid()) + "-";
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/run/netns", ignored)) {
    if (entry.path().filename().string().starts_with(prefix)) {
      ours.insert(namespace_at(entry.path()));
    }
  }
  std::set<int> found;
  for (const Flow& f : report.flows) {
    if (f.served <= 0 || !is_network(f.source)) continue;
    const ino_t where = namespace_at("/proc/" + std::to_string(f.served) + "/ns/net");
    if (where != 0 && !ours.contains(where)) found.insert(f.served);
  }
  return found;
}

}  // namespace

std::set<int> with_children(int pid, size_t count) {
  // "ready" is said before the workers are forked.
  const auto deadline = std::chrono::steady_clock::now() + 10s;
  for (;;) {
    std::set<int> pids = family_of(pid);
    if (pids.size() > count || std::chrono::steady_clock::now() > deadline) return pids;
    poll(nullptr, 0, 10);
  }
}

Report observe(const Observe& how) {
  const auto counted =
      how.counted ? how.counted : [](const Report& report) { return report.network_ns(); };
  // On an emulated CPU a sample takes milliseconds: fewer of them, in more time. To begin once more
  // takes longer than that.
  const int hz = in_guest() ? std::min(how.frequency_hz, 199) : how.frequency_hz;
  const uint64_t min_samples = in_guest() ? (how.min_samples + 1) / 2 : how.min_samples;
  const double most_seconds = how.most_seconds * (in_guest() ? 3 : 1);
  double seconds = how.seconds * (in_guest() ? 8 : 1);
  for (;;) {
    std::ostringstream duration;
    duration << seconds;
    Recording r =
        record({"-a", "-d", duration.str(), "-F", std::to_string(hz), "--budget", how.budget});
    if (r.record.status != 0) throw std::runtime_error("pkprof record: " + r.record.err);
    const std::set<int> others = strangers(r.report);
    std::erase_if(r.report.flows, [&](const Flow& f) { return others.contains(f.served); });
    const uint64_t seen = r.report.samples(counted(r.report));
    if (seen >= min_samples) return r.report;
    if (seconds >= most_seconds) {
      ADD_FAILURE() << "only " << seen << " samples of what is tested, in " << seconds << " s\n"
                    << describe(r.report);
      return r.report;
    }
    std::cout << "  " << seen << " samples of " << min_samples << " in " << seconds
              << " s: recorded again, for longer\n";
    const double wanted =
        seconds * 1.3 * static_cast<double>(min_samples) / static_cast<double>(seen + 1);
    seconds = std::min(std::max(wanted, seconds * 2), most_seconds);
  }
}

Shares shares_of(const Report& report, const std::set<int>& ends, int bystander,
                 const std::function<bool(const Flow&)>& counts) {
  const auto total = static_cast<double>(report.sum(counts));
  const auto percent = [&](const std::function<bool(const Flow&)>& wanted) {
    const uint64_t ns = report.sum([&](const Flow& f) { return counts(f) && wanted(f); });
    return total > 0 ? 100 * static_cast<double>(ns) / total : 0;
  };
  return {percent([&](const Flow& f) { return ends.contains(f.served); }),
          percent([&](const Flow& f) { return f.served == bystander; }),
          percent([](const Flow& f) { return f.served == kUnclaimed; }),
          percent([](const Flow& f) { return f.served == kKernel; })};
}

Shares network_shares(const Report& report, const std::set<int>& ends, int bystander) {
  return shares_of(report, ends, bystander, [](const Flow& f) { return is_network(f.source); });
}

Shares received_elsewhere(const Report& report, const std::set<int>& ends, int bystander,
                          const std::set<int>& pinned) {
  return shares_of(report, ends, bystander,
                   [&](const Flow& f) { return is_received_elsewhere(f, pinned); });
}

bool is_received_elsewhere(const Flow& flow, const std::set<int>& pinned) {
  return flow.source == "softirq:NET_RX" && !pinned.contains(flow.ran_on);
}

std::string describe(const Report& report) {
  const auto name = [&](int party) -> std::string {
    switch (party) {
      case kKernel:
        return "KERNEL";
      case kIdle:
        return "IDLE";
      case kOther:
        return "OTHER";
      case kUnclaimed:
        return "UNCLAIMED";
      default:
        break;
    }
    const Process* p = report.find(party);
    return std::to_string(party) + (p != nullptr ? " " + p->comm : "");
  };
  std::ostringstream out;
  int rows = 0;
  for (const Flow& f : report.flows) {
    const std::string_view word = std::string_view(f.source).substr(0, f.source.find(':'));
    if (word != "softirq" && word != "work" && word != "kthread" && word != "irq" && word != "ipi")
      continue;
    if (++rows > 24) break;
    out << "  " << f.source << ": ran on " << name(f.ran_on) << ", served " << name(f.served)
        << ": " << static_cast<double>(f.ns) / 1e6 << " ms\n";
  }
  for (const auto& [reason, ns] : report.unclaimed) {
    out << "  unclaimed, " << reason << ": " << static_cast<double>(ns) / 1e6 << " ms\n";
  }
  return out.str();
}

double bystander_limit() {
  return in_guest() ? 1.0 : 0.5;
}

void expect_shares(const Report& report, const Shares& shares, double ends_at_least,
                   double unclaimed_at_most, double bystander_at_most) {
  // Emulated, pkprof's hooks take percents of the time themselves; that is KERNEL, and is not
  // meant.
  constexpr double most_of_hooks = 10;
  const double counted = shares.ends + (in_guest() ? std::min(shares.kernel, most_of_hooks) : 0);
  EXPECT_GE(counted, ends_at_least) << describe(report);
  EXPECT_LE(shares.bystander, bystander_at_most) << describe(report);
  EXPECT_LE(shares.unclaimed, unclaimed_at_most) << describe(report);
  for (const auto& [key, value] :
       {std::pair("ends", shares.ends), std::pair("bystander", shares.bystander),
        std::pair("unclaimed", shares.unclaimed)}) {
    testing::Test::RecordProperty(key, std::to_string(value));
  }
}

uint64_t interrupts_had(std::string_view kind) {
  std::istringstream in(read_file("/proc/interrupts"));
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    if (name != std::string(kind) + ":") continue;
    uint64_t sum = 0;
    for (uint64_t count = 0; words >> count;) sum += count;
    return sum;
  }
  return 0;
}

bool is_below_pvm() {
  constexpr int read_all = 3;
  std::string log(1 << 20, '\0');
  const int length = klogctl(read_all, log.data(), static_cast<int>(log.size()));
  return length > 0 &&
         std::string_view(log.data(), static_cast<size_t>(length)).contains("via PVM_HC_");
}

void skip_unless_able() {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  if (last_cpu() < 1) GTEST_SKIP() << "needs two CPUs";
  if (!capability_works("sampling")) GTEST_SKIP() << "this kernel lacks: sampling";
}

void PairTest::SetUp() {
  skip_unless_able();
  if (IsSkipped()) return;
  must(testnet::remove_leftovers());
  pair_.emplace(must(testnet::Pair::create(last_cpu())));
  hog_ = stage_.start_hog(last_cpu());
}

int PairTest::serve(Argv argv) {
  return stage_.start(&pair_->server, std::move(argv), 0);
}

int PairTest::talk(Argv argv) {
  return stage_.start(&pair_->client, std::move(argv), 0);
}

}  // namespace pkprof::live
