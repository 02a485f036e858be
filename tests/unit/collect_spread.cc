// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "collect/spread.h"

namespace pkprof {
namespace {

constexpr uint64_t kMs = 1'000'000;
constexpr uint64_t kBystander = 7ULL << 32;
constexpr uint64_t kOtherBystander = 8ULL << 32;
constexpr uint64_t kServer = 11ULL << 32;
constexpr uint64_t kClient = 12ULL << 32;

class SpreadTest : public testing::Test {
 protected:
  // A stack by its frames, outermost last; its number.
  uint64_t stack(std::vector<FrameId> frames) {
    stacks_.push_back(std::move(frames));
    return stacks_.size();
  }
  static Row row(uint64_t ran_on, uint64_t served, uint64_t kstack, uint8_t vec = PK_VEC_NET_RX) {
    Row r{};
    r.key.ran_on = ran_on;
    r.key.served = served;
    r.key.kstack = kstack;
    r.key.kind = PK_SOFTIRQ;
    r.key.vec = vec;
    r.key.basis = PK_BASIS_CONSUMED;
    return r;
  }
  static Row waiting(uint64_t ran_on, uint64_t kstack, uint8_t vec = PK_VEC_NET_RX) {
    Row r = row(ran_on, 0, kstack, vec);
    r.key.served_kind = PK_SERVED_UNWATCHED;
    return r;
  }
  static pk_count samples(uint64_t n) { return {n * kMs, n}; }
  static Row in_segment(Row r, uint8_t segment) {
    r.key.watched = segment;
    return r;
  }

  using When = Spread::When;
  void settle(When when = When::last) {
    spread_.settle(
        [this](uint64_t id) -> std::span<const FrameId> {
          if (id == 0 || id > stacks_.size()) return {};
          return stacks_[id - 1];
        },
        [this](const Row& r, const pk_count& c) {
          charged_[r.key.served] += c.ns;
          samples_ += c.samples;
          rows_.push_back(r);
        },
        when, 1, weight_);
  }
  [[nodiscard]] double share(uint64_t served) const {
    uint64_t all = 0;
    for (const auto& [label, ns] : charged_) all += ns;
    const auto it = charged_.find(served);
    return it == charged_.end() ? 0 : static_cast<double>(it->second) / static_cast<double>(all);
  }

