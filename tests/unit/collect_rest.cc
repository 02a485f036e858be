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
  EXPECT_FALSE(r.goes_on(20, 0));
  EXPECT_TRUE(r.goes_on(20, 0)) << "they add up";
}

TEST(Rest, HooksThatAreNeededStayOn) {
  Recording r;
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(r.goes_on(100, 1));
}

TEST(Rest, OneSampleThatNeedsThemWakesThem) {
  Recording r;
  EXPECT_TRUE(r.goes_on(100, 0));
  EXPECT_FALSE(r.goes_on(1000, 1));
}

TEST(Rest, HooksThatWereNeededAfterAllRestLater) {
  Recording r;
  EXPECT_TRUE(r.goes_on(100, 0));
  EXPECT_FALSE(r.goes_on(100, 1));
  EXPECT_FALSE(r.goes_on(100, 0)) << "nobody can be sure yet";
  EXPECT_TRUE(r.goes_on(100, 0));
  EXPECT_FALSE(r.goes_on(1, 1));
  EXPECT_FALSE(r.goes_on(1000, 0)) << "each time less so";
  EXPECT_TRUE(r.goes_on(1000, 0));
}

}  // namespace
}  // namespace pkprof
