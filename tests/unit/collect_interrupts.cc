// SPDX-License-Identifier: Apache-2.0
// What interrupts took while their hooks were off.
#include <gtest/gtest.h>

#include <numeric>

#include "collect/interrupts.h"

namespace pkprof {
namespace {

constexpr uint64_t ms = 1'000'000;

std::pair<pk_key, pk_count> row(uint8_t kind, uint64_t ran_on, uint64_t ns) {
  pk_key key{};
  key.kind = kind;
  key.ran_on = ran_on;
  return {key, {ns, 1}};
}

uint64_t sum(const UnseenInterrupts::Counts& counts) {
  return std::accumulate(counts.begin(), counts.end(), uint64_t{0},
                         [](uint64_t s, const auto& c) { return s + c.second.ns; });
}

TEST(UnseenInterrupts, NothingIsChangedWhereTheHooksWereOnThroughout) {
  UnseenInterrupts unseen;
  UnseenInterrupts::Counts counts = {row(PK_USER, 7, 90 * ms), row(PK_INTERRUPT, 7, 10 * ms)};
  unseen.estimate(counts, 1000 * ms, 0);
  EXPECT_EQ(counts[0].second.ns, 90 * ms);
  EXPECT_EQ(counts[1].second.ns, 10 * ms);
}

TEST(UnseenInterrupts, PausesTookWhatTurnsTook) {
  UnseenInterrupts unseen;
  UnseenInterrupts::Counts counts = {row(PK_USER, 7, 600 * ms), row(PK_SOFTIRQ, 7, 200 * ms),
                                     row(PK_INTERRUPT, 7, 10 * ms), row(PK_INTERRUPT, 7, 30 * ms),
                                     row(PK_USER, 8, 160 * ms)};
  unseen.estimate(counts, 250 * ms, 750 * ms);
  EXPECT_EQ(counts[2].second.ns, 40 * ms);
  EXPECT_EQ(counts[3].second.ns, 120 * ms);
  // From what was on the CPU with these interrupts, each in proportion.
  EXPECT_EQ(counts[0].second.ns, 510 * ms);
  EXPECT_EQ(counts[1].second.ns, 170 * ms);
  EXPECT_EQ(counts[4].second.ns, 160 * ms);
  EXPECT_EQ(sum(counts), 1000 * ms);
}

TEST(UnseenInterrupts, NoMoreIsTakenThanThereIs) {
  UnseenInterrupts unseen;
  UnseenInterrupts::Counts counts = {row(PK_USER, 7, 3 * ms + 1), row(PK_INTERRUPT, 7, 9 * ms),
                                     row(PK_INTERRUPT, 7, 2 * ms), row(PK_INTERRUPT, 9, ms)};
  const uint64_t before = sum(counts);
  unseen.estimate(counts, 10 * ms, 990 * ms);
  EXPECT_EQ(counts[0].second.ns, 0U);
  EXPECT_EQ(counts[3].second.ns, ms);
  EXPECT_EQ(sum(counts), before);
}

TEST(UnseenInterrupts, APauseIsMadeUpForWithTheNextTurn) {
  UnseenInterrupts unseen;
  UnseenInterrupts::Counts none = {row(PK_USER, 7, 500 * ms)};
  unseen.estimate(none, 0, 500 * ms);
  EXPECT_EQ(none[0].second.ns, 500 * ms);
  UnseenInterrupts::Counts counts = {row(PK_USER, 7, 450 * ms), row(PK_INTERRUPT, 7, 50 * ms)};
  unseen.estimate(counts, 500 * ms, 0);
  EXPECT_EQ(counts[0].second.ns, 400 * ms);
  EXPECT_EQ(counts[1].second.ns, 100 * ms);
}

TEST(InterruptNames, ANumberWithoutANameIsItsOwn) {
  EXPECT_EQ(InterruptNames().of(65535), "65535");
}

}  // namespace
}  // namespace pkprof
