// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "model/profile.h"
#include "model/source.h"
#include "random_profile.h"
#include "report_fixture.h"

namespace pkprof {
namespace {

TEST(Profile, StartsWithKernelEmptyStringAndEmptyStack) {
  const Profile profile;
  ASSERT_EQ(profile.labels().size(), 1u);
  EXPECT_EQ(profile.labels()[0].name(), "KERNEL");
  EXPECT_EQ(profile.text(0), "");
  EXPECT_EQ(profile.stack_count(), 1u);
  EXPECT_TRUE(profile.frames_of(0).empty());
}

TEST(Profile, SameSampleTwiceSumsUp) {
  Profile profile;
  const SampleKey key{.source = profile.string("user")};
  profile.add(key, {.count = 1, .ns = 10, .exact_ns = 5, .calls = 2});
  profile.add(key, {.count = 2, .ns = 20, .exact_ns = 5, .calls = 1});
  ASSERT_EQ(profile.samples().size(), 1u);
  EXPECT_EQ(profile.samples()[0].value,
            (SampleValue{.count = 3, .ns = 30, .exact_ns = 10, .calls = 3}));
}

TEST(Profile, EveryPartOfTheKeyMatters) {
  Profile profile;
  const LabelId other = profile.label({.kind = LabelKind::other});
  const FrameId frame = profile.frame({.kind = FrameKind::pseudo, .function = profile.string("f")});
  const StackId stack = profile.stack(std::vector{frame});
  for (const SampleKey& key :
       {SampleKey{}, SampleKey{.ran_on = other}, SampleKey{.served = other},
        SampleKey{.source = profile.string("f")}, SampleKey{.basis = Basis::voted},
        SampleKey{.stack = stack}, SampleKey{.thread = 1}, SampleKey{.served_thread = 1}})
    profile.add(key, {.count = 1});
  EXPECT_EQ(profile.samples().size(), 8u);
}

TEST(Profile, InternsByValue) {
  Profile profile;
  EXPECT_EQ(profile.string("a"), profile.string("a"));
  EXPECT_NE(profile.string("a"), profile.string("b"));
  const Mapping mapping{1, 2, 3, "f", "b"};
  EXPECT_EQ(profile.mapping(mapping), profile.mapping(mapping));
  const Frame frame{.address = 7};
  const FrameId id = profile.frame(frame);
  EXPECT_EQ(id, profile.frame(frame));
  EXPECT_NE(id, profile.frame({.address = 7, .line = 1}));
  EXPECT_EQ(profile.stack(std::vector{id, id}), profile.stack(std::vector{id, id}));
  EXPECT_NE(profile.stack(std::vector{id, id}), profile.stack(std::vector{id}));
}

TEST(Profile, ALabelIsPidAndStart) {
  Profile profile;
  const auto label = [&](uint32_t pid, uint64_t start, const char* comm) {
    return profile.label({.kind = LabelKind::process, .pid = pid, .start_ns = start, .comm = comm});
  };
  const LabelId first = label(5, 100, "");
  EXPECT_EQ(first, label(5, 100, "before"));
  EXPECT_EQ(first, label(5, 100, "after exec"));
  EXPECT_NE(first, label(5, 200, "before")) << "the pid was used again";
  EXPECT_EQ(profile.labels()[first].comm, "before") << "as first seen, filled in when empty";
}

TEST(Profile, UnclaimedLabelsDifferByReason) {
  Profile profile;
  const LabelId dropped = profile.label({.kind = LabelKind::unclaimed, .reason = "dropped"});
  const LabelId lost = profile.label({.kind = LabelKind::unclaimed, .reason = "lost"});
  EXPECT_NE(dropped, lost);
  EXPECT_EQ(profile.labels()[dropped].name(), "UNCLAIMED:dropped");
}

TEST(Profile, ACopyIsIndependent) {
  Profile one = test::small_machine();
  Profile two = one;
  const StringId added = two.string("only in two");
  EXPECT_EQ(two.text(added), "only in two");
  EXPECT_EQ(two.string("user"), one.string("user"));
  EXPECT_EQ(one.string("something else"), added) << "ids go by order of appearance";
  EXPECT_EQ(test::described(one), test::described(two));
}

TEST(Profile, ManyEntries) {
  Profile profile;
  for (int round = 0; round < 2; ++round) {
    for (uint32_t i = 0; i < 50'000; ++i) {
      const FrameId frame =
          profile.frame({.address = i, .function = profile.string("f" + std::to_string(i % 1000))});
      profile.add({.stack = profile.stack(std::vector{frame}), .thread = i}, {.count = 1});
    }
  }
  EXPECT_EQ(profile.frames().size(), 50'000u);
  EXPECT_EQ(profile.samples().size(), 50'000u);
}

TEST(Source, AsynchronousIsWhatNoProcessAskedForNow) {
  for (const char* source : {"softirq:NET_RX", "irq:eth0", "work:wb_workfn", "timer:tcp_write",
                             "ipi:func", "kthread:khugepaged"})
    EXPECT_TRUE(is_asynchronous(source)) << source;
  for (const char* source : {"user", "fault", "syscall:read", "", "irqless", "syscall:timer:x"})
    EXPECT_FALSE(is_asynchronous(source)) << source;
  EXPECT_EQ(source_class("softirq:NET_RX"), "softirq");
  EXPECT_EQ(source_class("user"), "user");
}

TEST(Labels, NothingRunsInIdleAndStolenTime) {
  for (const LabelKind kind :
       {LabelKind::process, LabelKind::kernel, LabelKind::other, LabelKind::unclaimed})
    EXPECT_TRUE(is_working(kind));
  for (const LabelKind kind : {LabelKind::idle, LabelKind::steal}) EXPECT_FALSE(is_working(kind));
}

TEST(Watched, IsAShareOfTheTime) {
  EXPECT_EQ(watched_share({}), 1);
  EXPECT_EQ(watched_share({.duration_ns = 100}), 1);
  EXPECT_EQ(watched_share({.duration_ns = 100, .unwatched_ns = 69}), 0.31);
  EXPECT_EQ(watched_share({.duration_ns = 100, .unwatched_ns = 100}), 0);
  EXPECT_EQ(watched_share({.duration_ns = 100, .unwatched_ns = UINT64_MAX}), 0);
}

TEST(Names, GoBothWays) {
  for (int i = 0; i < basis_count; ++i) {
    const auto basis = static_cast<Basis>(i);
    EXPECT_EQ(basis_from_string(to_string(basis)), basis);
  }
  EXPECT_FALSE(basis_from_string("guessed"));
  for (int i = 0; i < label_kind_count; ++i) {
    const auto kind = static_cast<LabelKind>(i);
    EXPECT_EQ(label_kind_from_string(to_string(kind)), kind);
    EXPECT_NE(Label{.kind = kind}.name(), "?");
  }
  EXPECT_EQ(label_kind_from_string("steal"), LabelKind::steal);
  EXPECT_EQ(Label{.kind = LabelKind::steal}.name(), "STEAL");
  EXPECT_EQ(frame_kind_from_string("pseudo"), FrameKind::pseudo);
}

}  // namespace
}  // namespace pkprof
