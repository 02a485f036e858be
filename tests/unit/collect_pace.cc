// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "collect/pace.h"

namespace pkprof {
namespace {

constexpr uint64_t second = 1'000'000'000;

TEST(Pace, WhatIsCheapTicksAsAskedFor) {
  Pace pace(997, 0.005, 0);
  EXPECT_EQ(pace.look(4'000, second), 997);
  EXPECT_NEAR(pace.cost(4'000), 0.004, 1e-4);
  EXPECT_DOUBLE_EQ(pace.ticks(3 * second), 3 * 997);
}

TEST(Pace, WhatIsDearTicksSlower) {
  Pace pace(997, 0.005, 0);
  EXPECT_EQ(pace.look(10'000, second), 500);
  EXPECT_NEAR(pace.cost(10'000), 0.005, 1e-4);
  EXPECT_DOUBLE_EQ(pace.ticks(2 * second), 997 + 500);
}

TEST(Pace, ItTicksFasterAgainButNotThanAskedFor) {
  Pace pace(997, 0.005, 0);
  EXPECT_EQ(pace.look(10'000, second), 500);
  EXPECT_EQ(pace.look(8'000, 2 * second), 625);
  EXPECT_EQ(pace.look(1'000, 3 * second), 997);
}

TEST(Pace, SmallChangesAreNone) {
  Pace pace(997, 0.005, 0);
  EXPECT_EQ(pace.look(10'000, second), 500);
  EXPECT_EQ(pace.look(9'600, 2 * second), 500);
  EXPECT_EQ(pace.look(0, 3 * second), 500);
}

TEST(Pace, ThereIsALeastFrequency) {
  Pace pace(997, 0.0001, 0);
  EXPECT_EQ(pace.look(50'000, second), 49);
  Pace slow(19, 0.0001, 0);
  EXPECT_EQ(slow.look(50'000, second), 19);
}

}  // namespace
}  // namespace pkprof
