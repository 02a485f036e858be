// SPDX-License-Identifier: Apache-2.0
// CPUs that go offline and come back while they are recorded. In guests alone: a CPU that is gone
// is gone for everyone on the machine.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "scenario.h"

namespace pkprof::live {
namespace {

// Where a CPU is taken offline and put back.
std::string switch_of(int cpu) {
  return "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/online";
}

class HotplugTest : public testing::Test {
 protected:
  void SetUp() override {
    skip_unless_able();
    if (IsSkipped()) return;
    if (!in_guest()) GTEST_SKIP() << "takes a CPU offline: for guests alone";
    cpu_ = last_cpu();
    file_ = switch_of(cpu_);
    if (access(file_.c_str(), W_OK) != 0)
      GTEST_SKIP() << "this kernel lets no CPU be taken offline";
  }
  void TearDown() override {
    if (IsSkipped()) return;
    write_file(file_, "1");
    if (std::filesystem::exists("/sys/fs/bpf/pkprof")) run_pkprof({"stop", "-o", "/dev/null"});
  }

  // For a shell.
  [[nodiscard]] std::string turn(const char* how) const {
    return std::string("echo ") + how + " > " + file_ + "; ";
  }
  [[nodiscard]] std::string burn(const char* seconds) const {
    return "taskset -c " + std::to_string(cpu_) + " " + testnet::sibling("pk_hog") + " --seconds " +
           seconds + " > /dev/null; ";
  }
  // read_report() would not have so much unsampled.
  [[nodiscard]] static Report report_of(const std::string& profile) {
    const Finished shown = run_pkprof({"report", profile, "--json"});
    EXPECT_EQ(shown.status, 0) << shown.err;
    return checked(shown.out);
  }
  static Report checked(const std::string& json) {
    Report report = Report::parse(json);
    expect_adds_up(report);
    EXPECT_EQ(report.cpus, 2);
    return report;
  }
  [[nodiscard]] Report record(const std::string& script, const Argv& how = {}) const {
    Argv argv = {"record", "-a", "-o", dir_.file("profile")};
    argv.insert(argv.end(), how.begin(), how.end());
    argv.insert(argv.end(), {"--", "sh", "-c", script});
    const Finished done = run_pkprof(argv);
    EXPECT_EQ(done.status, 0) << done.err;
    return report_of(dir_.file("profile"));
  }
  void expect_said(const Report& report, const std::string& what) const {
    const std::string whole = "CPU " + std::to_string(cpu_) + " " + what;
    EXPECT_TRUE(std::ranges::any_of(report.degraded,
                                    [&](const std::string& s) { return s.find(whole) == 0; }))
        << whole << "\n"
        << testing::PrintToString(report.degraded);
  }
  static void expect_seconds(uint64_t ns, double least, double most) {
    EXPECT_GE(static_cast<double>(ns) / 1e9, least);
    EXPECT_LE(static_cast<double>(ns) / 1e9, most);
  }
  static uint64_t hogs_ns(const Report& report) {
    uint64_t ns = 0;
    for (const int pid : report.pids_of("pk_hog")) ns += report.charged_to(pid);
    return ns;
  }

  // What a drain is late, and a shell: its clock is opened anew a second after a CPU is back.
  static constexpr double late = 3;

