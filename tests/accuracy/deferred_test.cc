// SPDX-License-Identifier: Apache-2.0
// Work that a process gives the kernel to do later: to a work queue, a timer, RCU.
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
  int defer(testnet::Argv more) {
    testnet::Argv argv = {"pk_defer"};
    argv.insert(argv.end(), more.begin(), more.end());
    return stage_.start(nullptr, argv, 0);
  }

  live::Turn turn_;
  live::Stage stage_;
  int hog_ = 0;
};

TEST_F(DeferredTest, WorkQueue) {
  const int writer = defer({"terminal"});
  measure("work queue (a terminal)",
          {{writer}, hog_, {}, [](const Flow& f) { return f.source.starts_with("work:"); }},
          {95, 5});
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

}  // namespace
}  // namespace pkprof::accuracy
