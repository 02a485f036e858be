// SPDX-License-Identifier: Apache-2.0
// What is kept of something frequent adds up to all of it, and is not more than is to be kept.
#include <linux/types.h>

#include <cstdint>
#include <random>

namespace {

// The kernel side's means, with known numbers.
std::mt19937 randomness;  // NOLINT(cert-msc51-cpp): the same each time
uint64_t clock_ns = 0;
uint32_t pk_random() {
  return randomness();
}
uint64_t pk_now() {
  return clock_ns;
}

}  // namespace

#include "pkprof/stands_for.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <vector>

namespace pkprof {
namespace {

constexpr uint64_t second = 1'000'000'000;
constexpr uint64_t one_millisecond = 1'000'000;

struct Kept {
  uint64_t all = 0;
  uint64_t stands_for = 0;
  uint64_t times = 0;
  [[nodiscard]] double error() const {
    return static_cast<double>(stands_for) - static_cast<double>(all);
  }
};

class Strata : public testing::Test {
 protected:
  void SetUp() override {
    randomness.seed(7);
    clock_ns = 1;
  }

  // An amount, and then so long until the next.
  struct Event {
    uint64_t amount;
    uint64_t pause_ns;
  };
  static Kept keep(pk_stratum& at, pk_pace& pace, uint64_t until, uint64_t least,
                   const std::function<Event()>& next) {
    Kept kept;
    while (clock_ns < until) {
      const Event event = next();
      kept.all += event.amount;
      const uint64_t stands_for =
          pk_stands_for(&at, &pace, event.amount, least, PK_KEPT_EACH_SECOND);
      kept.stands_for += stands_for;
      kept.times += stands_for != 0;
      clock_ns += event.pause_ns;
    }
    return kept;
  }
};

uint64_t between(uint64_t least, uint64_t most) {
  return std::uniform_int_distribution<uint64_t>(least, most)(randomness);
}

TEST_F(Strata, AddUpWithinAPeriod) {
  pk_stratum at{};
  pk_pace pace{};
  const Kept kept = keep(at, pace, 20 * second, one_millisecond, [] {
    const uint64_t ns = between(1000, 1'500'000);
    return Event{ns, ns};
  });
  EXPECT_EQ(pace.period, one_millisecond) << "the shortest";
  EXPECT_NEAR(kept.error(), 0, one_millisecond);
}

// All packets are as large as the first period: it has to grow nonetheless.
TEST_F(Strata, KeepNoMoreThanAsked) {
  pk_stratum at{};
  pk_pace pace{};
  const Kept kept = keep(at, pace, 10 * second, 1, [] { return Event{1, 10'000}; });
  EXPECT_LE(kept.times, 2U * PK_KEPT_EACH_SECOND * 10);
  EXPECT_GE(kept.times, PK_KEPT_EACH_SECOND * 10 / 8);
  EXPECT_NEAR(kept.error(), 0, 256);
}

// Some large, most small, at rates that have periods grow and shrink all the time. Each time that
// may be off by a part of a period, but not always to one side.
TEST_F(Strata, FavourNothingWhilePeriodsChange) {
  constexpr int runs = 200;
  std::vector<double> errors;
  double all = 0;
  for (int run = 0; run < runs; ++run) {
    pk_stratum at{};
    pk_pace pace{};
    clock_ns = 1;
    const Kept kept = keep(at, pace, 40 * second, one_millisecond, [] {
      const bool is_busy = clock_ns / second % 10 == 0;
      return Event{between(1'100'000, 1'500'000), is_busy ? 100'000U : 2'500'000U};
    });
    errors.push_back(kept.error());
    all += static_cast<double>(kept.all);
  }
  const double mean = std::accumulate(errors.begin(), errors.end(), 0.0) / runs;
  double squares = 0;
  for (const double error : errors) squares += (error - mean) * (error - mean);
  const double deviation_of_mean = std::sqrt(squares / runs / runs);
  EXPECT_LE(std::abs(mean), 3 * deviation_of_mean) << "of " << all / runs;
  EXPECT_LE(std::abs(mean), 0.001 * all / runs);
}

// What stands for others has its part: a process with a quarter of it all has a quarter of what is
// kept.
TEST_F(Strata, GiveEachItsPart) {
  pk_stratum at{};
  pk_pace pace{};
  uint64_t small_all = 0, small_kept = 0, all = 0;
  while (clock_ns < 10 * second) {
    const bool is_small = between(0, 1);
    const uint64_t bytes = is_small ? 500 : 1500;
    const uint64_t stands_for = pk_stands_for(&at, &pace, bytes, 1, PK_PACKETS_EACH_SECOND);
    (is_small ? small_all : all) += bytes;
    if (is_small) small_kept += stands_for;
    clock_ns += 20'000;
  }
  EXPECT_NEAR(static_cast<double>(small_kept) / static_cast<double>(small_all), 1, 0.03);
}

}  // namespace
}  // namespace pkprof
