// SPDX-License-Identifier: Apache-2.0
#include "report/listing/call_graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "report/ledger.h"
#include "report/listing/flat_text.h"
#include "report/listing/graph_text.h"
#include "report/listing/listing.h"
#include "report/listing/stacks_fixture.h"

namespace pkprof {
namespace {

constexpr const char* root = "seven[7]";
using test::Named;
using test::Names;
using test::Stacks;

TEST(CallGraph, TimesAreThoseOfTheStacks) {
  Stacks stacks;
  stacks.add("mab", 10).add("mb", 5).add("ma", 3);
  const Named graph(stacks.profile());
  EXPECT_EQ(graph.node("m").self_ns, 0U);
  EXPECT_EQ(graph.node("m").total_ns, 18U);
  EXPECT_EQ(graph.node("a").self_ns, 3U);
  EXPECT_EQ(graph.node("a").total_ns, 13U);
  EXPECT_EQ(graph.node("b").total_ns, 15U);
  EXPECT_EQ(graph.arc("m", "a").total_ns, 13U);
  EXPECT_EQ(graph.arc("m", "a").self_ns, 3U);
  // gprof would give half of b to each caller.
  EXPECT_EQ(graph.arc("a", "b").total_ns, 10U);
  EXPECT_EQ(graph.arc("m", "b").total_ns, 5U);
  EXPECT_EQ(graph.arc("m", "b").self_ns, 5U);
  EXPECT_EQ(graph.node(root).total_ns, 18U);
  EXPECT_EQ(graph.arc(root, "m").total_ns, 18U);
  EXPECT_TRUE(graph.graph().calls_to(graph.id(root)).empty());
  EXPECT_TRUE(graph.graph().cycles.empty());
}

TEST(CallGraph, SelfRecursionCountsOnce) {
  Stacks stacks;
  stacks.add("mffff", 10).add("mf", 4).add("mffb", 2);
  const Named graph(stacks.profile());
  EXPECT_EQ(graph.node("f").self_ns, 14U);
  EXPECT_EQ(graph.node("f").total_ns, 16U);
  EXPECT_EQ(graph.arc("m", "f").total_ns, 16U);
  EXPECT_EQ(graph.arc("m", "f").self_ns, 4U);
  EXPECT_EQ(graph.arc("f", "f").total_ns, 12U);
  EXPECT_EQ(graph.arc("f", "f").self_ns, 10U);
  EXPECT_TRUE(graph.graph().is_recursive(graph.arc("f", "f")));
  EXPECT_FALSE(graph.graph().is_recursive(graph.arc("m", "f")));
  EXPECT_TRUE(graph.graph().cycles.empty()) << "it takes two";
}

TEST(CallGraph, TheSameFunctionAtTwoPlaces) {
  Stacks stacks;
  stacks.add("malb", 10).add("mblc", 1);  // l under a and under b, b under l and under m
  stacks.add("mxlyl", 100);
  const Named graph(stacks.profile());
  EXPECT_EQ(graph.node("l").total_ns, 111U);
  EXPECT_EQ(graph.node("l").self_ns, 100U);
  EXPECT_EQ(graph.arc("x", "l").total_ns, 100U);
  EXPECT_EQ(graph.arc("x", "l").self_ns, 0U);
  EXPECT_EQ(graph.arc("y", "l").self_ns, 100U);
}

TEST(CallGraph, ACycleWithCallersOutside) {
  Stacks stacks;
  stacks.add("mapq", 10).add("mapqpqz", 20).add("mbqp", 5).add("mq", 1).add("mapz", 2);
  const Named graph(stacks.profile());
  ASSERT_EQ(graph.graph().cycles.size(), 1U);
  EXPECT_EQ(graph.members(0), (Names{"p", "q"}));
  const Cycle& cycle = graph.graph().cycles[0];
  EXPECT_EQ(cycle.total_ns, 38U);
  EXPECT_EQ(cycle.self_ns, 16U);
  EXPECT_EQ(graph.node("q").total_ns, 36U);
  EXPECT_EQ(graph.node("p").total_ns, 37U);
  EXPECT_EQ(graph.node("p").self_ns, 5U);
  EXPECT_EQ(graph.arc("p", "q").total_ns, 30U);
  EXPECT_EQ(graph.arc("q", "p").total_ns, 25U);
  EXPECT_EQ(graph.graph().share_of_cycle_ns(graph.id("p")), 7U) << "5 itself, 2 in z";
  EXPECT_EQ(graph.graph().share_of_cycle_ns(graph.id("q")), 31U) << "11 itself, 20 in z";
  EXPECT_EQ(graph.node("z").cycle, no_cycle);
}

TEST(CallGraph, CyclesAreNumberedLargestFirst) {
  Stacks stacks;
  stacks.add("mabab", 10).add("mpqrp", 30).add("mstsu", 20).add("mpr", 1);
  const Named graph(stacks.profile());
  ASSERT_EQ(graph.graph().cycles.size(), 3U);
  EXPECT_EQ(graph.members(0), (Names{"p", "q", "r"}));
  EXPECT_EQ(graph.members(1), (Names{"s", "t"}));
  EXPECT_EQ(graph.members(2), (Names{"a", "b"}));
}

// Two stacks make a cycle that neither has.
TEST(CallGraph, ACycleOfTwoStacks) {
  Stacks stacks;
  stacks.add("mab", 10).add("mba", 5);
  const Named graph(stacks.profile());
  ASSERT_EQ(graph.graph().cycles.size(), 1U);
  EXPECT_EQ(graph.graph().cycles[0].total_ns, 15U);
  EXPECT_EQ(graph.graph().cycles[0].self_ns, 15U);
}

TEST(CallGraph, FunctionsWithoutANameMakeNoCycle) {
  Stacks stacks;
  stacks.add(".l..mq.c", 10).add(".l.mx", 5);
  const Named graph(stacks.profile());
  EXPECT_TRUE(graph.graph().cycles.empty());
  EXPECT_EQ(graph.arc("q", "c").total_ns, 0U);
  size_t nameless = 0;
  for (CallNodeId id = 0; id < graph.graph().nodes.size(); ++id)
    nameless += graph.listing().name_alone(id) == "[unknown in seven]" ? 1 : 0;
  EXPECT_EQ(nameless, 3U) << "called by nobody, by l and by q";
  // In the flat profile they are one.
  const Listing flat = listing_of(stacks.profile(), {}, ListingKind::flat);
  EXPECT_EQ(flat.graph().nodes.size(), 1U + 6U);
}

TEST(CallGraph, CallsWhereTheyWereCounted) {
  Stacks stacks;
  stacks.add("!h", 10, 4).add("mah", 5, 3).add("mb", 7, 9).add("mcb", 1);
  const Named graph(stacks.profile());
  EXPECT_EQ(graph.node("h").calls, 7U);
  EXPECT_TRUE(graph.node("h").all_calls_counted);
  const std::string interrupt = "«!»";
  EXPECT_EQ(graph.node(interrupt).calls, 4U) << "one call of the handler, one interrupt";
  EXPECT_TRUE(graph.node(interrupt).all_calls_counted);
  EXPECT_EQ(graph.arc(root, interrupt).calls, 4U);
  EXPECT_EQ(graph.arc("a", "h").calls, 3U);
  EXPECT_EQ(graph.node("a").calls, 0U);
  EXPECT_FALSE(graph.node("a").all_calls_counted);
  EXPECT_EQ(graph.node("b").calls, 9U);
  EXPECT_FALSE(graph.node("b").all_calls_counted) << "not those by c";
}

// They come with no time and no path but the caller, before and after the stacks they belong to.
TEST(CallGraph, CountedCallsJoinTheStacks) {
  Stacks stacks;
  stacks.count("ab", 5).add("mab", 10).count("bc", 20).add("mabc", 30).count("xb", 2).count("b", 1);
  const Named graph(stacks.profile());
  EXPECT_EQ(graph.node("b").calls, 8U);
  EXPECT_TRUE(graph.node("b").all_calls_counted);
  EXPECT_EQ(graph.arc("a", "b").calls, 5U);
  EXPECT_EQ(graph.arc("x", "b").calls, 2U);
  EXPECT_EQ(graph.arc("x", "b").total_ns, 0U);
  EXPECT_EQ(graph.arc("b", "c").calls, 20U);
  EXPECT_TRUE(graph.node("c").all_calls_counted);
  EXPECT_FALSE(graph.node("a").all_calls_counted)
      << "it is a caller, and its calls were not counted";
  EXPECT_EQ(graph.node("a").total_ns, 40U);
  EXPECT_EQ(graph.arc(root, "m").total_ns, 40U);
  const std::string flat = flat_text(stacks.profile(), {});
  EXPECT_EQ(flat.find("u:x"), std::string::npos) << "it has neither time nor calls\n" << flat;
}

TEST(CallGraph, AFunctionWithACallerThatWasNotCountedHasNoCount) {
  Stacks stacks;
  stacks.add("mab", 10).add("mxb", 10).count("ab", 5);
  const Named graph(stacks.profile());
  EXPECT_EQ(graph.node("b").calls, 5U);
  EXPECT_FALSE(graph.node("b").all_calls_counted);
}

TEST(CallGraph, RecursiveCountedCalls) {
  Stacks stacks;
  stacks.add("maa", 10).count("ma", 3).count("aa", 4);
  const Named graph(stacks.profile());
  EXPECT_EQ(graph.node("a").calls, 3U);
  EXPECT_EQ(graph.node("a").recursive_calls, 4U);
}

TEST(CallGraph, ProcessesApartAndTogether) {
  Stacks stacks;
  const LabelId other = stacks.profile().label(
      {.kind = LabelKind::process, .pid = 8, .start_ns = 1, .comm = "eight"});
  const LabelId kernel = stacks.profile().label({.kind = LabelKind::kernel});
  stacks.add("mf", 10).add("mf", 20, 0, other).add("!f", 3, 0, kernel);
  const Named together(stacks.profile());
  EXPECT_EQ(together.node("f").total_ns, 33U);
  EXPECT_EQ(together.arc("eight[8]", "m").total_ns, 20U);
  EXPECT_EQ(together.arc(root, "m").total_ns, 10U);
  EXPECT_EQ(together.arc("KERNEL", "«!»").total_ns, 3U);
  EXPECT_EQ(together.listing().name(together.id("f")), "u:f");

  const ReportOptions apart{.apart = true};
  const Listing listing = listing_of(stacks.profile(), apart, ListingKind::graph);
  std::map<std::string, uint64_t> total;
  for (CallNodeId id = 0; id < listing.graph().nodes.size(); ++id)
    total[listing.name(id)] = listing.graph().nodes[id].total_ns;
  EXPECT_EQ(total, (std::map<std::string, uint64_t>{{"seven[7]", 10},
                                                    {"7u:m", 10},
                                                    {"7u:f", 10},
                                                    {"eight[8]", 20},
                                                    {"8u:m", 20},
                                                    {"8u:f", 20},
                                                    {"KERNEL", 3},
                                                    {"-k:«!»", 3},
                                                    {"-u:f", 3}}));
  // One listing of several, and what they leave out.
  const ReportOptions both{.pids = {7, 8}};
  const Listing pair = listing_of(stacks.profile(), both, ListingKind::graph);
  EXPECT_EQ(pair.busy().busy_ns, 30U);
  ASSERT_EQ(pair.rest().size(), 2U);
  EXPECT_EQ(pair.rest()[1].name, "KERNEL");
  EXPECT_EQ(pair.rest()[1].ns, 3U);
}

TEST(CallGraph, AnEmptyProfile) {
  const Named graph{Profile()};
  EXPECT_TRUE(graph.graph().nodes.empty());
  EXPECT_TRUE(graph.graph().arcs.empty());
  EXPECT_TRUE(graph.graph().cycles.empty());
}

// Deeper than our own stack would bear, were anything recursive over it.
TEST(CallGraph, DeepStacks) {
  for (const size_t depth : {size_t{10'000}, size_t{100'000}}) {
    Stacks stacks;
    std::vector<FrameId> frames;
    Profile& profile = stacks.profile();
    for (size_t i = 0; i < depth; ++i)
      frames.push_back(profile.frame(
          {FrameKind::user, 0, 0x1000 + i, profile.string("f" + std::to_string(i)), 0, 0}));
    const auto add = [&] {
      profile.add({stacks.process(), stacks.process(), profile.string("user"), Basis::own,
                   profile.stack(frames)},
                  {.ns = 10});
    };
    add();
    std::ranges::reverse(frames);
    add();  // all of them one cycle
    const Named graph(profile);
    ASSERT_EQ(graph.graph().cycles.size(), 1U);
    EXPECT_EQ(graph.graph().cycles[0].members.size(), depth);
    EXPECT_EQ(graph.graph().cycles[0].total_ns, 20U);
    EXPECT_EQ(graph.graph().arcs.size(), 2 * (depth - 1) + 2);
    EXPECT_FALSE(graph_text(profile, {.limit = 3}).empty());
    EXPECT_FALSE(flat_text(profile, {.limit = 3}).empty());
  }
}

TEST(CallGraph, ADeepStackOfTwoThatHaveNoName) {
  Stacks stacks;
  Profile& profile = stacks.profile();
  const MappingId library = profile.mapping({0x200000, 0x300000, 0, "/lib/lib.so", ""});
  std::vector<FrameId> frames;
  for (size_t i = 0; i < 100'000; ++i)
    frames.push_back(i % 2 ? stacks.frame('.')
                           : profile.frame({FrameKind::user, library, 0x200000, 0, 0, 0}));
  profile.add({stacks.process(), stacks.process(), profile.string("user"), Basis::own,
               profile.stack(frames)},
              {.ns = 10});
  const Named graph(profile);
  EXPECT_EQ(graph.node(root).total_ns, 10U);
  EXPECT_TRUE(graph.graph().cycles.empty());
}

}  // namespace
}  // namespace pkprof
