// SPDX-License-Identifier: Apache-2.0
// What interrupts took while their hooks were off.
#include <gtest/gtest.h>

#include <numeric>

#include "collect/interrupts.h"

namespace pkprof {
namespace {

constexpr uint64_t ms = 1'000'000;

std::pair<pk_key, pk_count> row(uint8_t kind, uint64_t ran_on, uint64_t ns, uint64_t served = 0) {
  pk_key key{};
  key.kind = kind;
  key.ran_on = ran_on;
  key.served = served;
  return {key, {ns, 1}};
}

uint64_t sum(const UnseenInterrupts::Counts& counts) {
  return std::accumulate(counts.begin(), counts.end(), uint64_t{0},
                         [](uint64_t s, const auto& c) { return s + c.second.ns; });
}

// Of a kind on a process for another one, in milliseconds.
uint64_t of(const UnseenInterrupts::Counts& counts, uint8_t kind, uint64_t ran_on,
            uint64_t served = 0) {
  uint64_t ns = 0;
  for (const auto& [key, count] : counts)
    if (key.kind == kind && key.ran_on == ran_on && key.served == served) ns += count.ns;
  return (ns + ms / 2) / ms;
}

TEST(UnseenInterrupts, NothingIsChangedWhereTheHooksWereOnThroughout) {
  UnseenInterrupts unseen;
  UnseenInterrupts::Counts counts = {row(PK_USER, 7, 90 * ms), row(PK_INTERRUPT, 7, 10 * ms)};
  unseen.estimate(counts, 1000 * ms, 0);
  EXPECT_EQ(counts[0].second.ns, 90 * ms);
  EXPECT_EQ(counts[1].second.ns, 10 * ms);
  EXPECT_EQ(counts.size(), 2U);
}

TEST(UnseenInterrupts, PausesTookWhatTurnsTook) {
  UnseenInterrupts unseen;
  UnseenInterrupts::Counts counts = {row(PK_USER, 7, 600 * ms), row(PK_SOFTIRQ, 7, 200 * ms),
                                     row(PK_INTERRUPT, 7, 10 * ms, 1),
                                     row(PK_INTERRUPT, 7, 30 * ms, 2), row(PK_USER, 8, 160 * ms)};
  unseen.estimate(counts, 250 * ms, 750 * ms);
  EXPECT_EQ(of(counts, PK_INTERRUPT, 7, 1), 40U);
  EXPECT_EQ(of(counts, PK_INTERRUPT, 7, 2), 120U);
  // From what was on the CPU with these interrupts, each in proportion.
  EXPECT_EQ(of(counts, PK_USER, 7), 510U);
  EXPECT_EQ(of(counts, PK_SOFTIRQ, 7), 170U);
  EXPECT_EQ(of(counts, PK_USER, 8), 160U);
  EXPECT_EQ(sum(counts), 1000 * ms);
}

TEST(UnseenInterrupts, AreForWhomTheirObjectsWereForWhenThatWasTold) {
  constexpr uint64_t kCpu = PK_OBJECT | 5;
  UnseenInterrupts unseen;
  UnseenInterrupts::Counts counts = {row(PK_USER, 7, 900 * ms),
                                     row(PK_INTERRUPT, 7, 100 * ms, kCpu)};
  counts[1].first.served_kind = PK_SERVED_OBJECT;
  unseen.estimate(counts, 1000 * ms, 0);
  unseen.tell_learned([](uint64_t) { return std::vector<Parties::Share>{{1, 0.25}, {2, 0.75}}; });
  counts = {row(PK_USER, 7, 1000 * ms)};
  unseen.estimate(counts, 0, 1000 * ms);
  EXPECT_EQ(of(counts, PK_INTERRUPT, 7, 1), 25U);
  EXPECT_EQ(of(counts, PK_INTERRUPT, 7, 2), 75U);
  EXPECT_EQ(of(counts, PK_INTERRUPT, 7, kCpu), 0U);
  EXPECT_EQ(sum(counts), 1000 * ms);
}

TEST(UnseenInterrupts, NoMoreIsTakenThanThereIs) {
  UnseenInterrupts unseen;
  UnseenInterrupts::Counts counts = {row(PK_USER, 7, 3 * ms + 1), row(PK_INTERRUPT, 7, 9 * ms),
                                     row(PK_INTERRUPT, 7, 2 * ms), row(PK_INTERRUPT, 9, ms)};
  const uint64_t before = sum(counts);
  unseen.estimate(counts, 10 * ms, 990 * ms);
  EXPECT_EQ(counts[0].second.ns, 0U);
  EXPECT_EQ(of(counts, PK_INTERRUPT, 9), 1U);
  EXPECT_EQ(sum(counts), before);
}

// Also the last pause, after which no turn comes, and one that is longer than what is sampled in
// it.
TEST(UnseenInterrupts, APauseIsAsTheTurnBeforeIt) {
  UnseenInterrupts unseen;
  UnseenInterrupts::Counts turn = {row(PK_USER, 7, 450 * ms), row(PK_INTERRUPT, 7, 50 * ms, 1),
                                   row(PK_USER, 8, 500 * ms)};
  unseen.estimate(turn, 1000 * ms, 0);
  for (int second = 0; second < 4; ++second) {
    UnseenInterrupts::Counts pause = {row(PK_USER, 7, 800 * ms), row(PK_USER, 8, 100 * ms),
                                      row(PK_USER, 9, 100 * ms)};
    unseen.estimate(pause, 0, 1000 * ms);
    EXPECT_EQ(of(pause, PK_USER, 7), 720U);
    EXPECT_EQ(of(pause, PK_INTERRUPT, 7, 1), 80U);
    EXPECT_EQ(of(pause, PK_USER, 8), 100U);
    EXPECT_EQ(of(pause, PK_USER, 9), 100U);
    EXPECT_EQ(sum(pause), 1000 * ms);
  }
}

// Once interrupted, never sampled; and in the pause after it, busy.
TEST(UnseenInterrupts, OneInterruptSaysLittle) {
  UnseenInterrupts unseen;
  UnseenInterrupts::Counts turn = {row(PK_INTERRUPT, 7, ms / 200, 1), row(PK_USER, 8, 990 * ms),
                                   row(PK_INTERRUPT, 8, 10 * ms, 1)};
  unseen.estimate(turn, 100 * ms, 900 * ms);
  EXPECT_EQ(of(turn, PK_INTERRUPT, 8, 1), 100U);
  UnseenInterrupts::Counts pause = {row(PK_USER, 7, 1000 * ms), row(PK_USER, 8, 1000 * ms)};
  unseen.estimate(pause, 0, 1000 * ms);
  EXPECT_GE(of(pause, PK_USER, 7), 999U);
  EXPECT_EQ(of(pause, PK_INTERRUPT, 8, 1), 100U);
}

// A CPU that sleeps says for how long when it wakes.
TEST(UnseenInterrupts, OfIdleTimeByTheClock) {
  UnseenInterrupts unseen;
  UnseenInterrupts::Counts turn = {row(PK_IDLING, PK_IDLE, 270 * ms),
                                   row(PK_INTERRUPT, PK_IDLE, 30 * ms, 1)};
  unseen.estimate(turn, 1000 * ms, 0);
  UnseenInterrupts::Counts pause = {row(PK_IDLING, PK_IDLE, 20'000 * ms)};
  unseen.estimate(pause, 0, 1000 * ms);
  EXPECT_EQ(of(pause, PK_INTERRUPT, PK_IDLE, 1), 30U);
}

TEST(UnseenInterrupts, AShortTurnDoesNotCountForALongOne) {
  UnseenInterrupts unseen;
  UnseenInterrupts::Counts turn = {row(PK_USER, 7, 900 * ms), row(PK_INTERRUPT, 7, 100 * ms, 1)};
  unseen.estimate(turn, 1000 * ms, 0);
  UnseenInterrupts::Counts sliver = {row(PK_USER, 7, 1000 * ms), row(PK_INTERRUPT, 7, ms / 100, 1)};
  unseen.estimate(sliver, 12 * ms, 988 * ms);
  EXPECT_EQ(of(sliver, PK_INTERRUPT, 7, 1), 99U);
}

TEST(UnseenInterrupts, APauseBeforeAnyTurnIsMadeUpForWithThat) {
  UnseenInterrupts unseen;
  UnseenInterrupts::Counts none = {row(PK_USER, 7, 500 * ms)};
  unseen.estimate(none, 0, 500 * ms);
  EXPECT_EQ(of(none, PK_USER, 7), 500U);
  UnseenInterrupts::Counts counts = {row(PK_USER, 7, 450 * ms), row(PK_INTERRUPT, 7, 50 * ms)};
  unseen.estimate(counts, 500 * ms, 0);
  EXPECT_EQ(of(counts, PK_USER, 7), 400U);
  EXPECT_EQ(of(counts, PK_INTERRUPT, 7), 100U);
}

TEST(InterruptNames, ANumberWithoutANameIsItsOwn) {
  EXPECT_EQ(InterruptNames().of(65535), "65535");
}

}  // namespace
}  // namespace pkprof
