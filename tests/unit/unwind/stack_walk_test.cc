// SPDX-License-Identifier: Apache-2.0
#include "unwind/stack_walk.h"

#include <gtest/gtest.h>

#include <map>

namespace pkprof {
namespace {

constexpr uint64_t stack_at = 0x7ffd00001000;

class StackWalkTest : public testing::Test {
 protected:
  // Code from that address on is left by this rule.
  void code(uint64_t address, uint32_t rule) { rules_[address] = rule; }
  void word(size_t number, uint64_t value) {
    if (words_.size() <= number) words_.resize(number + 1);
    words_[number] = value;
  }
  // Of the frame at `ip`, which is in the result, too.
  std::vector<uint64_t> walk(uint64_t ip, bool exact = true, uint64_t fp = 0, size_t most = 120) {
    std::vector<uint64_t> frames = {ip};
    const std::string_view bytes(reinterpret_cast<const char*>(words_.data()), words_.size() * 8);
    end_ = walk_on(
        {ip, stack_at, fp, exact, bytes},
        [this](uint64_t address) -> std::optional<uint32_t> {
          const auto after = rules_.upper_bound(address);
          if (after == rules_.begin()) return std::nullopt;
          return std::prev(after)->second;
        },
        most, frames);
    return frames;
  }

  std::map<uint64_t, uint32_t> rules_;
  std::vector<uint64_t> words_;
  pk_stack_end end_ = PK_STACK_ASIDE;
};

using Frames = std::vector<uint64_t>;

TEST_F(StackWalkTest, GoesByTheStackPointer) {
  code(0x1000, PK_RULE(PK_BY_SP, 3, PK_FP_KEPT));
  code(0x2000, PK_RULE(PK_BY_SP, 1, PK_FP_KEPT));
  code(0x3000, PK_RULE(PK_BY_END, 0, 0));
  word(2, 0x2005);
  word(3, 0x3007);
  EXPECT_EQ(walk(0x1004), (Frames{0x1004, 0x2005, 0x3007}));
  EXPECT_EQ(end_, PK_STACK_WHOLE);
}

TEST_F(StackWalkTest, FramePointersAreFoundWhereTheyWereSaved) {
  code(0x1000, PK_RULE(PK_BY_SP, 4, -3));
  code(0x2000, PK_RULE(PK_BY_FP, 2, -2));
  code(0x3000, PK_RULE(PK_BY_END, 0, 0));
  word(1, stack_at + 48);  // below the first CFA by 3 words
  word(3, 0x2005);
  word(6, 0);
  word(7, 0x3001);
  EXPECT_EQ(walk(0x1004), (Frames{0x1004, 0x2005, 0x3001}));
  EXPECT_EQ(end_, PK_STACK_WHOLE);
}

// A call may be the last thing in its function: what it returns to is another's.
TEST_F(StackWalkTest, AReturnBelongsToTheInstructionBefore) {
  code(0x1000, PK_RULE(PK_BY_SP, 1, PK_FP_KEPT));
  code(0x2000, PK_RULE(PK_BY_END, 0, 0));
  code(0x2100, PK_RULE(PK_BY_SP, 1, PK_FP_KEPT));
  word(0, 0x2100);
  EXPECT_EQ(walk(0x1004), (Frames{0x1004, 0x2100}));
  EXPECT_EQ(end_, PK_STACK_WHOLE);
}

// What a signal interrupted is no return: the first instruction of a function is its own.
TEST_F(StackWalkTest, ASignalsFrameIsLeftByItsRegisters) {
  code(0x1000, PK_RULE(PK_BY_SIGNAL, 0, 0));
  code(0x2000, PK_RULE(PK_BY_SP, 1, PK_FP_KEPT));
  code(0x3000, PK_RULE(PK_BY_END, 0, 0));
  word(PK_SIGNAL_FP / 8, 0x55);
  word(PK_SIGNAL_SP / 8, stack_at + 240);
  word(PK_SIGNAL_IP / 8, 0x2000);
  word(30, 0x3001);
  EXPECT_EQ(walk(0x1001), (Frames{0x1001, 0x2001, 0x3001}));
  EXPECT_EQ(end_, PK_STACK_WHOLE);
}

TEST_F(StackWalkTest, ALinkageTablesEntryIsInHalves) {
  code(0x1000, PK_RULE(PK_BY_PLT, 11, PK_FP_KEPT));
  code(0x2000, PK_RULE(PK_BY_END, 0, 0));
  word(0, 0x2001);
  word(1, 0x2002);
  EXPECT_EQ(walk(0x100a), (Frames{0x100a, 0x2001}));
  EXPECT_EQ(walk(0x100b), (Frames{0x100b, 0x2002}));
}

TEST_F(StackWalkTest, WhatIsNotThereIsNotMadeUp) {
  code(0x1000, PK_RULE(PK_BY_SP, 4, PK_FP_KEPT));
  code(0x2000, PK_RULE(PK_BY_NOTHING, 0, 0));
  word(0, 0);
  EXPECT_EQ(walk(0x1004), Frames{0x1004});  // the stack is shorter
  EXPECT_EQ(end_, PK_STACK_UNREADABLE);
  word(3, 0x10);
  EXPECT_EQ(walk(0x1004), Frames{0x1004});  // no code
  EXPECT_EQ(end_, PK_STACK_ASTRAY);
  word(3, 0x2001);
  EXPECT_EQ(walk(0x1004, true, 0x33), (Frames{0x1004, 0x2001}));  // no frame pointer
  EXPECT_EQ(end_, PK_STACK_NO_CFI);
  code(0x1000, PK_RULE(PK_BY_FP, -4, PK_FP_KEPT));
  EXPECT_EQ(walk(0x1004, true, stack_at), Frames{0x1004});  // down instead of up
  EXPECT_EQ(end_, PK_STACK_ASTRAY);
}

// The first function has none; any other may keep something else there.
TEST_F(StackWalkTest, NoFramePointerIsAnEndOnlyWhereFramePointersLed) {
  code(0x1000, PK_RULE(PK_BY_NOTHING, 0, 0));
  EXPECT_EQ(walk(0x1004, true, 0), Frames{0x1004});
  EXPECT_EQ(end_, PK_STACK_NO_CFI);
  EXPECT_EQ(walk(0x1004, false, 0), Frames{0x1004});
  EXPECT_EQ(end_, PK_STACK_WHOLE);
}

TEST_F(StackWalkTest, ThereIsAnEndToIt) {
  code(0x1000, PK_RULE(PK_BY_SP, 1, PK_FP_KEPT));
  for (size_t i = 0; i < 100; ++i) word(i, 0x1001);
  EXPECT_EQ(walk(0x1004, true, 0, 50).size(), 50U);
  EXPECT_EQ(end_, PK_STACK_DEEP);
}

}  // namespace
}  // namespace pkprof
