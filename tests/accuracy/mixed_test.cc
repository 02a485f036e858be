// SPDX-License-Identifier: Apache-2.0
// Everything at once, as on a machine in use: the network, a disk, timers, processes that come and
// go. What nobody claims of all the machine's time is what a reader is left alone with.
#include <cstdio>
#include <optional>

#include "table.h"
#include "testdisk.h"

namespace pkprof::accuracy {
namespace {

using live::Flow;
using testnet::Pair;

bool is_asynchronous(const Flow& f) {
  for (const char* begins : {"softirq:", "work:", "irq:", "ipi:"})
    if (f.source.starts_with(begins)) return true;
  return false;
}

class MixedTest : public live::PairTest {
 protected:
  void SetUp() override {
    live::PairTest::SetUp();
    if (IsSkipped()) return;
    auto disk = testnet::Disk::create({});
    if (!disk) GTEST_SKIP() << disk.error().message;
    disk_.emplace(std::move(*disk));
    // All of it in a twentieth of what a real CPU does. No CPU is asked for more than it has: where
    // one is, whoever waits for RCU, as a recording does that changes its tables, waits for long.
    const auto rate = [guest = live::in_guest()](int on_host) {
      return std::to_string(guest ? on_host / 20 : on_host);
    };
    ends_ = {
        serve({"pk_udp", "recv", "--port", "7001", "--mode", "epoll"}),
        talk({"pk_udp", "send", "--to", Pair::kServer4, "--port", "7001", "--pps", rate(40'000)}),
        serve({"pk_tcp", "serve", "--port", "7002", "--mode", "echo"}),
        talk({"pk_tcp", "rr", "--to", Pair::kServer4, "--port", "7002", "--rate", rate(5'000)}),
        stage_.start(
            nullptr,
            {"pk_disk", "--file", disk_->path("file"), "--rate", rate(60), "--sync-mb", "16"}, 0),
        stage_.start(nullptr, {"pk_defer", "naps", "--threads", rate(20)}),
        stage_.start(nullptr, {"pk_spawn", "--rate", rate(50)})};
  }
  void expect_little_unclaimed(const char* scenario, const Amount& amount) {
    // Not all of it is theirs: pkprof's own clock is among it.
    const Limits limits = {.ends_at_least = 0, .unclaimed_at_most = live::in_guest() ? 100.0 : 2.0};
    const Observed seen = measure(scenario, {ends_, hog_, {}, is_asynchronous}, limits, amount);
    uint64_t unclaimed = 0;
    for (const auto& [reason, ns] : seen.report.unclaimed) unclaimed += ns;
    const double percent =
        100 * static_cast<double>(unclaimed) / static_cast<double>(seen.report.cpu_ns);
    char text[64];
    std::snprintf(text, sizeof text, "unclaimed: %.2f %% of all time", percent);
    remark(text);
    EXPECT_LE(percent, 2) << describe(seen.report);
  }

  std::optional<testnet::Disk> disk_;
  std::set<int> ends_;
};

TEST_F(MixedTest, LittleIsUnclaimed) {
  if (IsSkipped()) return;
  expect_little_unclaimed("all at once", {.seconds = 3, .min_samples = 500});
}

TEST_F(MixedTest, LittleIsUnclaimedAtABudgetOfOnePercent) {
  if (IsSkipped()) return;
  expect_little_unclaimed("all at once, budget of 1 %",
                          {.seconds = 6, .min_samples = 500, .frequency_hz = 1997, .budget = "1"});
}

}  // namespace
}  // namespace pkprof::accuracy
