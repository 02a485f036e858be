// SPDX-License-Identifier: Apache-2.0
#include "collect/recorder.h"

#include <gtest/gtest.h>

namespace pkprof {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;

class RecorderTest : public testing::Test {
 protected:
  // As profiles are handed over at intervals.
  uint64_t idle_of_interval(uint64_t told_by_cpus, uint64_t idle_so_far) {
    KernelSide::Tables tables;
    pk_key key{};
    key.ran_on = PK_IDLE;
    key.served = PK_IDLE;
    key.kind = PK_IDLING;
    key.syscall = PK_NO_SYSCALL;
    if (told_by_cpus) tables.counts.push_back({key, {told_by_cpus, 1}});
    recorder_.add(tables);
    recorder_.add_idle_so_far(idle_so_far);
    Profile profile;
    recorder_.finish(profile, [](uint64_t) { return true; });
    uint64_t ns = 0;
    for (const auto& [k, value] : profile.samples()) ns += value.ns;
    return ns;
  }

  UserSymbols symbols_;
  Processes processes_{symbols_};
  Recorder recorder_{nullptr, symbols_, processes_, 1'000'000};
};

TEST_F(RecorderTest, ACpuThatSleepsIsIdleInEachIntervalAndOnlyOnce) {
  EXPECT_EQ(idle_of_interval(0, kSecond), kSecond);
  EXPECT_EQ(idle_of_interval(0, 2 * kSecond), kSecond) << "it still sleeps";
  // It wakes, and tells all of it.
  EXPECT_EQ(idle_of_interval(5 * kSecond / 2, 0), kSecond / 2);
  EXPECT_EQ(idle_of_interval(kSecond, 0), kSecond);
}

}  // namespace
}  // namespace pkprof
