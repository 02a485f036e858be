// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "collect/rest.h"

namespace pkprof {
namespace {

constexpr uint64_t tenth = 100'000'000;

// A recording, of which a tenth of a second at a time goes by.
struct Recording {
  Rest rest{1.0 / 16, 0};
  uint64_t now = 0;
  uint64_t samples = 0;
  uint64_t needed = 0;

  bool goes_on(uint64_t more, uint64_t more_needed) {
    now += tenth;
    samples += more;
    needed += more_needed;
    return rest.look(samples, needed, now);
  }
};

TEST(Rest, WhereNothingIsSeenHooksStayOn) {
  Recording idle;
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(idle.goes_on(0, 0));
}

TEST(Rest, AFewSamplesSayNothing) {
  Recording r;
  EXPECT_FALSE(r.goes_on(20, 0));
  EXPECT_TRUE(r.goes_on(20, 0)) << "they add up";
}

TEST(Rest, HooksThatAreNeededStayOn) {
  Recording r;
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(r.goes_on(100, 50));
}

TEST(Rest, OneThatIsNeededNowAndThenIsNotWorthAHook) {
  Recording r;
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(r.goes_on(100, i % 5));
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(r.goes_on(100, 12)) << "now they rest";
}

TEST(Rest, AnotherLoadWakesThemAtOnce) {
  Recording r;
  EXPECT_TRUE(r.goes_on(100, 0));
  EXPECT_FALSE(r.goes_on(10, 9));
  EXPECT_FALSE(r.goes_on(10, 9)) << "and they stay on";
  EXPECT_FALSE(r.goes_on(100, 0)) << "9 of 110 did need them";
  EXPECT_TRUE(r.goes_on(100, 0)) << "until it is over";
}

TEST(Rest, WhatBecomesMoreAndMoreWakesThem) {
  Recording r;
  EXPECT_TRUE(r.goes_on(100, 0));
  int tenths = 0;
  while (r.goes_on(100, 13)) ASSERT_LT(++tenths, 30);
}

// A machine that is all but idle must not wait for long for what it needs.
TEST(Rest, ASampleThatIsNeededIsNotWaitedWithForLong) {
  Recording r;
  EXPECT_TRUE(r.goes_on(100, 0));
  EXPECT_TRUE(r.goes_on(1, 1));
  int tenths = 1;
  while (r.goes_on(0, 0)) ASSERT_LT(++tenths, 30);
  Recording later;
  EXPECT_TRUE(later.goes_on(100, 0));
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(later.goes_on(0, 0));
  EXPECT_FALSE(later.goes_on(1, 1));
}

}  // namespace
}  // namespace pkprof
