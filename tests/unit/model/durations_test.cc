// SPDX-License-Identifier: Apache-2.0
#include "model/durations.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace pkprof {
namespace {

TEST(Durations, EachFallsIntoTheBucketThatHasIt) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 100'000; ++i) {
    const uint64_t ns = random() >> (24 + random() % 40);
    const size_t bucket = Durations::bucket_of(ns);
    EXPECT_GE(ns, Durations::start_ns(bucket));
    if (bucket + 1 == Durations::buckets) continue;
    // Below 64 ns there is one bucket for all.
    const size_t next = bucket == 0 ? Durations::steps : bucket + 1;
    EXPECT_LT(ns, Durations::start_ns(next)) << bucket;
  }
}

TEST(Durations, BucketsAreAnEighthOfAnOctave) {
  EXPECT_EQ(Durations::bucket_of(0), 0);
  EXPECT_EQ(Durations::bucket_of(63), 0);
  EXPECT_EQ(Durations::bucket_of(64), Durations::steps);
  EXPECT_EQ(Durations::bucket_of(71), Durations::steps);
  EXPECT_EQ(Durations::bucket_of(72), Durations::steps + 1);
  EXPECT_EQ(Durations::bucket_of(127), 2 * Durations::steps - 1);
  EXPECT_EQ(Durations::bucket_of(128), 2 * Durations::steps);
  EXPECT_EQ(Durations::bucket_of(UINT64_MAX), Durations::buckets - 1);
}

TEST(Durations, PercentilesAreWithinAnEighth) {
  std::mt19937_64 random(2);
  std::lognormal_distribution<double> spread(10, 2);
  std::vector<uint64_t> all;
  Durations durations;
  for (int i = 0; i < 20'000; ++i) {
    all.push_back(64 + static_cast<uint64_t>(spread(random)));
    durations.add(Durations::bucket_of(all.back()), 1);
  }
  std::ranges::sort(all);
  for (const double share : {0.01, 0.5, 0.9, 0.99, 0.999}) {
    const auto truth = static_cast<double>(all[static_cast<size_t>(share * 20'000)]);
    EXPECT_NEAR(static_cast<double>(durations.percentile_ns(share)), truth, truth / 8);
  }
  EXPECT_EQ(durations.count(), 20'000);
}

TEST(Durations, OfNothing) {
  EXPECT_EQ(Durations().percentile_ns(0.5), 0);
}

}  // namespace
}  // namespace pkprof
