// SPDX-License-Identifier: Apache-2.0
// What was measured by entry and exit, divided as samples say.
#include "attribution/measured.h"

#include <gtest/gtest.h>

#include <map>

namespace pkprof {
namespace {

constexpr uint64_t ms = 1'000'000;

std::pair<Row, pk_count> row(uint8_t kind, uint64_t ran_on, uint64_t served, uint64_t ns,
                             uint8_t vec = PK_VEC_NONE) {
  Row r{};
  r.key.kind = kind;
  r.key.ran_on = ran_on;
  r.key.served = served;
  r.key.vec = vec;
  r.key.syscall = PK_NO_SYSCALL;
  return {r, {ns, 1}};
}

std::pair<Row, pk_count> turns(uint64_t ran_on, uint64_t ns) {
  auto measured = row(PK_MEASURED, ran_on, 0, ns, PK_EXACT_RUN);
  measured.first.key.syscall = 0;
  return measured;
}

std::pair<Row, pk_count> softirqs(uint64_t ran_on, uint8_t vec, uint64_t ns) {
  auto measured = row(PK_MEASURED, ran_on, 0, ns, PK_EXACT_SOFTIRQ);
  measured.first.key.syscall = vec;
  return measured;
}

uint64_t task(uint64_t number) {
  return number << 32;
}

constexpr uint64_t polling = uint64_t{77} << 32;

void scale(Rows& rows) {
  scale_to_measured(rows, {[](uint64_t label) { return label == polling; },
                           [](uint64_t label) { return label == polling; }});
}

uint64_t sum(const Rows& rows) {
  uint64_t ns = 0;
  for (const auto& [r, count] : rows) ns += count.ns;
  return ns;
}

TEST(Measured, SamplesDivideIt) {
  Rows rows = {turns(task(1), 100 * ms), row(PK_USER, task(1), task(1), 3 * ms),
               row(PK_OWN, task(1), task(1), ms)};
  scale(rows);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].second.ns, 75 * ms);
  EXPECT_EQ(rows[1].second.ns, 25 * ms);
}

// There may be a row for it all the same: what an idle CPU had no sample of is added, if only 0.
TEST(Measured, WhatNoSampleMetCountsOnce) {
  Rows rows = {turns(PK_IDLE, 10 * ms), row(PK_IDLING, PK_IDLE, PK_IDLE, 0), turns(task(1), 5 * ms),
               row(PK_USER, task(1), task(1), 0)};
  scale(rows);
  EXPECT_EQ(sum(rows), 15 * ms);
}

// What it hands on runs in a softirq now and then; its samples are those of its polling all the
// same.
TEST(Measured, AThreadThatPollsHasOneTime) {
  Rows rows = {turns(polling, 40 * ms), softirqs(polling, PK_VEC_NET_RX, 10 * ms),
               row(PK_SOFTIRQ, polling, task(1), 24 * ms, PK_VEC_NET_RX),
               row(PK_KTHREAD, polling, PK_KERNEL, ms)};
  scale(rows);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].second.ns, 48 * ms);
  EXPECT_EQ(rows[1].second.ns, 2 * ms);
}

TEST(Measured, WhatFoundNoRoomStays) {
  Rows rows = {turns(task(1), 10 * ms), row(PK_USER, task(1), task(1), ms),
               row(PK_OWN, PK_KERNEL, uint64_t{PK_UNCLAIMED} + PK_LOST, 7 * ms)};
  scale(rows);
  EXPECT_EQ(sum(rows), 17 * ms);
  EXPECT_EQ(rows[1].second.ns, 7 * ms);
}

// Thousands of processes come and go, and all have a part in what RCU puts off.
TEST(Measured, ManyTasksWithoutSamplesAreNotTimesTheirParties) {
  constexpr uint64_t many = 1000;
  Rows rows;
  for (uint64_t i = 1; i <= many; ++i) {
    rows.push_back(softirqs(task(i), PK_VEC_RCU, i * 1000));
    rows.push_back(row(PK_SOFTIRQ, task(many + 1), task(i), ms, PK_VEC_RCU));
  }
  rows.push_back(softirqs(task(many + 1), PK_VEC_RCU, many * ms));
  const uint64_t before = many * (many + 1) / 2 * 1000 + many * ms;
  scale(rows);
  EXPECT_EQ(sum(rows), before);
  EXPECT_LE(rows.size(), 3 * many);
  std::map<uint64_t, uint64_t> ran_on, served;
  for (const auto& [r, count] : rows) {
    if (r.key.ran_on == task(many + 1)) continue;
    ran_on[r.key.ran_on] += count.ns;
    served[r.key.served] += count.ns;
  }
  for (uint64_t i = 1; i <= many; ++i) {
    EXPECT_EQ(ran_on[task(i)], i * 1000) << i;
    EXPECT_NEAR(static_cast<double>(served[task(i)]), 500 * (many + 1), 1001) << i;
  }
}

}  // namespace
}  // namespace pkprof
