// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "collect/rest.h"

namespace pkprof {
namespace {

// A recording, of which a while at a time goes by.
struct Recording {
  Rest rest;
  uint64_t samples = 0;
  uint64_t needed = 0;

  bool goes_on(uint64_t more, uint64_t more_needed) {
    samples += more;
    needed += more_needed;
    return rest.look(samples, needed);
  }
};

TEST(Rest, WhereNothingIsSeenHooksStayOn) {
  Recording idle;
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(idle.goes_on(0, 0));
}

TEST(Rest, AFewSamplesSayNothing) {
  Recording r;
  EXPECT_FALSE(r.goes_on(150, 0));
  EXPECT_TRUE(r.goes_on(150, 0)) << "they add up";
}

TEST(Rest, HooksThatAreNeededStayOn) {
  Recording r;
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(r.goes_on(250, 1));
}

TEST(Rest, OneSampleInManyIsNotWorthAHook) {
  Recording r;
  EXPECT_TRUE(r.goes_on(1000, 0));
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(r.goes_on(1000, 1));
}

TEST(Rest, MoreThanThatWakeThem) {
  Recording r;
  EXPECT_TRUE(r.goes_on(1000, 0));
  EXPECT_TRUE(r.goes_on(100, 1)) << "that one may be all";
  EXPECT_FALSE(r.goes_on(100, 1));
}

TEST(Rest, HooksThatWereNeededAfterAllRestLater) {
  Recording r;
  EXPECT_TRUE(r.goes_on(1000, 0));
  EXPECT_FALSE(r.goes_on(100, 10));
  EXPECT_FALSE(r.goes_on(1000, 0)) << "nobody can be sure yet";
  EXPECT_TRUE(r.goes_on(1000, 0));
  EXPECT_FALSE(r.goes_on(10, 10));
  EXPECT_FALSE(r.goes_on(10000, 0)) << "each time less so";
  EXPECT_TRUE(r.goes_on(10000, 0));
}

constexpr uint64_t kLook = 200'000'000;

TEST(RestInVain, AHookThatSaysSomethingIsOn) {
  RestInVain rest;
  for (uint64_t i = 1; i < 100; ++i) EXPECT_FALSE(rest.look(i * 10'000, i * kLook));
}

TEST(RestInVain, OneThatRunsInVainRestsAndIsTriedAgain) {
  RestInVain rest;
  EXPECT_FALSE(rest.look(0, kLook));
  EXPECT_TRUE(rest.look(300'000, 2 * kLook));
  int on = 0;
  uint64_t in_vain = 300'000;
  for (uint64_t i = 3; i < 303; ++i) {
    const bool rests = rest.look(in_vain, i * kLook);
    on += rests ? 0 : 1;
    if (!rests) in_vain += 300'000;
  }
  EXPECT_GE(on, 10);
  EXPECT_LE(on, 24) << "a twentieth of the time or so";
}

TEST(RestInVain, ItComesBackWhenItIsOver) {
  RestInVain rest;
  rest.look(0, kLook);
  EXPECT_TRUE(rest.look(300'000, 2 * kLook));
  int rests = 0;
  for (uint64_t i = 3; i < 103; ++i) rests += rest.look(300'000, i * kLook) ? 1 : 0;
  EXPECT_LE(rests, 26);
}

}  // namespace
}  // namespace pkprof
