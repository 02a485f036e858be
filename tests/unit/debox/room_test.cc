// SPDX-License-Identifier: Apache-2.0
// Bounds of the memory for records, of programs that ask for it without end.
#include "debox/room.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <set>

namespace pkprof {
namespace {

constexpr uint64_t mib = uint64_t{1} << 20;

class DeboxRoomTest : public testing::Test {
 protected:
  // As a thread that asks: what it is told.
  int ask(uint32_t pid, uid_t user, uint64_t bytes) {
    const DeboxRoom::Holder holder{.pid = pid, .user = user, .bytes = bytes, .memory = ++last_};
    const int error = room_.refuses(holder);
    if (error) return error;
    room_.add(holder);
    there_.insert(holder.memory);
    return 0;
  }
  // How many threads are served, of processes that have `each`, before one is refused.
  uint64_t ask_until_refused(uid_t user, uint64_t bytes, uint32_t each) {
    for (uint64_t n = 0;; ++n) {
      error_ = ask(static_cast<uint32_t>(1 + n / each), user, bytes);
      if (error_) return n;
    }
  }

  uint32_t last_ = 0;
  std::set<uint32_t> there_;
  DeboxRoom room_{[this](uint32_t memory) { return there_.contains(memory); }};
  int error_ = 0;
};

TEST_F(DeboxRoomTest, AProcessIsBounded) {
  EXPECT_EQ(ask_until_refused(0, 8 * mib, UINT32_MAX), DeboxRoom::of_process.bytes / (8 * mib));
  EXPECT_EQ(error_, EDQUOT);
  EXPECT_EQ(ask(2, 0, 8 * mib), 0) << "another one is not";
}

TEST_F(DeboxRoomTest, AProcesssThreadsAreBounded) {
  EXPECT_EQ(ask_until_refused(0, 4096, UINT32_MAX), DeboxRoom::of_process.threads);
  EXPECT_EQ(error_, EDQUOT);
}

TEST_F(DeboxRoomTest, AUserIsBounded) {
  EXPECT_EQ(ask_until_refused(1000, 8 * mib, 1), DeboxRoom::of_user.bytes / (8 * mib));
  EXPECT_EQ(error_, EDQUOT);
  EXPECT_EQ(ask(1, 1001, 8 * mib), 0) << "another one is not";
  EXPECT_EQ(ask(1, 0, 8 * mib), 0);
}

TEST_F(DeboxRoomTest, AUsersThreadsAreBounded) {
  EXPECT_EQ(ask_until_refused(1000, 4096, 1), DeboxRoom::of_user.threads);
  EXPECT_EQ(error_, EDQUOT);
}

TEST_F(DeboxRoomTest, AllAreBounded) {
  EXPECT_EQ(ask_until_refused(0, 8 * mib, 1), DeboxRoom::in_all.bytes / (8 * mib));
  EXPECT_EQ(error_, ENOMEM);
  EXPECT_EQ(ask(1, 1000, 8 * mib), ENOMEM);
}

// Whoever keeps memory that is served no more has had it.
TEST_F(DeboxRoomTest, WhatIsGoneLeavesRoom) {
  const uint64_t threads = ask_until_refused(1000, 8 * mib, 1);
  EXPECT_EQ(ask(1, 1000, 8 * mib), EDQUOT);
  there_.erase(3);
  EXPECT_EQ(ask(1, 1000, 8 * mib), 0);
  EXPECT_EQ(ask(1, 1000, 8 * mib), EDQUOT);
  there_.clear();
  EXPECT_EQ(ask_until_refused(1000, 8 * mib, 1), threads);
}

}  // namespace
}  // namespace pkprof
