// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <set>

#include "collect/segments.h"

namespace pkprof {
namespace {

constexpr uint64_t kMs = 1'000'000;

TEST(Segments, APieceStandsForThePauseAfterIt) {
  Segments segments;
  const uint8_t quiet = segments.begin(HookGroup::work, 100 * kMs);
  const uint8_t burst = segments.begin(HookGroup::work, 1000 * kMs);
  EXPECT_EQ(segments.weight(burst, 1100 * kMs), 0) << "there is no pause";
  segments.pause(HookGroup::work, 1200 * kMs);
  EXPECT_DOUBLE_EQ(segments.weight(burst, 1500 * kMs), 1.5) << "so far";
  const uint8_t next = segments.begin(HookGroup::work, 2000 * kMs);
  EXPECT_DOUBLE_EQ(segments.weight(burst, 9000 * kMs), 4);
  EXPECT_EQ(segments.weight(quiet, 9000 * kMs), 0);
  EXPECT_EQ(segments.weight(next, 9000 * kMs), 0);
}

TEST(Segments, GroupsHaveTheirOwn) {
  Segments segments;
  const uint8_t work = segments.begin(HookGroup::work, 0);
  const uint8_t disks = segments.begin(HookGroup::disks, 0);
  EXPECT_NE(work, disks);
  segments.pause(HookGroup::work, 100 * kMs);
  segments.pause(HookGroup::disks, 200 * kMs);
  segments.pause(HookGroup::disks, 250 * kMs);  // goes on
  segments.begin(HookGroup::disks, 300 * kMs);
  EXPECT_DOUBLE_EQ(segments.weight(disks, 400 * kMs), 0.5);
  EXPECT_DOUBLE_EQ(segments.weight(work, 400 * kMs), 3);
}

TEST(Segments, NumbersAreUsedAgainButFor0) {
  Segments segments;
  std::set<uint8_t> numbers;
  for (int i = 0; i < 255; ++i) numbers.insert(segments.begin(HookGroup::work, 0));
  EXPECT_EQ(numbers.size(), 255U);
  EXPECT_FALSE(numbers.contains(0));
  EXPECT_EQ(segments.weight(0, 1), 0);
  segments.pause(HookGroup::work, 10 * kMs);
  const uint8_t again = segments.begin(HookGroup::work, 20 * kMs);
  EXPECT_EQ(again, *numbers.begin());
  EXPECT_EQ(segments.weight(again, 30 * kMs), 0) << "another piece now";
}

}  // namespace
}  // namespace pkprof
