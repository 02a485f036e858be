// SPDX-License-Identifier: Apache-2.0
#include "attribution/parties.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

namespace pkprof {
namespace {

using Vote = std::pair<pk_vote_key, pk_vote>;

constexpr uint64_t kAda = 1ULL << 32, kBob = 2ULL << 32;
constexpr uint64_t kFile = PK_OBJECT | 10, kDisk = PK_OBJECT | 11, kOther = PK_OBJECT | 12;

Vote vote(uint64_t object, uint64_t party, uint64_t weight) {
  return {{object, party}, {weight, 0, 0, 0, 0}};
}
Vote fading(uint64_t object, uint64_t party, uint64_t weight) {
  return {{object, party}, {weight, 1, 0, 0, 0}};
}
Vote anew(uint64_t object, uint64_t party, uint64_t weight) {
  return {{object, party}, {weight, 0, 1, 0, 0}};
}

Vote failing(uint64_t object, uint64_t party) {
  return {{object, party}, {1, 0, 0, 1, 0}};
}

std::map<uint64_t, double> of(const Parties& parties, uint64_t object, uint64_t owner = 0,
                              bool finally = false) {
  std::map<uint64_t, double> shares;
  for (const auto& [label, part] : parties.of(object, [&](uint64_t) { return owner; }, finally))
    shares[label] += part;
  return shares;
}

TEST(Parties, NobodyIsKnown) {
  Parties parties;
  EXPECT_TRUE(of(parties, kFile).empty());
}

// Votes say for which of its clients an owner is at work.
TEST(Parties, TheOwnerWhereNobodyVoted) {
  Parties parties;
  EXPECT_EQ(of(parties, kFile, kBob), (std::map<uint64_t, double>{{kBob, 1}}));
  parties.add(std::vector{vote(kFile, kAda, 1)});
  EXPECT_EQ(of(parties, kFile, kBob), (std::map<uint64_t, double>{{kAda, 1}}));
}

TEST(Parties, WhatCountsOnlyInTheEnd) {
  Parties parties;
  parties.add(std::vector{failing(kFile, kDisk), vote(kDisk, kAda, 1)});
  EXPECT_TRUE(of(parties, kFile).empty());
  EXPECT_EQ(of(parties, kFile, 0, true), (std::map<uint64_t, double>{{kAda, 1}}));
  EXPECT_EQ(of(parties, kFile, kBob, true), (std::map<uint64_t, double>{{kBob, 1}}));
  parties.add(std::vector{vote(kFile, kBob, 1)});
  EXPECT_EQ(of(parties, kFile, 0, true), (std::map<uint64_t, double>{{kBob, 1}}));
}

// A file that is never clean: what was written long ago was for those who wrote then.
TEST(Parties, PagesOfLongAgoCountLess) {
  Parties parties;
  parties.add(std::vector{anew(kFile, kAda, 1), vote(kFile, kAda, 999)});
  for (int second = 0; second < 30; ++second) parties.add(std::vector{vote(kFile, kBob, 10)});
  const auto soon = of(parties, kFile);
  EXPECT_NEAR(soon.at(kAda), 0.69, 0.02);
  for (int second = 0; second < 300; ++second) parties.add(std::vector{vote(kFile, kBob, 10)});
  EXPECT_LT(of(parties, kFile)[kAda], 0.01);
  // Nobody else came: the last one stays, whenever that was.
  for (int second = 0; second < 1000; ++second) parties.add({});
  EXPECT_NEAR(of(parties, kFile)[kBob], 1, 0.01);
}

TEST(Parties, SplitByVotes) {
  Parties parties;
  parties.add(std::vector{vote(kFile, kAda, 2), vote(kFile, kBob, 1), vote(kFile, kAda, 1)});
  EXPECT_EQ(of(parties, kFile), (std::map<uint64_t, double>{{kAda, 0.75}, {kBob, 0.25}}));
}

TEST(Parties, WhatBeginsAnewForgets) {
  Parties parties;
  parties.add(std::vector{vote(kFile, kAda, 1000)});
  parties.add(std::vector{vote(kFile, kBob, 3), anew(kFile, kAda, 1)});
  EXPECT_EQ(of(parties, kFile), (std::map<uint64_t, double>{{kAda, 0.25}, {kBob, 0.75}}));
}

TEST(Parties, OldVotesFadeWhereTheyAreMeantTo) {
  Parties parties;
  parties.add(std::vector{fading(kDisk, kAda, 100), vote(kFile, kAda, 100)});
  parties.add({});
  parties.add(std::vector{fading(kDisk, kBob, 1), vote(kFile, kBob, 100)});
  EXPECT_NEAR(of(parties, kDisk)[kBob], 0.5, 1e-9);
  EXPECT_NEAR(of(parties, kFile)[kBob], 0.5, 0.02);
}

TEST(Parties, AnObjectsPartiesAreAskedInTurn) {
  Parties parties;
  parties.add(std::vector{vote(kDisk, kFile, 3), vote(kDisk, kBob, 1), vote(kFile, kAda, 1),
                          vote(kFile, kBob, 1)});
  EXPECT_EQ(of(parties, kDisk), (std::map<uint64_t, double>{{kAda, 0.375}, {kBob, 0.625}}));
}

TEST(Parties, APartThatNobodyIsKnownForStaysOne) {
  Parties parties;
  parties.add(std::vector{vote(kDisk, kOther, 1), vote(kDisk, kBob, 3)});
  EXPECT_EQ(of(parties, kDisk), (std::map<uint64_t, double>{{0, 0.25}, {kBob, 0.75}}));
}

TEST(Parties, CirclesEnd) {
  Parties parties;
  parties.add(std::vector{vote(kDisk, kFile, 1), vote(kFile, kDisk, 1), vote(kFile, kAda, 1)});
  const auto shares = of(parties, kDisk);
  EXPECT_GT(shares.at(kAda), 0.8);
  double all = 0;
  for (const auto& [label, part] : shares) all += part;
  EXPECT_NEAR(all, 1, 1e-9);
}

TEST(Parties, MemoryIsBounded) {
  Parties parties(100);
  for (uint64_t round = 0; round < 50; ++round) {
    std::vector<Vote> votes;
    votes.reserve(20);
    for (uint64_t i = 0; i < 20; ++i) votes.push_back(vote(PK_OBJECT | (round * 20 + i), kAda, 1));
    parties.add(votes);
    EXPECT_FALSE(of(parties, PK_OBJECT | (round * 20)).empty());
  }
  EXPECT_GT(parties.forgotten(), 800);
  EXPECT_TRUE(of(parties, PK_OBJECT | 3).empty());
}

TEST(Split, AddsUp) {
  const std::vector<Parties::Share> thirds = {{kAda, 1.0 / 3}, {kBob, 1.0 / 3}, {0, 1.0 / 3}};
  for (const uint64_t whole : {0ULL, 1ULL, 2ULL, 10ULL, 1'000'000'007ULL}) {
    uint64_t sum = 0;
    for (const uint64_t part : split(whole, thirds)) {
      EXPECT_NEAR(static_cast<double>(part), static_cast<double>(whole) / 3, 1);
      sum += part;
    }
    EXPECT_EQ(sum, whole);
  }
}

TEST(Parties, AfterAPauseWhoWasThereJustNowIsForgottenAndWhoMadePagesDirtyIsNot) {
  Parties parties;
  const Vote votes[] = {vote(kFile, kAda, 1), fading(kDisk, kAda, 1), failing(kOther, kBob)};
  parties.add(votes);
  parties.forget_fading();
  EXPECT_EQ(of(parties, kFile), (std::map<uint64_t, double>{{kAda, 1}}));
  EXPECT_TRUE(of(parties, kDisk).empty());
  EXPECT_TRUE(of(parties, kOther, 0, true).empty());
}

}  // namespace
}  // namespace pkprof
