// SPDX-License-Identifier: Apache-2.0
#include "model/merge.h"

#include <gtest/gtest.h>

namespace pkprof {
namespace {

Profile one_process(uint32_t pid, const char* comm, const char* function, uint64_t ns) {
  Profile p;
  p.meta = {
      .kernel = "6.18", .host = "here", .cpus = 2, .start_unix_ns = 1'000, .frequency_hz = 997};
  p.meta.duration_ns = ns / 2;
  Label label{.kind = LabelKind::process, .pid = pid, .start_ns = 5};
  label.comm = comm;
  SampleKey key;
  key.ran_on = key.served = p.label(label);
  key.source = p.string("user");
  Frame frame;
  frame.mapping = p.mapping({.start = 0x1000, .limit = 0x2000, .file = comm});
  frame.address = 0x1234;
  frame.function = p.string(function);
  const FrameId frames[] = {p.frame(frame)};
  key.stack = p.stack(frames);
  key.thread = pid;
  p.add(key, {.count = ns / 100, .ns = ns});
  p.name_thread(key.ran_on, pid, comm);
  p.meta.samples_taken = ns / 100;
  p.meta.counters["table full"] = 1;
  p.meta.degraded = {"no names"};
  return p;
}

uint64_t ns_of(const Profile& p, std::string_view comm, std::string_view function) {
  uint64_t ns = 0;
  for (const Profile::Sample& s : p.samples()) {
    const auto frames = p.frames_of(s.key.stack);
    if (p.labels()[s.key.served].comm == comm && !frames.empty() &&
        p.text(p.frames()[frames.front()].function) == function)
      ns += s.value.ns;
  }
  return ns;
}

TEST(Merge, SamplesOfTheSameAddUpAndOthersAreAdded) {
  Profile p = one_process(7, "one", "f", 1'000);
  ASSERT_TRUE(merge(p, one_process(8, "two", "g", 3'000)));
  ASSERT_TRUE(merge(p, one_process(7, "one", "f", 500)));
  EXPECT_EQ(p.samples().size(), 2U);
  EXPECT_EQ(ns_of(p, "one", "f"), 1'500U);
  EXPECT_EQ(ns_of(p, "two", "g"), 3'000U);
  EXPECT_EQ(p.thread_names().size(), 2U);
  EXPECT_EQ(p.mappings().size(), 2U);
}

TEST(Merge, TheLedgerStillSums) {
  Profile p = one_process(7, "one", "f", 1'000);
  ASSERT_TRUE(merge(p, one_process(8, "two", "g", 3'000)));
  uint64_t sum = 0;
  for (const Profile::Sample& s : p.samples()) sum += s.value.ns;
  EXPECT_EQ(sum, p.cpu_ns());
  EXPECT_EQ(p.meta.samples_taken, 40U);
  EXPECT_EQ(p.meta.frequency_hz, 997U);
  EXPECT_EQ(p.meta.counters.at("table full"), 2U);
  EXPECT_EQ(p.meta.degraded, std::vector<std::string>{"no names"}) << "once";
}

TEST(Merge, StealAndWhatWasNotWatchedAddUp) {
  const auto half_watched = [](uint64_t steal_ns) {
    Profile p = one_process(7, "one", "f", 1'000);
    p.meta.unwatched_ns = p.meta.duration_ns / 2;
    const LabelId steal = p.label({.kind = LabelKind::steal});
    p.add({.ran_on = steal, .served = steal, .source = p.string("steal")}, {.ns = steal_ns});
    return p;
  };
  Profile p = half_watched(30);
  ASSERT_TRUE(merge(p, half_watched(12)));
  EXPECT_EQ(watched_share(p.meta), 0.5);
  EXPECT_EQ(p.samples().size(), 2U);
  EXPECT_EQ(p.samples()[1].value.ns, 42U);
  EXPECT_EQ(p.labels()[p.samples()[1].key.served].kind, LabelKind::steal);
}

TEST(Renamed, IsTheSameButForNames) {
  Profile p = one_process(7, "one", "one+0x1234", 1'000);
  ASSERT_TRUE(merge(p, one_process(8, "two", "g", 3'000)));
  p.meta.slot_ns = 100;
  p.timeline = {{3, 1, 1, p.string("user"), 1'000}, {4, 2, 2, p.string("user"), 3'000}};
  const Profile with = renamed(p, [&](const Frame& frame) -> std::optional<std::string> {
    if (p.text(frame.function) != "one+0x1234") return std::nullopt;
    return "f";
  });
  EXPECT_EQ(ns_of(with, "one", "f"), 1'000U);
  EXPECT_EQ(ns_of(with, "one", "one+0x1234"), 0U);
  EXPECT_EQ(ns_of(with, "two", "g"), 3'000U);
  EXPECT_EQ(with.meta, p.meta);
  EXPECT_EQ(with.labels(), p.labels());
  EXPECT_EQ(with.mappings(), p.mappings());
  EXPECT_EQ(with.thread_names(), p.thread_names());
  ASSERT_EQ(with.timeline.size(), p.timeline.size());
  for (size_t i = 0; i < p.timeline.size(); ++i) {
    EXPECT_EQ(with.timeline[i].ns, p.timeline[i].ns);
    EXPECT_EQ(with.text(with.timeline[i].source), "user");
  }
}

TEST(Merge, OfAnotherMachineNothingIsAdded) {
  Profile p = one_process(7, "one", "f", 1'000);
  Profile other = one_process(7, "one", "f", 1'000);
  other.meta.cpus = 4;
  const auto merged = merge(p, other);
  ASSERT_FALSE(merged);
  EXPECT_NE(merged.error().message.find("4 CPUs"), std::string::npos);
  EXPECT_EQ(ns_of(p, "one", "f"), 1'000U);
  EXPECT_EQ(p.cpu_ns(), 1'000U);
}

}  // namespace
}  // namespace pkprof
