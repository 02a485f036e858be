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

// A library goes, and another one comes to where it was.
TEST_F(StacksTest, AreResolvedAnewWhereAnotherFileIsMapped) {
  const RawStack stack{7, {kUserCode}};
  const auto file_now = [&] {
    stacks_.hand_over({&stack, 1});
    Profile profile;
    Stacks::Mover move(stacks_, profile);
    const Frame& frame = profile.frames()[move(stacks_.user(stacks_.user_number(7, 1))[0])];
    return profile.mappings()[frame.mapping].file;
  };
  UserMap map{.start = kUserCode, .end = kUserCode + 0x1000, .file = "/absent/one"};
  for (int turn = 0; turn < 3; ++turn) {
    map.file = "/absent/one";
    symbols_.add_map(1, map);
    EXPECT_EQ(file_now(), "/absent/one");
    map.file = "/absent/two";
    symbols_.add_map(1, map);
    EXPECT_EQ(file_now(), "/absent/two");
  }
  const uint64_t number = symbols_.maps_number(1);
  symbols_.add_map(1, map);
  EXPECT_EQ(symbols_.maps_number(1), number) << "nothing has changed";
}

TEST_F(StacksTest, OfTheKernelAreKnownByTheNumberTheyCameWith) {
  const RawStack stack{7, {kKernelCode, kKernelCode + 64}};
  stacks_.hand_over({&stack, 1});
  EXPECT_EQ(stacks_.kernel(7).size(), 2);
  EXPECT_EQ(stacks_.user_number(7, 0), 0);
}

TEST_F(StacksTest, AreFetchedWhenARowNamesThemFirst) {
  int fetched = 0;
  stacks_.fetch_by([&](uint64_t number) -> std::vector<uint64_t> {
    ++fetched;
    if (number == 7) return {kKernelCode, kKernelCode + 64};
    if (number == 8) return {kUserCode, kUserCode + 64, kUserCode + 128};
    return {};
  });
  for (int reading = 0; reading < 3; ++reading) {
    stacks_.hand_over({});
    stacks_.meet(7);
    EXPECT_EQ(stacks_.kernel(7).size(), 2);
    EXPECT_EQ(stacks_.user(stacks_.user_number(8, 0)).size(), 3);
  }
  EXPECT_EQ(fetched, 2);
  stacks_.meet(9);
  EXPECT_TRUE(stacks_.kernel(9).empty());
  EXPECT_EQ(stacks_.user_number(9, 0), 0);
}

TEST_F(StacksTest, ThatWereForgottenAreFetchedAgain) {
  stacks_.fetch_by(
      [](uint64_t) -> std::vector<uint64_t> { return {kKernelCode, kKernelCode + 64}; });
  stacks_.hand_over({});
  stacks_.meet(7);
  stacks_.hand_over({});
  stacks_.keep({}, {}, 0);
  EXPECT_TRUE(stacks_.kernel(7).empty());
  stacks_.meet(7);
  EXPECT_EQ(stacks_.kernel(7).size(), 2);
}

}  // namespace
}  // namespace pkprof
