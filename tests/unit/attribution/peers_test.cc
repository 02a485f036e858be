// SPDX-License-Identifier: Apache-2.0
// Who is at the other end of packets: one number for each process and for each address.
#include "attribution/usage/peers.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <map>

namespace pkprof {
namespace {

constexpr uint64_t client = uint64_t{10} << 32;
constexpr uint64_t server = uint64_t{20} << 32;

class PeersTest : public testing::Test {
 protected:
  PeersTest() {
    peers_.ask(
        [this](uint64_t number) {
          ++asked_;
          const auto it = told_.find(number);
          return it == told_.end() ? std::nullopt : std::optional(it->second);
        },
        [this](uint64_t object) {
          const auto it = holders_.find(object);
          return it == holders_.end() ? 0 : it->second;
        });
  }
  // What the kernel side tells of a number.
  void tell(uint64_t number, const char* address, uint64_t object = 0) {
    pk_peer& peer = told_[number];
    peer.family = AF_INET;
    ASSERT_EQ(inet_pton(AF_INET, address, peer.address), 1);
    peer.object = object;
  }

  std::map<uint64_t, pk_peer> told_;
  std::map<uint64_t, uint64_t> holders_;
  int asked_ = 0;
  Peers peers_;
};

TEST_F(PeersTest, OneElsewhereIsAnAddress) {
  tell(1, "192.0.2.7");
  EXPECT_EQ(peers_.meet(1), 1U);
  EXPECT_EQ(peers_.process_of(1), 0U);
  EXPECT_EQ(peers_.label_of(1).comm, "192.0.2.7");
  EXPECT_EQ(peers_.label_of(1).kind, LabelKind::remote);
  EXPECT_EQ(peers_.meet(1), 1U);
  EXPECT_EQ(asked_, 1) << "it may be forgotten by now";
}

TEST_F(PeersTest, ConnectionsOfAProcessAreOnePeer) {
  for (uint64_t number = 1; number <= 3; ++number) {
    tell(number, "127.0.0.1", PK_OBJECT | number);
    holders_[PK_OBJECT | number] = number < 3 ? client : server;
  }
  EXPECT_EQ(peers_.meet(1), 1U);
  EXPECT_EQ(peers_.meet(2), 1U);
  EXPECT_EQ(peers_.meet(3), 3U);
  EXPECT_EQ(peers_.process_of(1), client);
  EXPECT_EQ(peers_.process_of(3), server);
}

// A server's socket is nobody's before it is accepted.
TEST_F(PeersTest, WhoHoldsASocketMayBeKnownLater) {
  tell(1, "127.0.0.1", PK_OBJECT | 1);
  tell(2, "127.0.0.1", PK_OBJECT | 2);
  EXPECT_EQ(peers_.meet(1), 1U);
  EXPECT_EQ(peers_.meet(2), 2U);
  EXPECT_EQ(peers_.process_of(1), 0U);
  EXPECT_EQ(peers_.label_of(1).comm, "127.0.0.1") << "as long as nobody is";
  holders_[PK_OBJECT | 1] = holders_[PK_OBJECT | 2] = server;
  EXPECT_EQ(peers_.meet(2), 2U);
  EXPECT_EQ(peers_.meet(1), 2U) << "one number from now on";
  EXPECT_EQ(peers_.process_of(1), server) << "of rows of before, too";
}

TEST_F(PeersTest, WhatWasForgottenIsNobody) {
  EXPECT_EQ(peers_.meet(7), 7U);
  EXPECT_EQ(peers_.label_of(7).reason, "forgotten");
  EXPECT_EQ(peers_.label_of(0).reason, "untracked");
  EXPECT_EQ(peers_.process_of(7), 0U);
}

// As many connections as there may be, and nobody known at any.
TEST_F(PeersTest, OfTooManyConnectionsTheAddressStays) {
  constexpr uint64_t many = 100'000;
  uint64_t last = 0;
  for (uint64_t number = 1; number <= many; ++number) {
    tell(number, "127.0.0.1", PK_OBJECT | number);
    last = peers_.meet(number);
    EXPECT_EQ(peers_.label_of(last).comm, "127.0.0.1") << number;
  }
  EXPECT_LT(last, many) << "they are one";
  tell(many + 1, "192.0.2.7");
  EXPECT_EQ(peers_.label_of(peers_.meet(many + 1)).comm, "192.0.2.7");
  tell(many + 2, "127.0.0.1", PK_OBJECT | (many + 2));
  holders_[PK_OBJECT | (many + 2)] = server;
  EXPECT_EQ(peers_.process_of(peers_.meet(many + 2)), server);
}

}  // namespace
}  // namespace pkprof