  Turn turn_;
  TempDir dir_;
  int cpu_ = 0;
  std::string file_;
};

TEST_F(HotplugTest, ACpuThatComesBackIsSampledAgain) {
  const Report report = record("sleep 1; " + turn("0") + "sleep 3; " + turn("1") + burn("8"));
  expect_said(report, "was offline for a while: ");
  expect_seconds(report.unclaimed_ns("unsampled"), 3, 3 + late);
  expect_seconds(hogs_ns(report), 8 - late, 8.5);
}

// So is one that was not there at the start: up to then it is unsampled.
TEST_F(HotplugTest, ACpuThatComesLaterIsTakenIn) {
  write_file(file_, "0");
  const Report report = record("sleep 3; " + turn("1") + burn("8"));
  expect_said(report, "was offline for a while: ");
  expect_seconds(report.unclaimed_ns("unsampled"), 3, 3 + late);
  expect_seconds(hogs_ns(report), 8 - late, 8.5);
}

// Nothing is watched between two windows, so it is gone in some and not in others.
TEST_F(HotplugTest, InWindows) {
  const Report report = record("sleep 1; " + turn("0") + "sleep 6; " + turn("1") + burn("40"),
                               {"--budget", "30", "-F", "3989"});
  EXPECT_LT(report.watched, 1);
  expect_said(report, "was offline for a while: ");
  expect_seconds(hogs_ns(report), 1, 45);
}

// It goes while nothing is recorded, and comes back then or later.
TEST_F(HotplugTest, InAPause) {
  const std::string fifo = dir_.file("commands");
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  const Fd held(open(fifo.c_str(), O_RDWR | O_CLOEXEC));
  const auto say = [&](const char* word) {
    return std::string("echo ") + word + " > " + fifo + "; ";
  };
  const std::string away = say("disable") + "sleep 1; " + turn("0") + "sleep 2; ";
  const Report report = record(burn("3") + away + turn("1") + say("enable") + burn("5") + away +
                                   say("enable") + "sleep 3; " + turn("1") + burn("5"),
                               {"--control", "fifo:" + fifo});
  expect_said(report, "was offline for a while: ");
  expect_seconds(hogs_ns(report), 13 - 2 * late, 13.5);
}

// Its turns before and after, and none that lasts from before to after.
TEST_F(HotplugTest, WhatIsMeasuredOfIt) {
  PKPROF_NEEDS("measuring all of the time");
  const Finished done = run_pkprof({"stat", "--json", "-a", "--", "sh", "-c",
                                    burn("3") + turn("0") + "sleep 3; " + turn("1") + burn("8")});
  EXPECT_EQ(done.status, 0) << done.err;
  const Report report = checked(done.out);
  expect_said(report, "was offline for a while: ");
  expect_seconds(report.unclaimed_ns("unsampled"), 3, 3 + late);
  expect_seconds(hogs_ns(report), 11 - late, 12);
}

// At intervals each has what was in it.
TEST_F(HotplugTest, Intervals) {
  PKPROF_NEEDS("measuring all of the time");
  const Finished done = run_pkprof({"stat", "--json", "--interval", "1", "-a", "--", "sh", "-c",
                                    "sleep 2; " + turn("0") + "sleep 4; " + turn("1") + burn("5")});
  EXPECT_EQ(done.status, 0) << done.err;
  std::istringstream lines(done.out);
  size_t with_it = 0;
  size_t without_it = 0;
  for (std::string line; std::getline(lines, line);) {
    const Report report = Report::parse(line);
    expect_adds_up(report);
    ++(report.cpus == 1 ? without_it : with_it);
    if (report.cpus == 1) expect_said(report, "went offline before this, and is left out");
  }
  EXPECT_GE(with_it, 4);
  EXPECT_GE(without_it, 1);
}

// Nobody is there to open its clock anew.
TEST_F(HotplugTest, HeldRecordingsSayWhatTheyMiss) {
  const auto held = [&](const std::string& before, const std::string& meanwhile) {
    EXPECT_EQ(run_program({"sh", "-c", before}).status, 0);
    const Finished started = run_pkprof({"start"});
    EXPECT_EQ(started.status, 0) << started.err;
    EXPECT_EQ(run_program({"sh", "-c", meanwhile}).status, 0);
    const Finished stopped = run_pkprof({"stop", "-o", dir_.file("held")});
    EXPECT_EQ(stopped.status, 0) << stopped.err;
    Report report = Report::parse(run_pkprof({"report", dir_.file("held"), "--json"}).out);
    expect_adds_up(report);
    return report;
  };
  const Report went = held("true", "sleep 1; " + turn("0") + "sleep 2; " + turn("1") + burn("3"));
  EXPECT_EQ(went.cpus, 2);
  expect_said(went, "went offline ");
  expect_seconds(went.unclaimed_ns("unsampled"), 5, 5 + 2 * late);
  expect_seconds(hogs_ns(went), 0, 0.1);

  const Report came = held(turn("0"), "sleep 1; " + turn("1") + burn("3"));
  EXPECT_EQ(came.cpus, 1);
  expect_said(came, "was offline at the start, came later, and is left out");
  expect_seconds(came.unclaimed_ns("unsampled"), 0, 0.2);
  expect_seconds(hogs_ns(came), 0, 0.1);  // how it gets there
}

}  // namespace
}  // namespace pkprof::live
