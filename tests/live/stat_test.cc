// SPDX-License-Identifier: Apache-2.0
// stat against the kernel's own accounts: /proc/stat, schedstat.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "scenario.h"
#include "testdisk.h"

namespace pkprof::live {
namespace {

class StatTest : public testing::Test {
 protected:
  void SetUp() override {
    skip_unless_able();
    if (IsSkipped()) return;
    PKPROF_NEEDS("measuring all of the time");
  }

  static Report stat_of(Argv arguments) {
    arguments.insert(arguments.begin(), {"stat", "--json"});
    const Finished done = run_pkprof(arguments);
    EXPECT_EQ(done.status, 0) << done.err;
    Report report = Report::parse(done.out);
    expect_ledger_sums(report);
    return report;
  }

  Turn turn_;
  Stage stage_;
};

// Of all CPUs, in nanoseconds; a tick is some milliseconds.
struct ProcStat {
  double user = 0, system = 0, idle = 0, steal = 0;

  static ProcStat read(std::istream& file) {
    std::string line, cpu;
    std::getline(file, line);
    std::istringstream in(line);
    double user = 0, nice = 0, system = 0, idle = 0, iowait = 0, irq = 0, softirq = 0, steal = 0;
    in >> cpu >> user >> nice >> system >> idle >> iowait >> irq >> softirq >> steal;
    const double tick = 1e9 / static_cast<double>(sysconf(_SC_CLK_TCK));
    return {(user + nice) * tick, (system + irq + softirq) * tick, (idle + iowait) * tick,
            steal * tick};
  }
  ProcStat operator-(const ProcStat& o) const {
    return {user - o.user, system - o.system, idle - o.idle, steal - o.steal};
  }
};

double on_cpu_ns(const Report& report, int pid) {
  return static_cast<double>(report.sum([&](const Flow& f) { return f.ran_on == pid; }));
}

struct Load {
  const char* name;
  std::vector<int> hogs;  // on which CPUs
  bool sockets;           // system calls and RCU, on the first
};

void PrintTo(const Load& load, std::ostream* out) {
  *out << load.name;
}

class StatLoads : public StatTest, public testing::WithParamInterface<Load> {};

INSTANTIATE_TEST_SUITE_P(Loads, StatLoads,
                         testing::Values(Load{"Idle", {}, false}, Load{"Full", {0, 1}, true}),
                         [](const auto& load) { return std::string(load.param.name); });

// What a command reads at its start and its end, so that pkprof's own start and end, which are
// busy, are in neither.
TEST_P(StatLoads, TimeAgreesWithProcStat) {
  for (const int cpu : GetParam().hogs) stage_.start_hog(cpu);
  if (GetParam().sockets) stage_.start(nullptr, {"pk_defer", "sockets"}, 0);
  TempDir dir;
  const std::string read = "grep -m1 ^cpu /proc/stat >> " + dir.file("seen") + "; ";
  const Report report =
      stat_of({"-a", "--", "sh", "-c", read + "sleep " + (in_guest() ? "20; " : "6; ") + read});
  std::ifstream seen(dir.file("seen"));
  const ProcStat before = ProcStat::read(seen);
  const ProcStat passed = ProcStat::read(seen) - before;
  const double by_proc = passed.user + passed.system + passed.idle + passed.steal;
  ASSERT_GT(by_proc, 0);
  const auto all = static_cast<double>(report.cpu_ns);
  const auto share = [&](double ns) { return ns / all; };
  const double stolen = passed.steal / by_proc;
  // An emulated CPU is slow at going idle, too, which is idle time here and the system's there.
  const double exact = (in_guest() ? 0.03 : 0.01) + stolen;
  // Where the kernel counts ticks, what interrupts take of idle CPUs is idle time to it.
  const double idle = share(static_cast<double>(report.idle_ns));
  const double interrupted = share(static_cast<double>(
      report.sum([](const Flow& f) { return f.ran_on == kIdle && f.served != kIdle; })));
  EXPECT_GE(passed.idle / by_proc, idle - exact);
  EXPECT_LE(passed.idle / by_proc, idle + interrupted + exact);
  uint64_t user_ns = 0;
  for (const Process& p : report.processes) user_ns += p.user_ns;
  // What interrupts take of user code is user time to it, too: those of the sampling clock are some
  // hundredths of a CPU on a virtual machine.
  const double interrupting = share(static_cast<double>(report.sum([](const Flow& f) {
    return f.ran_on != kIdle && (f.source.starts_with("irq:") || f.source.starts_with("ipi:"));
  })));
  // The kernel's own figure is of ticks, each of which counts as one or the other: of n of them
  // three standard deviations.
  const double ticks = std::max((passed.user + passed.system) * 250 / 1e9, 1.0);
  const double by_chance = 1.5 / std::sqrt(ticks) * (passed.user + passed.system) / by_proc;
  RecordProperty("user_by_stat", std::to_string(share(static_cast<double>(user_ns))));
  RecordProperty("user_by_proc", std::to_string(passed.user / by_proc));
  RecordProperty("idle_by_stat", std::to_string(share(static_cast<double>(report.idle_ns))));
  RecordProperty("idle_by_proc", std::to_string(passed.idle / by_proc));
  const double user = share(static_cast<double>(user_ns));
  EXPECT_GE(passed.user / by_proc, user - exact - by_chance);
  EXPECT_LE(passed.user / by_proc, user + interrupting + exact + by_chance);
  EXPECT_NEAR(share(static_cast<double>(report.steal_ns)), stolen, 0.01);
}

// Shares of the time, since what is measured begins and ends outside of what the shell reads. Two
// share a CPU; the other one has a process that is in the kernel mostly. None is woken by
// interrupts: the scheduler's account of those is not what they had (ATTRIBUTION.md). Two that
// share a CPU have it for milliseconds by turns, and accounts of who is on a CPU are as late: of
// some seconds that is more than what is judged.
TEST_F(StatTest, TimeOnTheCpuAgreesWithTheScheduler) {
  const int hog = stage_.start_hog(last_cpu());
  const int other = stage_.start_hog(last_cpu());
  const int caller = stage_.start(nullptr, {"pk_syscall_pie", "1000000000000"}, 0, false);
  const std::vector<int> pids = {hog, other, caller};
  TempDir dir;
  std::string read = "read up _ < /proc/uptime; ";
  std::string show = "echo $up";
  for (const int pid : pids) {
    const std::string number = std::to_string(pid);
    read.append("read ran").append(number).append(" _ _ < /proc/").append(number);
    read.append("/schedstat; ");
    show.append(" $ran").append(number);
  }
  read += show + " >> " + dir.file("seen") + "; ";
  const Report report =
      stat_of({"-a", "--", "sh", "-c", read + "sleep " + (in_guest() ? "20; " : "12; ") + read});
  std::ifstream seen(dir.file("seen"));
  const auto next = [&] {
    std::vector<double> numbers(1 + pids.size());
    for (double& number : numbers) seen >> number;
    return numbers;
  };
  const std::vector<double> before = next();
  const std::vector<double> after = next();
  const double passed = after[0] - before[0];
  ASSERT_GT(passed, 0);
  const auto all = static_cast<double>(report.duration_ns);
  const double stolen = static_cast<double>(report.steal_ns) / all;
  // The guest's clock of ticks is late when its host has other work.
  const double exact = in_guest() ? 0.03 : 0.01;
  for (size_t i = 0; i < pids.size(); ++i) {
    const double by_scheduler = (after[1 + i] - before[1 + i]) / 1e9 / passed;
    EXPECT_NEAR(on_cpu_ns(report, pids[i]) / all, by_scheduler, exact * by_scheduler + stolen) << i;
  }
}

// A loop of system calls, and one of none.
TEST_F(StatTest, UserAndKernelAreToldApart) {
  const int hog = stage_.start_hog(last_cpu());
  const int caller = stage_.start(nullptr, {"pk_defer", "sockets"}, 0);
  const Report report = stat_of({"-d", in_guest() ? "10" : "3"});
  const Process* h = report.find(hog);
  const Process* c = report.find(caller);
  ASSERT_TRUE(h && c);
  // Entering and leaving an interrupt takes an emulated CPU long.
  EXPECT_LT(h->own_ns, h->user_ns / (in_guest() ? 2 : 50));
  EXPECT_GT(c->own_ns, c->user_ns);
}

TEST_F(StatTest, IntervalsAreObjectsOfTheirOwn) {
  stage_.start_hog(last_cpu());
  const Finished done = in_guest() ? run_pkprof({"stat", "--json", "--interval", "4", "-d", "16"})
                                   : run_pkprof({"stat", "--json", "--interval", "0.5", "-d", "2"});
  EXPECT_EQ(done.status, 0) << done.err;
  std::istringstream lines(done.out);
  uint64_t all = 0;
  int objects = 0;
  for (std::string line; std::getline(lines, line);) {
    const Report report = Report::parse(line);
    expect_ledger_sums(report);
    all += report.duration_ns;
    ++objects;
  }
  EXPECT_GE(objects, 3);
  EXPECT_NEAR(static_cast<double>(all) / 1e9, in_guest() ? 16 : 2, in_guest() ? 2 : 0.1);
}

// It came after the start, and is gone before anyone looks into /proc.
TEST_F(StatTest, ThePathOfAShortProgramIsKnown) {
  const std::string hog = testnet::sibling("pk_hog");
  const Report report = stat_of({"-d", in_guest() ? "9" : "3", "--", "sh", "-c",
                                 "sleep 0.5; " + hog + " --seconds 0.02 >/dev/null; sleep 0.1"});
  EXPECT_EQ(report.pids_running("pk_hog").size(), 1U) << report.text;
}

// What is measured is divided by samples of CPU time alone, whatever else is recorded; and bytes
// stay bytes.
TEST_F(StatTest, OtherResourcesLeaveTheLedgerAsItIs) {
  auto disk = testnet::Disk::create({.direct = true});
  if (!disk) GTEST_SKIP() << disk.error().message;
  stage_.start_hog(last_cpu());
  TempDir dir;
  const std::string write = testnet::sibling("pk_disk") + " --mode direct --rate 16 --seconds " +
                            (in_guest() ? "9" : "3") + " --file " + disk->path("file") + " >" +
                            dir.file("written");
  const Report report = stat_of({"-a", "--resource", "all", "--", "sh", "-c", write});
  EXPECT_LT(report.unclaimed.at("unsampled"), report.cpu_ns / 20);
  std::ifstream file(dir.file("written"));
  std::string line;
  while (std::getline(file, line) && !line.starts_with("{")) continue;
  const auto said = nlohmann::json::parse(line);
  const auto parsed = nlohmann::json::parse(report.text);
  const auto row_of = [&](const nlohmann::json& rows) {
    for (const auto& row : rows)
      if (row["who"].is_object() && row["who"]["pid"] == said["pid"]) return row;
    return nlohmann::json();
  };
  const auto used = row_of(parsed["resources"]["disk"]["rows"]);
  ASSERT_TRUE(used.is_object()) << report.text;
  double written = 0;  // the disk is on a file, which lies on another disk
  for (const auto& [device, ways] : used["devices"].items())
    if (device.starts_with("loop")) written += ways["write"]["bytes"].get<double>();
  const auto truth = said["bytes"].get<double>();
  EXPECT_NEAR(written, truth, 0.05 * truth);
  const auto waited = row_of(parsed["waits"]);
  ASSERT_TRUE(waited.is_object()) << report.text;
  EXPECT_GT(waited["kinds"]["disk"].get<uint64_t>(), 1'000'000U) << waited.dump();
  EXPECT_TRUE(parsed["resources"].contains("memory"));
}

TEST_F(StatTest, ResourcesAreTablesBelowTheLedger) {
  const Finished done =
      run_pkprof({"stat", "--resource", "memory,wait", "-n", "3", "-d", in_guest() ? "5" : "1"});
  EXPECT_EQ(done.status, 0) << done.err;
  const size_t ledger = done.out.find("For whom was the kernel working?");
  const size_t waits = done.out.find("What did threads wait for");
  const size_t memory = done.out.find("For whom was memory taken?");
  EXPECT_LT(ledger, waits);
  EXPECT_LT(waits, memory);
  EXPECT_NE(memory, std::string::npos) << done.out;
  EXPECT_EQ(done.out.find("For whom did the disks work?"), std::string::npos);
}

TEST_F(StatTest, ACommandsStatusIsPkprofs) {
  EXPECT_EQ(run_pkprof({"stat", "--", "sh", "-c", "exit 7"}).status, 7);
  EXPECT_EQ(run_pkprof({"stat", "--interval", "0"}).status, 2);
}

}  // namespace
}  // namespace pkprof::live
