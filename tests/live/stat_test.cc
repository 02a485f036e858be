// SPDX-License-Identifier: Apache-2.0
// stat against the kernel's own accounts: /proc/stat, schedstat.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "scenario.h"

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

  static ProcStat read() {
    std::ifstream in("/proc/stat");
    std::string cpu;
    double user, nice, system, idle, iowait, irq, softirq, steal;
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

TEST_F(StatTest, IdleAndBusyTimeAgreeWithProcStat) {
  const double seconds = in_guest() ? 20 : 5;
  stage_.start_hog(0);
  const ProcStat before = ProcStat::read();
  const Report report = stat_of({"-d", std::to_string(seconds)});
  const ProcStat passed = ProcStat::read() - before;
  // pkprof's own start and end are in one and not in the other, and are busy: shares of what each
  // saw would differ by them. The idle CPU's share of the recording is what can be compared.
  const double idle = static_cast<double>(report.idle_ns);
  const double all = static_cast<double>(report.cpu_ns);
  const double outside = passed.idle + passed.user + passed.system + passed.steal - all;
  RecordProperty("idle_by_stat", std::to_string(idle / 1e9));
  RecordProperty("idle_by_proc", std::to_string(passed.idle / 1e9));
  EXPECT_LE(idle, passed.idle + 0.01 * all);
  EXPECT_GE(idle, passed.idle - outside - 0.01 * all);
}

TEST_F(StatTest, TimeOnTheCpuAgreesWithTheScheduler) {
  const int hog = stage_.start_hog(last_cpu());
  const int other = stage_.start_hog(last_cpu());
  TempDir dir;
  // The shell reads the scheduler's account inside the measured time.
  const std::string script = "read before _ _ < /proc/" + std::to_string(hog) +
                             "/schedstat; sleep " + (in_guest() ? "20" : "5") +
                             "; read after _ _ < /proc/" + std::to_string(hog) +
                             "/schedstat; echo $((after - before)) > " + dir.file("ran");
  const Report report = stat_of({"-a", "--", "sh", "-c", script});
  double ran = 0;
  std::ifstream(dir.file("ran")) >> ran;
  const double stolen_by_host =
      static_cast<double>(report.sum([](const Flow& f) { return f.source == "steal"; }));
  const double measured = on_cpu_ns(report, hog);
  EXPECT_NEAR(measured / ran, 1, 0.01 + stolen_by_host / ran) << measured << " of " << ran;
  // The other has the other half.
  EXPECT_NEAR(on_cpu_ns(report, other) / measured, 1, 0.1);
}

// A loop of system calls, and one of none.
TEST_F(StatTest, UserAndKernelAreToldApart) {
  const int hog = stage_.start_hog(last_cpu());
  const int caller = stage_.start(nullptr, {"pk_defer", "sockets"}, 0);
  const Report report = stat_of({"-d", in_guest() ? "10" : "3"});
  const Process* h = report.find(hog);
  const Process* c = report.find(caller);
  ASSERT_TRUE(h && c);
  EXPECT_LT(h->own_ns, h->user_ns / 50);
  EXPECT_GT(c->own_ns, c->user_ns);
}

TEST_F(StatTest, IntervalsAreObjectsOfTheirOwn) {
  stage_.start_hog(last_cpu());
  const Finished done = run_pkprof({"stat", "--json", "--interval", "0.5", "-d", "2"});
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
  EXPECT_NEAR(static_cast<double>(all) / 1e9, 2, in_guest() ? 0.5 : 0.1);
}

TEST_F(StatTest, ACommandsStatusIsPkprofs) {
  EXPECT_EQ(run_pkprof({"stat", "--", "sh", "-c", "exit 7"}).status, 7);
  EXPECT_EQ(run_pkprof({"stat", "--interval", "0"}).status, 2);
}

}  // namespace
}  // namespace pkprof::live
