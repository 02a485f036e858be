// SPDX-License-Identifier: Apache-2.0
#include "collect/stacks.h"

#include <gtest/gtest.h>

namespace pkprof {
namespace {

constexpr uint64_t kUserCode = 0x5555'0000'1000;
constexpr uint64_t kKernelCode = 0xffff'ffff'8100'0000;

class StacksTest : public testing::Test {
 protected:
  UserSymbols symbols_;
  Stacks stacks_{nullptr, symbols_};
};

// Code without frame pointers leads to anything, which may look like an address of the kernel.
TEST_F(StacksTest, OfUserCodeMayEndAnywhere) {
  const RawStack stack{7, {kUserCode, kUserCode + 64, kKernelCode + 1}};
  stacks_.hand_over({&stack, 1});
  const uint64_t number = stacks_.user_number(7, 0);
  ASSERT_NE(number, 0);
  EXPECT_EQ(stacks_.user(number).size(), 3);
}

TEST_F(StacksTest, OfTheKernelAreKnownByTheNumberTheyCameWith) {
  const RawStack stack{7, {kKernelCode, kKernelCode + 64}};
  stacks_.hand_over({&stack, 1});
  EXPECT_EQ(stacks_.kernel(7).size(), 2);
  EXPECT_EQ(stacks_.user_number(7, 0), 0);
}

}  // namespace
}  // namespace pkprof
