// SPDX-License-Identifier: Apache-2.0
#include "cost/windows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace pkprof {
namespace {

constexpr uint64_t kTick = 200'000'000;  // between looks
constexpr uint64_t kSecond = 1'000'000'000;

// Looks at a load that takes `on` of the first CPU's time while it is watched, and `off` otherwise.
class Watched {
 public:
  Watched(double budget, uint64_t seed) : windows_(budget, seed, 0) {}

  // Lets time go by. Returns the share of it that was watched.
  double pass(uint64_t ns, double on, double off = 0) {
    uint64_t watched = 0;
    for (const uint64_t end = now_ + ns; now_ < end;) {
      now_ += kTick;
      watched += watching_ ? kTick : 0;
      spent_[0] += static_cast<uint64_t>(static_cast<double>(kTick) * (watching_ ? on : off));
      spent_[1] += kTick / 1000;
      const bool before = watching_;
      watching_ = windows_.watch(now_, spent_);
      if (before != watching_) changes_.push_back(now_);
      history_.push_back(spent_[0]);
    }
    return static_cast<double>(watched) / static_cast<double>(ns);
  }
  // Of the first CPU, the most that was taken in any ten seconds.
  [[nodiscard]] double most_in_ten_seconds() const {
    constexpr size_t ten = 10 * kSecond / kTick;
    uint64_t most = 0;
    for (size_t i = ten; i < history_.size(); ++i)
      most = std::max(most, history_[i] - history_[i - ten]);
    return static_cast<double>(most) / (10 * kSecond);
  }
  [[nodiscard]] const std::vector<uint64_t>& changes() const { return changes_; }
  Windows& windows() { return windows_; }
  [[nodiscard]] const std::vector<uint64_t>& spent() const { return spent_; }
  [[nodiscard]] uint64_t now() const { return now_; }

 private:
  Windows windows_;
  bool watching_ = true;
  uint64_t now_ = 0;
  std::vector<uint64_t> spent_ = {0, 0};
  std::vector<uint64_t> history_ = {0};
  std::vector<uint64_t> changes_;
};

TEST(Windows, AShortRecordingIsWhole) {
  Watched load(0.05, 1);
  EXPECT_EQ(load.pass(4 * kSecond, 0.06), 1);
}

// Programs are loaded, and tables are made of the files that code lies in.
TEST(Windows, AShortRecordingIsWholeWhereItsStartIsDear) {
  Watched load(0.05, 1);
  EXPECT_EQ(load.pass(kSecond, 0.2), 1);
  EXPECT_EQ(load.pass(2 * kSecond, 0.04), 1);
}

TEST(Windows, BelowTheBudgetAllIsWatched) {
  Watched load(0.05, 1);
  EXPECT_EQ(load.pass(100 * kSecond, 0.044), 1);
}

TEST(Windows, ABurstThatCanBePaidEndsNoWindow) {
  Watched load(0.05, 1);
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(load.pass(kSecond, 0.08), 1);
    EXPECT_EQ(load.pass(2 * kSecond, 0.02), 1);
  }
}

TEST(Windows, TheBudgetIsKept) {
  for (const double budget : {0.05, 0.01, 0.002})
    for (const double takes : {0.06, 0.1, 0.3}) {
      Watched load(budget, 7);
      const double share = load.pass(300 * kSecond, takes);
      EXPECT_LE(share * takes, budget) << budget << " of " << takes;
      EXPECT_GE(share * takes, 0.8 * std::min(budget, takes)) << budget << " of " << takes;
    }
}

TEST(Windows, AnyTenSecondsKeepIt) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Watched load(0.01, seed);
    load.pass(200 * kSecond, 0.03);
    // A window cannot end between two looks, and one more of them may lie in the ten seconds.
    EXPECT_LE(load.most_in_ten_seconds(), 0.01 + 0.03 * 0.13 + 0.03 * 2 * kTick / (10.0 * kSecond));
  }
}

TEST(Windows, LastForASecondOrSo) {
  Watched load(0.01, 3);
  load.pass(300 * kSecond, 0.03);
  ASSERT_GT(load.changes().size(), 100U);
  for (size_t i = 2; i + 1 < load.changes().size(); i += 2) {
    const uint64_t window = load.changes()[i] - load.changes()[i - 1];
    EXPECT_GE(window, 600'000'000U);
    EXPECT_LE(window, 1'600'000'000U);
  }
}

TEST(Windows, OnesThatAreDearAreShorter) {
  Watched load(0.01, 3);
  load.pass(300 * kSecond, 0.3);
  for (size_t i = 2; i + 1 < load.changes().size(); i += 2)
    EXPECT_LE(load.changes()[i] - load.changes()[i - 1], 2 * kTick);
}

TEST(Windows, FallInWithNoRhythm) {
  Watched load(0.01, 5);
  load.pass(600 * kSecond, 0.05);
  std::vector<uint64_t> cycles;
  for (size_t i = 3; i < load.changes().size(); i += 2)
    cycles.push_back(load.changes()[i] - load.changes()[i - 2]);
  const auto [least, most] = std::ranges::minmax(cycles);
  EXPECT_GT(most, least + least / 4);
}

TEST(Windows, WhatIsPaidInBetweenIsPaid) {
  Watched load(0.01, 9);
  const double share = load.pass(300 * kSecond, 0.05, 0.005);
  EXPECT_LE(share * 0.05 + (1 - share) * 0.005, 0.01);
}

TEST(Windows, AreLongAgainWhenItIsCheap) {
  Watched load(0.01, 2);
  EXPECT_LT(load.pass(60 * kSecond, 0.1), 0.2);
  load.pass(20 * kSecond, 0.001);
  EXPECT_EQ(load.pass(60 * kSecond, 0.001), 1);
}

TEST(Windows, APauseThatWasAskedForEarnsNothing) {
  Watched load(0.01, 4);
  load.pass(20 * kSecond, 0.1);
  std::vector<uint64_t> spent = load.spent();
  load.windows().begin(load.now() + 3600 * kSecond, spent);
  // What is owed is still owed: a window, and then a pause.
  uint64_t now = load.now() + 3600 * kSecond;
  int watched = 0;
  for (int i = 0; i < 20; ++i) {
    now += kTick;
    spent[0] += kTick / 10;
    watched += load.windows().watch(now, spent) ? 1 : 0;
  }
  EXPECT_LE(watched, 7);
}

TEST(Windows, WhatWasThoughtToBeDearIsGivenBack) {
  Windows windows(0.05, 1, 0);
  EXPECT_TRUE(windows.watch(kTick, std::vector<uint64_t>{0}));
  EXPECT_FALSE(windows.watch(2 * kTick, std::vector<uint64_t>{2 * kTick}));
  EXPECT_TRUE(windows.watch(3 * kTick, std::vector<uint64_t>{kTick / 100}));
}

TEST(Windows, ABudgetOfAllTheTimeWatchesAlways) {
  Watched load(1, 1);
  EXPECT_EQ(load.pass(60 * kSecond, 0.99), 1);
}

}  // namespace
}  // namespace pkprof
