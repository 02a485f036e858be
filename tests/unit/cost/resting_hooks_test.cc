// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "cost/resting_hooks.h"

namespace pkprof {
namespace {

// A recording, of which a while at a time goes by.
struct Recording {
  RestingHooks rest;
  uint64_t samples = 0;
  uint64_t needed = 0;

  bool goes_on(uint64_t more, uint64_t more_needed) {
    samples += more;
    needed += more_needed;
    return rest.look(samples, needed);
  }
};

TEST(RestingHooks, WhereNothingIsSeenHooksStayOn) {
  Recording idle;
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(idle.goes_on(0, 0));
}

TEST(RestingHooks, AFewSamplesSayNothing) {
  Recording r;
  EXPECT_FALSE(r.goes_on(150, 0));
  EXPECT_TRUE(r.goes_on(150, 0)) << "they add up";
}

TEST(RestingHooks, HooksThatAreNeededStayOn) {
  Recording r;
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(r.goes_on(250, 10));
}

// While they are on, a few seem to need them that do not: it is tried, and real need ends it.
TEST(RestingHooks, FewThatMayNeedThemAreATrial) {
  Recording r;
  EXPECT_TRUE(r.goes_on(1000, 20));
  EXPECT_TRUE(r.goes_on(1000, 1));
  EXPECT_FALSE(r.goes_on(1000, 20));
}

TEST(RestingHooks, OneSampleInManyIsNotWorthAHook) {
  Recording r;
  EXPECT_TRUE(r.goes_on(1000, 0));
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(r.goes_on(1000, 1));
}

TEST(RestingHooks, MoreThanThatWakeThem) {
  Recording r;
  EXPECT_TRUE(r.goes_on(1000, 0));
  EXPECT_TRUE(r.goes_on(100, 1)) << "that one may be all";
  EXPECT_FALSE(r.goes_on(100, 1));
}

TEST(RestingHooks, HooksThatWereNeededAfterAllRestLater) {
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

// Two CPUs, of which the second is the one that polls.
struct Polled {
  VainRuns rest;
  uint64_t now = 0;
  uint64_t in_vain = 0;

  bool goes_on(uint64_t more) {
    now += kLook;
    in_vain += more;
    const uint64_t by_cpu[] = {now / 1'000'000, in_vain};
    return rest.look(by_cpu, now);
  }
};

TEST(VainRuns, AHookThatSaysSomethingIsOn) {
  Polled polled;
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(polled.goes_on(10'000));
}

TEST(VainRuns, OneThatRunsInVainRestsAndIsTriedAgain) {
  Polled polled;
  EXPECT_FALSE(polled.goes_on(0));
  EXPECT_TRUE(polled.goes_on(300'000));
  int on = 0;
  bool rests = true;
  for (int i = 0; i < 300; ++i) {
    rests = polled.goes_on(rests ? 0 : 300'000);
    on += rests ? 0 : 1;
  }
  EXPECT_GE(on, 10);
  EXPECT_LE(on, 24) << "a twentieth of the time or so";
}

TEST(VainRuns, ItComesBackWhenItIsOver) {
  Polled polled;
  polled.goes_on(0);
  EXPECT_TRUE(polled.goes_on(300'000));
  int rests = 0;
  for (int i = 0; i < 100; ++i) rests += polled.goes_on(0) ? 1 : 0;
  EXPECT_LE(rests, 26);
}

TEST(RareRuns, TheHookRestsAfterAQuietSecondAndComesBackAtOnce) {
  RareRuns rest;
  uint64_t now = 1;
  uint64_t runs = 0;
  const auto goes_on = [&](uint64_t more) { return rest.look(runs += more, now += kLook); };
  EXPECT_FALSE(goes_on(0)) << "what was before is not known";
  int on = 0;
  while (!goes_on(1)) ++on;
  EXPECT_NEAR(static_cast<double>(on) * kLook, 1e9, 2 * kLook);
  EXPECT_FALSE(goes_on(kLook / 1'000'000));
  EXPECT_FALSE(goes_on(0));
}

}  // namespace
}  // namespace pkprof