  Spread spread_{10 * kMs};
  Spread::Weight weight_;
  std::vector<std::vector<FrameId>> stacks_;
  std::map<uint64_t, uint64_t> charged_;
  uint64_t samples_ = 0;
  std::vector<Row> rows_;
};

TEST_F(SpreadTest, ManySamplesOfOneStackGoToEachInProportion) {
  const uint64_t s = stack({1, 2, 3});
  spread_.seen(row(kBystander, kServer, s), samples(30));
  spread_.seen(row(kBystander, kClient, s), samples(10));
  spread_.unwatched(waiting(kBystander, s), samples(4000));
  settle();
  EXPECT_NEAR(share(kServer), 0.75, 0.01);
  EXPECT_NEAR(share(kClient), 0.25, 0.01);
  EXPECT_EQ(charged_[kServer] + charged_[kClient], 4000 * kMs);
  EXPECT_EQ(samples_, 4000U);
}

// A server is steady, and hooks are on throughout; then a client's burst has them turned off: the
// burst goes on in the pause, and the steady one's seconds before say nothing of it.
TEST_F(SpreadTest, APauseIsLikeTheEndOfTheTurnBeforeIt) {
  const uint64_t s = stack({1, 2, 3});
  spread_.seen(in_segment(row(kBystander, kServer, s), 1), samples(200));
  spread_.seen(in_segment(row(kBystander, kServer, s), 2), samples(10));
  spread_.seen(in_segment(row(kBystander, kClient, s), 2), samples(90));
  spread_.unwatched(waiting(kBystander, s), samples(1000));
  weight_ = [](uint8_t segment) { return segment == 2 ? 5 : 0; };
  settle(When::meanwhile);
  EXPECT_NEAR(share(kClient), 0.9, 0.01);
  EXPECT_EQ(charged_[kServer] + charged_[kClient], 1000 * kMs);
  // Where the turn before says nothing, all of them do.
  const uint64_t other = stack({7, 8, 9});
  spread_.seen(in_segment(row(kBystander, kServer, other, PK_VEC_NET_TX), 1), samples(20));
  spread_.unwatched(waiting(kBystander, other, PK_VEC_NET_TX), samples(10));
  charged_.clear();
  settle(When::meanwhile);
  EXPECT_EQ(charged_[kServer], 10 * kMs);
}

TEST_F(SpreadTest, WhatWasSeenCanBeForgotten) {
  const uint64_t s = stack({1, 2, 3});
  for (const When when : {When::meanwhile, When::interval, When::last}) {
    spread_.seen(row(kBystander, kServer, s), samples(500));
    settle(when);
  }
  spread_.seen(row(kBystander, kServer, s), samples(500));
  spread_.forget_seen();
  spread_.seen(row(kBystander, kClient, s), samples(20));
  spread_.unwatched(waiting(kBystander, s), samples(100));
  settle();
  EXPECT_EQ(charged_, (std::map<uint64_t, uint64_t>{{kClient, 100 * kMs}}));
}

TEST_F(SpreadTest, WhatWasSeenBeforeAPauseCountsWhereNothingSinceIsAlike) {
  const uint64_t receive = stack({10, 5, 2, 1});
  spread_.seen(row(kBystander, kServer, receive), samples(1000));
  settle(When::interval);
  spread_.put_behind([](uint64_t) { return std::vector<Parties::Share>(); });
  spread_.unwatched(waiting(kBystander, receive), samples(10));
  settle(When::interval);
  EXPECT_EQ(share(kServer), 1);
  charged_.clear();
  spread_.seen(row(kBystander, kClient, receive), samples(10));
  spread_.unwatched(waiting(kBystander, receive), samples(100));
  settle();
  EXPECT_EQ(share(kClient), 1);
}

TEST_F(SpreadTest, WhatWasSeenBeforeAPauseIsForWhomItsObjectsWereForThen) {
  constexpr uint64_t kSocket = PK_OBJECT | 3;
  constexpr uint64_t kUnknown = PK_OBJECT | 4;
  const uint64_t receive = stack({10, 5, 2, 1});
  const uint64_t send = stack({20, 15, 12, 11});
  Row seen = row(kBystander, kSocket, receive);
  seen.key.served_kind = PK_SERVED_OBJECT;
  spread_.seen(seen, samples(100));
  seen = row(kBystander, kUnknown, send, PK_VEC_NET_TX);
  seen.key.served_kind = PK_SERVED_OBJECT;
  spread_.seen(seen, samples(100));
  settle(When::interval);
  spread_.put_behind([](uint64_t object) {
    if (object == kUnknown) return std::vector<Parties::Share>();
    return std::vector<Parties::Share>{{kServer, 0.75}, {kClient, 0.25}};
  });
  spread_.unwatched(waiting(kBystander, receive), samples(40));
  settle(When::interval);
  EXPECT_NEAR(share(kServer), 0.75, 0.03);
  EXPECT_NEAR(share(kClient), 0.25, 0.03);
  for (const Row& r : rows_) EXPECT_EQ(r.key.served_kind, PK_SERVED_LABEL);
  rows_.clear();
  spread_.unwatched(waiting(kBystander, send, PK_VEC_NET_TX), samples(1));
  settle(When::interval);
  ASSERT_EQ(rows_.size(), 1U);
  EXPECT_EQ(rows_[0].key.served, kUnknown);
  EXPECT_EQ(rows_[0].key.served_kind, PK_SERVED_OBJECT);
}

TEST_F(SpreadTest, SoDoSingleSamplesOfManyStacks) {
  // Leaves differ, calls do not.
  for (uint32_t i = 0; i < 40; ++i)
    spread_.seen(row(kBystander, i % 4 ? kServer : kClient, stack({100 + i, 2, 3, 4})), samples(1));
  for (uint32_t i = 0; i < 1000; ++i)
    spread_.unwatched(waiting(kBystander, stack({1000 + i, 2, 3, 4})), samples(1));
  settle();
  EXPECT_NEAR(share(kServer), 0.75, 0.02);
  EXPECT_EQ(samples_, 1000U);
}

// As where profiles are handed over each second, and in each is one.
TEST_F(SpreadTest, SoDoesASingleSampleAtATime) {
  const uint64_t s = stack({1, 2, 3});
  for (int i = 0; i < 200; ++i) {
    spread_.seen(row(kBystander, kServer, s), samples(30));
    spread_.seen(row(kBystander, kClient, s), samples(10));
    spread_.unwatched(waiting(kBystander, s), samples(1));
    settle(When::interval);
  }
  EXPECT_NEAR(share(kServer), 0.75, 0.03);
}

TEST_F(SpreadTest, KeepsWhomItRanOnAndItsStackAndTakesTheRest) {
  const uint64_t s = stack({1, 2, 3});
  const uint64_t other = stack({9, 2, 3});
  Row seen = row(kBystander, kServer, s);
  seen.key.ustack = 77;
  seen.key.syscall = 45;
  spread_.seen(seen, samples(20));
  spread_.unwatched(waiting(kBystander, other), samples(1));
  settle();
  ASSERT_EQ(rows_.size(), 1U);
  EXPECT_EQ(rows_[0].key.ran_on, kBystander);
  EXPECT_EQ(rows_[0].key.kstack, other);
  EXPECT_EQ(rows_[0].key.ustack, 77U);
  EXPECT_EQ(rows_[0].key.syscall, 45U);
  EXPECT_EQ(rows_[0].key.served_kind, PK_SERVED_LABEL);
  EXPECT_EQ(rows_[0].key.basis, PK_BASIS_CONSUMED);
}

TEST_F(SpreadTest, CallsTellProtocolsApart) {
  spread_.seen(row(kBystander, kServer, stack({1, 20, 3, 4})), samples(50));
  spread_.seen(row(kBystander, kClient, stack({1, 30, 3, 4})), samples(50));
  spread_.unwatched(waiting(kBystander, stack({9, 20, 3, 4})), samples(100));
  settle();
  EXPECT_EQ(share(kServer), 1);
}

TEST_F(SpreadTest, WhomItRanOnTellsCpusApart) {
  const uint64_t s = stack({1, 2, 3});
  spread_.seen(row(kBystander, kServer, s), samples(50));
  spread_.seen(row(kOtherBystander, kClient, s), samples(50));
  spread_.unwatched(waiting(kOtherBystander, s), samples(100));
  settle();
  EXPECT_EQ(share(kClient), 1);
}

// Short turns show little of a process; others are no reason to forget what they showed before.
TEST_F(SpreadTest, WhatAProcessShowedBeforeSaysMoreThanOthers) {
  const uint64_t s = stack({1, 2, 3});
  for (int i = 0; i < 4; ++i) {
    spread_.seen(row(kBystander, kServer, s), samples(4));
    spread_.seen(row(kOtherBystander, kClient, s), samples(100));
    settle(When::meanwhile);
  }
  spread_.seen(row(kBystander, kServer, s), samples(4));
  spread_.seen(row(kOtherBystander, kClient, s), samples(100));
  spread_.unwatched(waiting(kBystander, s), samples(100));
  settle(When::meanwhile);
  EXPECT_EQ(share(kServer), 1);
}

// Fewer than decide by themselves.
TEST_F(SpreadTest, AFewOnTheSameWaySayMoreThanManyOnOthers) {
  const uint64_t s = stack({1, 2, 3, 4, 5});
  spread_.seen(row(kBystander, kServer, s), samples(5));
  spread_.seen(row(kOtherBystander, kClient, stack({6, 7, 8, 9, 5})), samples(1000));
  spread_.unwatched(waiting(kBystander, s), samples(1000));
  settle();
  EXPECT_GT(share(kServer), 0.95);
}

TEST_F(SpreadTest, ThatDecidesForTheLessTheFewerThereAre) {
  const uint64_t s = stack({1, 2});
  spread_.seen(row(kBystander, kServer, s, PK_VEC_NONE), samples(5));
  spread_.seen(row(kOtherBystander, kClient, s, PK_VEC_NONE), samples(95));
  spread_.unwatched(waiting(kBystander, s, PK_VEC_NONE), samples(1000));
  settle();
  // Half by what was seen on the process since the last time, a quarter by what was ever; the rest
  // as that stack on anyone, of which a twentieth is the server's.
  EXPECT_NEAR(share(kServer), 0.5 + 0.25 + 0.25 * 0.05, 0.01);
}

// What is alike may still come.
TEST_F(SpreadTest, ATraceOfWhatAProcessShowedBeforeDoesNotDecide) {
  const uint64_t s = stack({1, 2, 3});
  spread_.seen(row(kBystander, kServer, s), samples(2));
  settle(When::meanwhile);
  settle(When::meanwhile);
  spread_.unwatched(waiting(kBystander, s), samples(100));
  settle(When::meanwhile);
  EXPECT_TRUE(rows_.empty());
  spread_.seen(row(kBystander, kClient, s), samples(50));
  settle(When::meanwhile);
  EXPECT_EQ(share(kClient), 1);
}

TEST_F(SpreadTest, WhoWasNeverSeenIsChargedAsAnyone) {
  const uint64_t s = stack({1, 2, 3});
  spread_.seen(row(kBystander, kServer, s), samples(50));
  spread_.unwatched(waiting(kOtherBystander, s), samples(100));
  settle();
  EXPECT_EQ(share(kServer), 1);
  EXPECT_EQ(rows_[0].key.ran_on, kOtherBystander);
}

TEST_F(SpreadTest, WhatNothingIsLikeWaitsAndIsUnclaimedInTheEnd) {
  spread_.seen(row(kBystander, kServer, stack({1, 2, 3}), PK_VEC_NET_TX), samples(50));
  spread_.unwatched(waiting(kBystander, stack({7, 8, 9})), samples(3));
  settle(When::meanwhile);
  EXPECT_TRUE(rows_.empty());
  settle(When::last);
  ASSERT_EQ(rows_.size(), 1U);
  EXPECT_EQ(rows_[0].key.served, uint64_t{PK_UNCLAIMED} + PK_UNWATCHED);
  EXPECT_EQ(charged_.begin()->second, 3 * kMs);
}

TEST_F(SpreadTest, WhatWasSeenBeforeIsForgotten) {
  const uint64_t s = stack({1, 2, 3});
  spread_.seen(row(kBystander, kServer, s), samples(50));
  settle(When::meanwhile);
  spread_.seen(row(kBystander, kClient, s), samples(50));
  spread_.unwatched(waiting(kBystander, s), samples(10));
  settle(When::meanwhile);
  EXPECT_EQ(share(kClient), 1);
}

TEST_F(SpreadTest, ARecordingThatEndsInAPauseIsChargedByWhatWasSeenBefore) {
  const uint64_t s = stack({1, 2, 3});
  spread_.seen(row(kBystander, kServer, s), samples(50));
  settle(When::meanwhile);
  spread_.unwatched(waiting(kBystander, s), samples(10));
  settle(When::last);
  EXPECT_EQ(share(kServer), 1);
}

// However long it is, what was seen last of its kind counts, and nothing older.
TEST_F(SpreadTest, SoIsOneThatEndsInALongPause) {
  const uint64_t s = stack({1, 2, 3});
  const uint64_t other = stack({7, 8, 9});
  spread_.seen(row(kBystander, kServer, s), samples(50));
  spread_.seen(row(kBystander, kServer, other, PK_VEC_NET_TX), samples(50));
  for (int i = 0; i < 3; ++i) {
    settle(When::meanwhile);
    // Others are seen all the time.
    spread_.seen(row(kBystander, kClient, other, PK_VEC_NET_TX), samples(50));
    spread_.unwatched(waiting(kBystander, s), samples(10));
  }
  spread_.unwatched(waiting(kBystander, other, PK_VEC_NET_TX), samples(30));
  settle(When::last);
  EXPECT_EQ(charged_[kServer], 30 * kMs);
  EXPECT_EQ(charged_[kClient], 30 * kMs);
}

// What was seen is remembered without its place in the timeline, or an hour's would be kept apart.
TEST_F(SpreadTest, WhatWasSeenIsOneRowInAllSlots) {
  Row seen = row(kBystander, kServer, stack({1, 2, 3}));
  for (seen.slot = 1; seen.slot <= 60; ++seen.slot) {
    spread_.seen(seen, samples(20));
    settle(When::meanwhile);
  }
  int rows = 0;
  spread_.each_row([&](const Row&) { ++rows; });
  EXPECT_EQ(rows, 2) << "of the last time, and of all before";
  Row wants = waiting(kBystander, seen.key.kstack);
  wants.slot = 61;
  spread_.unwatched(wants, samples(10));
  settle();
  ASSERT_FALSE(rows_.empty());
  EXPECT_EQ(rows_.back().slot, 61U) << "what is charged keeps its own";
  EXPECT_EQ(charged_[kServer], 10 * kMs);
}

TEST_F(SpreadTest, AnIntervalIsChargedByWhatWasSeenInThoseBefore) {
  const uint64_t s = stack({1, 2, 3});
  spread_.seen(row(kBystander, kServer, s), samples(50));
  settle(When::interval);
  settle(When::interval);
  spread_.unwatched(waiting(kBystander, s), samples(10));
  spread_.unwatched(waiting(kBystander, stack({7, 8, 9}), PK_VEC_NET_TX), samples(3));
  settle(When::interval);
  EXPECT_EQ(charged_[kServer], 10 * kMs);
  EXPECT_EQ(charged_[uint64_t{PK_UNCLAIMED} + PK_UNWATCHED], 3 * kMs);
}

TEST_F(SpreadTest, WhatIntervalsSawFades) {
  const uint64_t s = stack({1, 2, 3});
  spread_.seen(row(kBystander, kServer, s), samples(64));
  settle(When::interval);
  spread_.seen(row(kBystander, kClient, s), samples(48));
  spread_.unwatched(waiting(kBystander, s), samples(1000));
  settle(When::interval);
  EXPECT_NEAR(share(kServer), 0.5, 0.01);
  for (int i = 0; i < 40; ++i) settle(When::interval);
  spread_.unwatched(waiting(kBystander, s), samples(1));
  charged_.clear();
  settle(When::interval);
  EXPECT_EQ(share(uint64_t{PK_UNCLAIMED} + PK_UNWATCHED), 1);
}

// However often profiles are handed over.
TEST_F(SpreadTest, WhatIntervalsSawFadesByTheClock) {
  const auto left_after = [this](int calls, double seconds) {
    Spread spread(10 * kMs);
    spread.seen(row(kBystander, kServer, 1), samples(640));
    std::map<uint64_t, uint64_t> charged;
    const auto settle = [&] {
      spread.settle([](uint64_t) { return std::span<const FrameId>{}; },
                    [&](const Row& r, const pk_count& c) { charged[r.key.served] += c.ns; },
                    When::interval, seconds);
    };
    for (int i = 0; i < calls; ++i) settle();
    spread.seen(row(kBystander, kClient, 1), samples(100));
    spread.unwatched(waiting(kBystander, 1), samples(1000));
    settle();
    return static_cast<double>(charged[kServer]) / static_cast<double>(charged[kClient]);
  };
  EXPECT_NEAR(left_after(4, 1), 6.4 * 0.316, 0.02);
  EXPECT_NEAR(left_after(40, 0.1), 6.4 * 0.316, 0.02);
  EXPECT_NEAR(left_after(1, 4), 6.4 * 0.316, 0.02);
}

TEST_F(SpreadTest, AStacksNumberIsNoVector) {
  // Seen under stack 1 with one vector; what waits is under another stack, whose vector is the
  // number of the first.
  for (uint64_t number = 1; number <= 12; ++number) {
    charged_.clear();
    Spread spread(10 * kMs);
    const auto nothing = [](uint64_t) { return std::span<const FrameId>{}; };
    spread.seen(row(kBystander, kServer, number ^ 3, PK_VEC_NONE), samples(50));
    spread.unwatched(waiting(kOtherBystander, 99, static_cast<uint8_t>(number)), samples(1));
    spread.settle(
        nothing, [this](const Row& r, const pk_count& c) { charged_[r.key.served] += c.ns; },
        When::last);
    EXPECT_EQ(charged_.size(), 1U);
    EXPECT_EQ(charged_.count(kServer), 0U) << number;
  }
}

TEST_F(SpreadTest, KernelThreadsAreAlikeOnlyAtTheSameWork) {
  // All of them have the outer frames 4, 5 and 6.
  const auto at_work = [this](uint64_t function, uint64_t served, FrameId leaf) {
    Row r = row(kBystander, served, stack({leaf, 3, 4, 5, 6}), PK_VEC_NONE);
    r.key.kind = PK_WORK;
    r.key.ustack = function;
    return r;
  };
  spread_.seen(at_work(100, kServer, 1), samples(20));
  spread_.seen(at_work(200, kClient, 1), samples(20));
  Row other = at_work(200, 0, 2);
  other.key.served_kind = PK_SERVED_UNWATCHED;
  spread_.unwatched(other, samples(10));
  Row without_stack = other;
  without_stack.key.kstack = 0;
  spread_.unwatched(without_stack, samples(10));
  Row unknown = at_work(300, 0, 2);
  unknown.key.served_kind = PK_SERVED_UNWATCHED;
  spread_.unwatched(unknown, samples(10));
  settle();
  EXPECT_EQ(charged_[kClient], 20 * kMs);
  EXPECT_EQ(charged_[uint64_t{PK_UNCLAIMED} + PK_UNWATCHED], 10 * kMs);
  EXPECT_EQ(charged_.size(), 2U);
}

TEST_F(SpreadTest, AStackThatFoundNoRoomGoesByItsVector) {
  spread_.seen(row(kBystander, kServer, stack({1, 2, 3})), samples(50));
  spread_.unwatched(waiting(kBystander, 0), samples(10));
  settle();
  EXPECT_EQ(share(kServer), 1);
}

}  // namespace
}  // namespace pkprof
