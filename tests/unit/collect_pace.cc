// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "collect/pace.h"

namespace pkprof {
namespace {

constexpr uint64_t second = 1'000'000'000;

// Of samples that take so long each.
struct Samples {
  uint64_t count = 0;
  uint64_t took_ns = 0;

  uint64_t come(Pace& pace, uint64_t each_ns, uint64_t now, uint64_t more = 500) {
    count += more;
    took_ns += more * each_ns;
    return pace.look(std::vector<Pace::Timed>{{count, took_ns}}, now);
  }
};

TEST(Pace, WhatIsCheapTicksAsAskedFor) {
  Pace pace(997, 0.005, 0);
  Samples samples;
  EXPECT_EQ(samples.come(pace, 4'000, second), 997);
  EXPECT_NEAR(pace.cost(), 0.004, 1e-4);
  EXPECT_DOUBLE_EQ(pace.ticks(3 * second), 3 * 997);
}

TEST(Pace, WhatIsDearTicksSlower) {
  Pace pace(997, 0.005, 0);
  Samples samples;
  EXPECT_EQ(samples.come(pace, 10'000, second), 500);
  EXPECT_NEAR(pace.cost(), 0.005, 1e-4);
  EXPECT_DOUBLE_EQ(pace.ticks(2 * second), 997 + 500);
}

// However long it was cheap.
TEST(Pace, WhatGetsDearIsMetAtOnce) {
  Pace pace(997, 0.005, 0);
  Samples samples;
  EXPECT_EQ(samples.come(pace, 2'000, 1000 * second, 1'000'000), 997);
  EXPECT_EQ(samples.come(pace, 20'000, 1001 * second, 100), 250);
}

TEST(Pace, FewSamplesSayNothing) {
  Pace pace(997, 0.005, 0);
  Samples samples;
  EXPECT_EQ(samples.come(pace, 90'000, second, 10), 997);
  EXPECT_EQ(pace.cost(), 0);
}

TEST(Pace, ItTicksFasterAgainButNotThanAskedFor) {
  Pace pace(997, 0.005, 0);
  Samples samples;
  EXPECT_EQ(samples.come(pace, 10'000, second), 500);
  EXPECT_EQ(samples.come(pace, 6'000, 2 * second), 625) << "half believed";
  for (uint64_t at = 3; at < 9; ++at) samples.come(pace, 1'000, at * second);
  EXPECT_EQ(pace.hz(), 997);
}

TEST(Pace, SmallChangesAreNone) {
  Pace pace(997, 0.005, 0);
  Samples samples;
  EXPECT_EQ(samples.come(pace, 10'000, second), 500);
  EXPECT_EQ(samples.come(pace, 9'600, 2 * second), 500);
}

TEST(Pace, InAHurryItTicksAsAskedFor) {
  Pace pace(997, 0.005, 0);
  Samples samples;
  EXPECT_EQ(samples.come(pace, 10'000, second), 500);
  pace.hurry(true, 2 * second);
  EXPECT_EQ(pace.hz(), 997);
  EXPECT_EQ(samples.come(pace, 20'000, 3 * second), 997);
  EXPECT_EQ(pace.unhurried_hz(), 250);
  EXPECT_NEAR(pace.cost(), 0.005, 1e-4);
  EXPECT_DOUBLE_EQ(pace.ticks(4 * second), 997 + 500 + 2 * 997);
  pace.hurry(false, 4 * second);
  EXPECT_EQ(pace.hz(), 250);
  EXPECT_DOUBLE_EQ(pace.ticks(5 * second), 997 + 500 + 2 * 997 + 250);
}

// One busy CPU among many idle ones pays no more than its share, either.
TEST(Pace, BusyCpusDecide) {
  Pace pace(997, 0.005, 0);
  std::vector<Pace::Timed> cpus(64, {.samples = 500, .took_ns = 300'000, .idle = true});
  cpus[7] = {.samples = 500, .took_ns = 9'000'000};
  cpus[9] = {.samples = 500, .took_ns = 1'000'000};
  EXPECT_EQ(pace.look(cpus, second), 500);
  EXPECT_NEAR(pace.cost(), 0.005, 1e-4);
  cpus[7].idle = true;
  for (uint64_t at = 2; at < 9; ++at) {
    cpus[9].samples += 500;
    cpus[9].took_ns += 1'000'000;
    pace.look(cpus, at * second);
  }
  EXPECT_EQ(pace.hz(), 997) << "it is idle now";
}

TEST(Pace, ThereIsALeastFrequency) {
  Pace pace(997, 0.0001, 0);
  Pace slow(19, 0.0001, 0);
  for (Pace* p : {&pace, &slow}) {
    Samples samples;
    samples.come(*p, 50'000, second);
  }
  EXPECT_EQ(pace.hz(), 49);
  EXPECT_EQ(slow.hz(), 19);
}

}  // namespace
}  // namespace pkprof
