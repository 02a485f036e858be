// SPDX-License-Identifier: Apache-2.0
#include "attribution/timeline.h"

#include <gtest/gtest.h>

#include <map>

#include "attribution/scale.h"

namespace pkprof {
namespace {

TEST(Scale, AddsUpToTheNanosecond) {
  Scale scale(3, 10);
  uint64_t sum = 0;
  for (uint64_t i = 0; i < 1000; ++i) sum += scale(i);
  EXPECT_EQ(sum, uint64_t{999 * 1000 / 2} * 10 / 3);
}

TEST(Scale, OfLongTimesDoesNotOverflow) {
  constexpr uint64_t week = UINT64_C(7) * 86400 * 1'000'000'000;
  Scale scale(week / 7, week);
  EXPECT_EQ(scale(week), 7 * week);
}

TEST(Scale, OfNoTimeIsNothing) {
  Scale scale(0, 1000);
  EXPECT_EQ(scale(5), 5U);
}

class TimelineTest : public testing::Test {
 protected:
  void add(uint32_t slot, uint64_t ns) {
    Row row{};
    row.slot = slot;
    timeline_.add(row, ns);
  }
  std::map<uint32_t, uint64_t> slots() {
    Profile profile;
    timeline_.finish(profile, [](const Row&) { return SampleKey{}; });
    std::map<uint32_t, uint64_t> by_slot;
    for (const TimelineCell& cell : profile.timeline) by_slot[cell.slot] += cell.ns;
    return by_slot;
  }

  Timeline timeline_{1000};
};

TEST_F(TimelineTest, WhatStandsForSeveralSlotsIsSpreadOverThem) {
  timeline_.begin(0, 1, 1'000'000'000);
  add(timeline_.now(), 100);
  timeline_.begin(1, 3, 1'000'000'000);
  const uint32_t several = timeline_.now();
  add(several, 10);
  timeline_.begin(4, 1, 1'000'000'000);
  add(several, 300);  // of an object whose owner was found late
  add(timeline_.now(), 7);
  EXPECT_EQ(slots(),
            (std::map<uint32_t, uint64_t>{{0, 100}, {1, 104}, {2, 103}, {3, 103}, {4, 7}}));
}

TEST_F(TimelineTest, IsScaled) {
  timeline_.begin(0, 1, 1'000'000'000);
  add(timeline_.now(), 100);
  timeline_.begin(1, 1, 1'000'000'000);
  add(timeline_.now(), 50);
  timeline_.scale(Scale(3, 4));
  uint64_t sum = 0;
  for (const auto& [slot, ns] : slots()) sum += ns;
  EXPECT_EQ(sum, 200U);
}

}  // namespace
}  // namespace pkprof
