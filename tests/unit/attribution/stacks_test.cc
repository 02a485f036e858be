// SPDX-License-Identifier: Apache-2.0
#include "attribution/stacks.h"

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

// Libraries that come and go in one place: their frames say which of them was there.
TEST_F(StacksTest, AreOfTheFileThatTheirFramesSay) {
  const auto in_file = [](uint64_t number) {
    return PK_FRAME_IN_FILE | number << PK_FRAME_FILE_SHIFT | kUserCode;
  };
  const std::vector<RawStack> raw{
      {7, {in_file(17)}}, {8, {in_file(18)}}, {9, {in_file(19)}}, {10, {kUserCode}}};
  const auto file_of = [&](uint64_t number) {
    Profile profile;
    Stacks::Mover move(stacks_, profile);
    const Frame& frame = profile.frames()[move(stacks_.user(stacks_.user_number(number, 1))[0])];
    EXPECT_EQ(frame.address, kUserCode);
    return frame.mapping == no_mapping ? "" : profile.mappings()[frame.mapping].file;
  };
  stacks_.hand_over(raw);
  const auto map = [&](const char* file, uint64_t number) {
    UserMap to{.start = kUserCode, .end = kUserCode + 0x1000, .file = file};
    to.file_number = number;
    symbols_.add_map(1, to);
  };
  for (int turn = 0; turn < 3; ++turn) {
    map("/absent/one", 17);
    map("/absent/two", 18);
  }
  EXPECT_EQ(file_of(7), "/absent/one");
  EXPECT_EQ(file_of(8), "/absent/two");
  EXPECT_EQ(file_of(9), "") << "never told of";
  EXPECT_EQ(file_of(10), "/absent/two") << "what is there now";
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

TEST_F(StacksTest, SayHowTheyEnded) {
  stacks_.fetch_by([](uint64_t number) -> CountedStack {
    if (number == 8) return {{kUserCode, kUserCode + 64}, PK_STACK_WHOLE};
    return {};
  });
  for (int again = 0; again < 2; ++again) EXPECT_EQ(stacks_.resolve(8, 0).end, PK_STACK_WHOLE);
  EXPECT_EQ(stacks_.resolve(9, 0).end, PK_STACK_ASIDE);
  // There was no room for what its table was waited for with.
  const Stacks::User lost = stacks_.resolve(PK_STACK_UNFINISHED | 9, 0);
  EXPECT_EQ(lost.number, 0);
  EXPECT_EQ(lost.end, PK_STACK_NO_TABLE);
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
