// SPDX-License-Identifier: Apache-2.0
// Work that a process gives the kernel to do later: to a work queue, a timer, RCU.
#include <chrono>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <thread>

#include "table.h"

namespace pkprof::accuracy {
namespace {

using live::Flow;
using live::must;

// Operations a second; an emulated CPU is kept busy by less.
std::string rate(int on_a_machine) {
  return std::to_string(live::in_guest() ? on_a_machine / 20 : on_a_machine);
}

// Of RCU's work, which is charged by the samples of whoever used the kernel on the CPU: an emulated
// one has few.
Limits rcu_limits() {
  return {85, 15, live::in_guest() ? 5 : live::bystander_limit()};
}

class DeferredTest : public testing::Test {
 protected:
  void SetUp() override {
    live::skip_unless_able();
    if (IsSkipped()) return;
    hog_ = stage_.start_hog(live::last_cpu());
  }
  int defer(testnet::Argv more, int cpu = 0) {
    testnet::Argv argv = {"pk_defer"};
    argv.insert(argv.end(), more.begin(), more.end());
    return stage_.start(nullptr, argv, cpu);
  }
  // On the bystander's CPU, where a timer's interrupts come that was started there.
  int defer_here(const testnet::Argv& more) { return defer(more, live::last_cpu()); }

