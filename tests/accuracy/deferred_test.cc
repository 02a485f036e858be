// SPDX-License-Identifier: Apache-2.0
// Work that a process gives the kernel to do later: to a work queue, a timer, RCU.
#include <cstdio>
#include <functional>
#include <set>
#include <string>

#include "table.h"

namespace pkprof::accuracy {
namespace {

using live::Flow;

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
  const int writer = defer({"terminal"});
  measure("work queue (a terminal)",
          {{writer}, hog_, {}, [](const Flow& f) { return f.source.starts_with("work:"); }},
          {95, 5}, {.seconds = 6, .min_samples = 500});
}

// Looking for what is due is the kernel's own; the timers' functions are for who waits.
TEST_F(DeferredTest, Timers) {
  const int waiter = defer({"timeouts", "--threads", "400"});
  measure("timers of sleepers",
          {{waiter},
           hog_,
           {},
           [](const Flow& f) { return f.source == "softirq:TIMER" && f.served != live::kKernel; }},
          {95, 5}, {.min_samples = 200});
}

TEST_F(DeferredTest, Rcu) {
  const int closer = defer({"sockets"});
  measure("RCU (sockets closed)",
          {{closer},
           hog_,
           {},
           [](const Flow& f) { return f.source == "softirq:RCU" && f.served != live::kKernel; }},
          {85, 15}, {.min_samples = 200});
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
  how.min_samples = 50;  // exact time, no samples: a sample's worth of it each
  how.counted = [](const live::Report& r) { return r.sum(timers_interrupts(r)); };
  return live::observe(how);
}

TEST_F(DeferredTest, TimersInInterrupts) {
  const int clock = defer_here({"ticks", "--hz", "10000"});
  const live::Report report = observe_timers();
  note("interrupts of a timer", report,
       {{clock}, hog_, {}, timers_interrupts(report, {clock, hog_})}, {95, 5});
}

TEST_F(DeferredTest, SleepersInInterrupts) {
  const int sleeper = defer_here({"naps", "--threads", "8"});
  const live::Report report = observe_timers();
  note("interrupts that wake sleepers", report,
       {{sleeper}, hog_, {}, timers_interrupts(report, {sleeper, hog_})}, {95, 5});
}

TEST_F(DeferredTest, TwoTimersAtThreeToOne) {
  const int often = defer_here({"ticks", "--hz", "9000"});
  const int seldom = defer_here({"ticks", "--hz", "3000"});
  const live::Report report = observe_timers();
  const auto counts = timers_interrupts(report, {often, seldom, hog_});
  const auto of = [&](int pid) {
    return report.sum([&](const Flow& f) { return counts(f) && f.served == pid; });
  };
  const double ratio = static_cast<double>(of(often)) / static_cast<double>(of(seldom));
  note("interrupts of two timers, 3:1", report, {{often, seldom}, hog_, {}, counts}, {95, 5});
  char text[32];
  std::snprintf(text, sizeof text, "ratio %.2f:1", ratio);
  // Shown, not judged: 3:1 are the ticks. One that comes together with another takes less time.
  remark(text);
}

TEST_F(DeferredTest, BarriersOnOtherCpus) {
  PKPROF_NEEDS("interrupts: who has other CPUs call functions");
  stage_.stop(hog_);
  hog_ = stage_.start(nullptr, {"pk_hog", "--barriers"}, live::last_cpu());
  const int asking = defer({"barriers"});
  const auto calls = [](const Flow& f) { return f.source.starts_with("ipi:ipi_mb"); };
  measure("function calls on other CPUs", {{asking}, hog_, {}, calls}, {95, 5},
          {.min_samples = 100});
}

}  // namespace
}  // namespace pkprof::accuracy
