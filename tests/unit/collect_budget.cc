// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "collect/budget.h"

namespace pkprof {
namespace {

constexpr uint64_t kPeriod = 1'003'009;
constexpr double kRunNs = 100;

// Lets time pass on a machine whose CPUs run so many hooks a second while the hooks are on.
struct Machine {
  std::vector<double> runs_per_s;
  std::vector<uint64_t> runs = std::vector<uint64_t>(runs_per_s.size());
  uint64_t turning_ns = 0;
  double on_s = 0;
  double off_s = 0;
  double longest_s = 0;  // turn and pause

  void live(Budget& budget, double seconds) {
    Budget::Turn turn = budget.first();
    for (double now = 0; now < seconds;) {
      const double on = static_cast<double>(turn.on_ns) / 1e9;
      for (size_t cpu = 0; cpu < runs.size(); ++cpu)
        runs[cpu] += static_cast<uint64_t>(runs_per_s[cpu] * on);
      on_s += on;
      turn = budget.next(runs, kRunNs, turn.on_ns, turning_ns);
      off_s += static_cast<double>(turn.off_ns) / 1e9;
      longest_s = std::max(longest_s, static_cast<double>(turn.on_ns + turn.off_ns) / 1e9);
      now = on_s + off_s;
    }
  }
  [[nodiscard]] double share() const { return on_s / (on_s + off_s); }
};

TEST(Budget, HooksThatCostLessStayOn) {
  Budget budget(0.01, kPeriod, 1);
  Machine machine{{50'000, 90'000}};  // 0.5 and 0.9 percent
  machine.live(budget, 20);
  EXPECT_EQ(machine.off_s, 0);
  EXPECT_EQ(budget.duty(), 1);
  EXPECT_NEAR(budget.takes(), 0.009, 1e-6) << "the rest is others'";
}

// What ran while hooks were taken out and put in again, in no time of the recording.
TEST(Budget, WhatRanInAPauseOfTheRecordingIsPassedOver) {
  Budget budget(0.01, kPeriod, 1);
  budget.pass_over(std::vector<uint64_t>{0, 0}, std::vector<uint64_t>{0, 60'000});
  EXPECT_FALSE(budget.is_spent(std::vector<uint64_t>{0, 150'000}, kRunNs));
  static_cast<void>(budget.next(std::vector<uint64_t>{0, 150'000}, kRunNs, 1'000'000'000));
  EXPECT_NEAR(budget.takes(), 0.009, 1e-6);
  budget.pass_over(std::vector<uint64_t>{0, 200'000}, std::vector<uint64_t>{0, 900'000});
  EXPECT_FALSE(budget.is_spent(std::vector<uint64_t>{0, 949'000}, kRunNs));
  EXPECT_TRUE(budget.is_spent(std::vector<uint64_t>{0, 951'000}, kRunNs));
}

// A second's share may be spent in a part of it; a machine that does nothing spends none.
TEST(Budget, ATurnThatIsTooDearIsSpentEarly) {
  Budget budget(0.01, kPeriod, 1);
  std::vector<uint64_t> runs = {0, 0};
  EXPECT_FALSE(budget.is_spent(runs, kRunNs));
  runs = {0, 99'000};  // 9.9 ms of 10
  EXPECT_FALSE(budget.is_spent(runs, kRunNs));
  runs = {0, 101'000};
  EXPECT_TRUE(budget.is_spent(runs, kRunNs));
  EXPECT_LT(budget.next(runs, kRunNs, 50'000'000).on_ns, 400'000'000);
  EXPECT_FALSE(budget.is_spent(runs, kRunNs)) << "what was paid is paid";
}

// What ran while the hooks were taken out does not end the pause, but the next turn pays for it.
TEST(Budget, APauseIsSpentByWhatRanInIt) {
  Budget budget(0.01, kPeriod, 1);
  const std::vector<uint64_t> at_end = {0};
  budget.next(at_end, kRunNs, 50'000'000);
  std::vector<uint64_t> runs = {101'000};
  EXPECT_TRUE(budget.is_spent(runs, kRunNs));
  budget.begin_pause(runs);
  EXPECT_FALSE(budget.is_spent(runs, kRunNs));
  runs = {202'000};
  EXPECT_TRUE(budget.is_spent(runs, kRunNs));
  budget.next(runs, kRunNs, 1'000'000'000);
  EXPECT_NEAR(budget.takes(), 0.01, 1e-9);
  EXPECT_LT(budget.duty(), 0.6) << "all 202,000 are paid for";
}

TEST(Budget, AllOfTheTimeIsNeverExceeded) {
  Budget budget(1, kPeriod, 1);
  Machine machine{{50'000'000}};  // five times what a CPU has: an estimate that went wrong
  machine.live(budget, 20);
  EXPECT_EQ(machine.off_s, 0);
}

TEST(Budget, TheCpuThatPaysMostDecides) {
  Budget budget(0.01, kPeriod, 1);
  Machine machine{{1'000, 500'000, 1'000}};  // 5 percent on one
  machine.live(budget, 400);
  EXPECT_NEAR(machine.share(), 0.2, 0.02);
}

TEST(Budget, AlwaysSomeSamplesInATurn) {
  Budget budget(0.001, kPeriod, 1);
  Machine machine{{5'000'000}};  // half of the CPU
  machine.live(budget, 1000);
  EXPECT_GT(machine.share(), 0.001);
  const Budget::Turn turn = budget.next(machine.runs, kRunNs, 1'000'000);
  EXPECT_GE(turn.on_ns, 10 * kPeriod);
}

TEST(Budget, TurnsHaveNoRhythm) {
  Budget budget(0.01, kPeriod, 1);
  std::vector<uint64_t> runs = {0};
  std::vector<uint64_t> lengths;
  Budget::Turn turn = budget.first();
  for (int i = 0; i < 20; ++i) {
    runs[0] += turn.on_ns / 2000;  // 500,000 a second
    turn = budget.next(runs, kRunNs, turn.on_ns);
    lengths.push_back(turn.off_ns);
  }
  std::ranges::sort(lengths);
  EXPECT_GT(lengths.back(), lengths.front() * 3 / 2);
}

constexpr uint64_t kDearTurning = 5'000'000;

// Where it is dear to turn hooks off and on it is done more seldom as time goes on, and they are on
// for as large a part of the time.
TEST(Budget, WhereTurningIsDearTurnsBecomeLonger) {
  for (const uint64_t turning_ns : {uint64_t{0}, kDearTurning}) {
    Budget budget(0.01, kPeriod, 1);
    Machine machine{.runs_per_s = {500'000}, .turning_ns = turning_ns};  // five times their share
    machine.live(budget, 0.05);                                          // one cycle
    EXPECT_LT(machine.longest_s, 1.6) << "the first are short: so may the recording be";
    machine.live(budget, 1000);
    EXPECT_NEAR(machine.share(), 0.2, 0.01);
    EXPECT_EQ(machine.longest_s > 4, turning_ns == kDearTurning) << machine.longest_s;
  }
}

// They take 1.1 times their share: a pause now and then would save less than it costs.
TEST(Budget, WhatIsNotWorthTurningStaysOn) {
  for (const uint64_t turning_ns : {uint64_t{0}, kDearTurning}) {
    Budget budget(0.01, kPeriod, 1);
    Machine machine{.runs_per_s = {110'000}, .turning_ns = turning_ns};
    machine.live(budget, 20);
    EXPECT_EQ(machine.off_s == 0, turning_ns == kDearTurning);
    EXPECT_NEAR(budget.takes(), turning_ns == kDearTurning ? 0.011 : 0.01, 1e-4);
  }
}

// Where those that cost most are on no more, a pause that was for them is not waited for.
TEST(Budget, OtherHooksHaveAShortTurnOfTheirOwn) {
  Budget budget(0.001, kPeriod, 1);
  Machine machine{{3'000'000}};
  machine.live(budget, 1);
  EXPECT_LT(budget.duty(), 0.01);
  const Budget::Turn turn = budget.anew();
  EXPECT_EQ(turn.off_ns, 0);
  EXPECT_NEAR(static_cast<double>(turn.on_ns), 20 * kPeriod, kPeriod);
  EXPECT_LT(budget.duty(), 0.01);  // by which the clock hurries, as it did
  machine.runs[0] += 150;          // three quarters of their share
  EXPECT_EQ(budget.next(machine.runs, kRunNs, turn.on_ns).off_ns, 0);
}

TEST(Budget, WhenTheStormIsOverTheyStayOnAgain) {
  Budget budget(0.01, kPeriod, 1);
  Machine machine{{1'000'000}};
  machine.live(budget, 20);
  EXPECT_LT(budget.duty(), 0.2);
  machine.runs_per_s = {1'000};
  Machine calm = machine;
  calm.live(budget, 60);
  EXPECT_EQ(budget.duty(), 1);
}

}  // namespace
}  // namespace pkprof