  live::Turn turn_;
  live::Stage stage_;
  int hog_ = 0;
};

TEST_F(DeferredTest, WorkQueue) {
  const int often = defer({"terminal", "--threads", "3"});
  const int seldom = defer({"terminal"});
  const auto counts = [](const Flow& f) { return f.source == "work:flush_to_ldisc"; };
  const Observed seen = measure("work queue, 3:1 (terminals)", {{often, seldom}, hog_, {}, counts},
                                {95, 5}, {.seconds = 5, .min_samples = 1000});
  expect_ratio(seen.report, counts, often, seldom, stage_.ratio(often, seldom));
}

// Looking for what is due is the kernel's own; the timers' functions are for who waits.
TEST_F(DeferredTest, Timers) {
  const bool guest = live::in_guest();
  const int many = defer({"timeouts", "--threads", guest ? "90" : "300"});
  const int few = defer({"timeouts", "--threads", guest ? "30" : "100"});
  const auto counts = [](const Flow& f) {
    return f.source == "softirq:TIMER" && f.served != live::kKernel;
  };
  const Observed seen = measure("timers of sleepers, 3:1", {{many, few}, hog_, {}, counts}, {95, 5},
                                {.seconds = 8, .min_samples = 800});
  expect_ratio(seen.report, counts, many, few, stage_.ratio(many, few));
}

// Of a kernel that was started with rcu_nocbs.
bool callbacks_are_offloaded() {
  return must(testnet::run_command({"sh", "-c", "cat /proc/[0-9]*/comm"})).find("rcuo") !=
         std::string::npos;
}

TEST_F(DeferredTest, Rcu) {
  if (callbacks_are_offloaded()) GTEST_SKIP() << "a kernel that was started with rcu_nocbs";
  const int often = defer({"sockets", "--rate", rate(30000), "--threads", "3"});
  const int seldom = defer({"sockets", "--rate", rate(30000)});
  const auto counts = [](const Flow& f) {
    return f.source == "softirq:RCU" && f.served != live::kKernel;
  };
  const Observed seen = measure("RCU, 3:1 (sockets closed)", {{often, seldom}, hog_, {}, counts},
                                rcu_limits(), {.seconds = 11, .min_samples = 600});
  expect_ratio(seen.report, counts, often, seldom, stage_.ratio(often, seldom));
}

// With rcu_nocbs, threads free what was put off on any CPU.
TEST_F(DeferredTest, RcuOffloaded) {
  if (!callbacks_are_offloaded()) GTEST_SKIP() << "a kernel that was not started with rcu_nocbs";
  const int closer = defer({"sockets"});
  measure("RCU, offloaded",
          {{closer},
           hog_,
           {},
           [](const Flow& f) {
             return f.source.starts_with("kthread:rcuo") && f.served != live::kKernel;
           }},
          rcu_limits(), {.min_samples = 200});
}

// Hard interrupts of timers that are for processes; the clock is the kernel's, and sampling
// pkprof's.
std::function<bool(const Flow&)> timers_interrupts(const live::Report& report) {
  return [sampling = report.pids_of("pkprof")](const Flow& f) {
    return f.source == "irq:local_timer" && f.served != live::kKernel &&
           !sampling.contains(f.served);
  };
}

// The same without the timers of processes that the scenario has no part in: each machine has some.
std::function<bool(const Flow&)> timers_interrupts(const live::Report& report,
                                                   const std::set<int>& parties) {
  return [all = timers_interrupts(report), parties](const Flow& f) {
    return all(f) && (f.served < 0 || parties.contains(f.served));
  };
}

live::Report observe_timers() {
  live::Observe how;
  how.seconds = 3;
  how.frequency_hz = 1997;
  how.min_samples = 50;  // exact time, no samples: a sample's worth of it each
  how.counted = [](const live::Report& r) { return r.sum(timers_interrupts(r)); };
  return live::observe(how);
}

class TimersTest : public DeferredTest {
 protected:
  void measure_timers(const std::string& scenario, const std::string& kind) {
    const int often = defer_here({kind, "--hz", rate(3000), "--threads", "3"});
    const int seldom = defer_here({kind, "--hz", rate(3021)});  // in step with none of them
    const live::Report report = observe_timers();
    const auto counts = timers_interrupts(report, {often, seldom, hog_});
    note(scenario, report, {{often, seldom}, hog_, {}, counts}, {95, 5});
    expect_ratio(report, counts, often, seldom, stage_.ratio(often, seldom), Time::measured);
  }
};

TEST_F(TimersTest, InInterrupts) {
  measure_timers("interrupts of timers (timerfd), 3:1", "ticks");
}

TEST_F(TimersTest, OfPosix) {
  measure_timers("interrupts of timers (POSIX), 3:1", "alarms");
}

TEST_F(DeferredTest, SleepersInInterrupts) {
  // Few: beside a dozen, which wake all the time, Linux 6.18 has let a disk's kworker wait for a
  // minute, and whoever waited for the disk.
  const int many = defer_here({"naps", "--threads", "3"});
  const int few = defer_here({"naps"});
  const live::Report report = observe_timers();
  const auto counts = timers_interrupts(report, {many, few, hog_});
  note("interrupts that wake sleepers, 3:1", report, {{many, few}, hog_, {}, counts}, {95, 5});
  expect_ratio(report, counts, many, few, stage_.ratio(many, few), Time::measured);
}

TEST_F(DeferredTest, BarriersOnOtherCpus) {
  PKPROF_NEEDS("interrupts: who has other CPUs call functions");
  stage_.stop(hog_);
  hog_ = stage_.start(nullptr, {"pk_hog", "--barriers"}, live::last_cpu());
  const int often = defer({"barriers", "--rate", rate(10000), "--threads", "3"});
  const int seldom = defer({"barriers", "--rate", rate(10000)});
  // Linux 6.1 does not tell which function is called.
  const auto calls = [](const Flow& f) {
    return f.source.starts_with("ipi:ipi_mb") || f.source == "ipi:call_function";
  };
  // Their time is exact: an emulated CPU's few are enough.
  const Observed seen =
      measure("calls on other CPUs, 3:1", {{often, seldom}, hog_, {}, calls}, {95, 5},
              {.seconds = 4, .min_samples = live::in_guest() ? 48U : 100U, .frequency_hz = 1997});
  expect_ratio(seen.report, calls, often, seldom, stage_.ratio(often, seldom), Time::measured);
}

// Three processes in one memory: those that take pages away there interrupt the one that computes.
TEST_F(DeferredTest, Shootdowns) {
  PKPROF_NEEDS("interrupts: who has other CPUs call functions");
  stage_.stop(hog_);
  const int often = defer({"shootdowns", "--rate", rate(10000), "--threads", "3", "--beside",
                           std::to_string(live::last_cpu())});
  std::map<std::string, int> named;
  for (const int pid : live::with_children(often, 2))
    named[live::read_file("/proc/" + std::to_string(pid) + "/comm")] = pid;
  const int seldom = named["second\n"];
  const int beside = named["beside\n"];
  ASSERT_TRUE(seldom && beside);
  const uint64_t before = live::interrupts_had("TLB");
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  if (live::interrupts_had("TLB") == before) GTEST_SKIP() << "the host flushes TLBs by itself";
  // Linux 6.1 does not tell which function is called.
  const auto calls = [](const Flow& f) {
    return f.source == "ipi:flush_tlb_func" || f.source == "ipi:call_function";
  };
  const Observed seen =
      measure("calls that flush TLBs, 3:1", {{often, seldom}, beside, {}, calls}, {95, 5},
              {.seconds = 4, .min_samples = live::in_guest() ? 24U : 50U, .frequency_hz = 1997});
  expect_ratio(seen.report, calls, often, seldom, 3, Time::measured);
}

}  // namespace
}  // namespace pkprof::accuracy
