// SPDX-License-Identifier: Apache-2.0
#include "report/listing/call_graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <random>
#include <set>

#include "report/ledger.h"
#include "report/listing/flat_text.h"
#include "report/listing/graph_text.h"
#include "report/listing/listing.h"
#include "report_fixture.h"

namespace pkprof {
namespace {

// Stacks of functions called "a", "b", ... of one process: "abc" is a, which calls b, which calls
// c. "." is a frame without a name, "!" a pseudo frame.
class Stacks {
 public:
  Stacks() {
    profile_.meta = {.cpus = 1, .duration_ns = 1'000'000};
    process_ =
        profile_.label({.kind = LabelKind::process, .pid = 7, .start_ns = 1, .comm = "seven"});
    binary_ = profile_.mapping({0x1000, 0x100000, 0, "/bin/seven", ""});
  }

  Stacks& add(const std::string& path, uint64_t ns, uint64_t calls = 0,
              std::optional<LabelId> served = {}) {
    std::vector<FrameId> frames;
    for (const char c : path) frames.push_back(frame(c));
    std::ranges::reverse(frames);
    profile_.add({.ran_on = process_,
                  .served = served.value_or(process_),
                  .source = profile_.string("user"),
                  .stack = profile_.stack(frames)},
                 {.ns = ns, .calls = calls});
    return *this;
  }

  // Calls that were counted, and no time.
  Stacks& count(const std::string& path, uint64_t calls) {
    std::vector<FrameId> frames;
    for (const char c : path) frames.push_back(frame(c));
    std::ranges::reverse(frames);
    profile_.add({.ran_on = process_,
                  .served = process_,
                  .source = profile_.string("calls"),
                  .stack = profile_.stack(frames)},
                 {.calls = calls});
    return *this;
  }

  FrameId frame(char c) {
    if (c == '!')
      return profile_.frame({FrameKind::pseudo, no_mapping, 0, profile_.string("!"), 0, 0});
    const auto address = 0x1000 + static_cast<uint64_t>(c);
    const StringId name = c == '.' ? 0 : profile_.string(std::string(1, c));
    return profile_.frame({FrameKind::user, binary_, address, name, 0, 0});
  }

  Profile& profile() { return profile_; }
  [[nodiscard]] LabelId process() const { return process_; }

 private:
  Profile profile_;
  LabelId process_ = 0;
  MappingId binary_ = 0;
};

// A graph by the names of its nodes.
class Named {
 public:
  explicit Named(const Profile& profile, const ReportOptions& options = {})
      : listing_(listing_of(profile, options, ListingKind::graph)), graph_(listing_.graph()) {
    for (CallNodeId id = 0; id < graph_.nodes.size(); ++id)
      ids_.emplace(listing_.name_alone(id), id);
  }

  [[nodiscard]] const CallGraph& graph() const { return graph_; }
  [[nodiscard]] const Listing& listing() const { return listing_; }
  [[nodiscard]] CallNodeId id(const std::string& name) const { return ids_.at(name); }
  [[nodiscard]] const CallNode& node(const std::string& name) const {
    return graph_.nodes[id(name)];
  }
  // Nothing when there is no such call.
  [[nodiscard]] CallArc arc(const std::string& caller, const std::string& callee) const {
    for (const CallArcId arc : graph_.calls_from(id(caller))) {
      if (graph_.arcs[arc].callee == id(callee)) return graph_.arcs[arc];
    }
    return {};
  }
  [[nodiscard]] std::set<std::string> members(CycleId cycle) const {
    std::set<std::string> names;
    for (const CallNodeId id : graph_.cycles.at(cycle).members)
      names.insert(listing_.name_alone(id));
    return names;
  }

 private:
  Listing listing_;
  const CallGraph& graph_;
  std::map<std::string, CallNodeId> ids_;
};

constexpr const char* root = "seven[7]";
using Names = std::set<std::string>;

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

// What the graph should be, the slow way: sets of functions and pairs of each stack.
struct Truth {
  std::map<std::string, uint64_t> self, total;
  std::map<std::pair<std::string, std::string>, uint64_t> arcs;
  std::map<std::string, Names> reach;

  void add(const std::string& path, uint64_t ns) {
    self[path.substr(path.size() - 1)] += ns;
    Names functions;
    std::set<std::pair<std::string, std::string>> pairs;
    for (size_t i = 0; i < path.size(); ++i) {
      functions.insert(path.substr(i, 1));
      if (i > 0) pairs.emplace(path.substr(i - 1, 1), path.substr(i, 1));
    }
    for (const auto& function : functions) total[function] += ns;
    for (const auto& pair : pairs) arcs[pair] += ns;
  }

  void close() {
    for (const auto& [pair, ns] : arcs) reach[pair.first].insert(pair.second);
    for (bool grew = true; grew;) {
      grew = false;
      for (auto& [from, all] : reach) {
        Names more = all;
        for (const std::string& next : all) more.insert(reach[next].begin(), reach[next].end());
        grew = grew || more.size() > all.size();
        all = more;
      }
    }
  }
  bool in_one_cycle(const std::string& a, const std::string& b) {
    return a != b && reach[a].contains(b) && reach[b].contains(a);
  }
};

TEST(CallGraph, IsWhatTheStacksSay) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    std::mt19937_64 random(seed);
    const size_t letters = 3 + random() % 12;
    Stacks stacks;
    Truth truth;
    for (size_t n = 1 + random() % 12; n > 0; --n) {
      std::string path;
      for (size_t depth = 1 + random() % 8; depth > 0; --depth)
        path += static_cast<char>('a' + random() % letters);
      const uint64_t ns = 1 + random() % 100;
      stacks.add(path, ns);
      truth.add(path, ns);
    }
    truth.close();
    const Named graph(stacks.profile());
    for (const auto& [name, ns] : truth.total) {
      EXPECT_EQ(graph.node(name).total_ns, ns);
      EXPECT_EQ(graph.node(name).self_ns, truth.self[name]);
      for (const auto& [other, unused] : truth.total) {
        if (name == other) continue;
        const CycleId cycle = graph.node(name).cycle;
        EXPECT_EQ(cycle != no_cycle && cycle == graph.node(other).cycle,
                  truth.in_one_cycle(name, other));
      }
    }
    size_t arcs = 0;
    for (const CallArc& arc : graph.graph().arcs)
      arcs += graph.graph().nodes[arc.caller].function == no_function ? 0 : 1;
    EXPECT_EQ(arcs, truth.arcs.size());
    for (const auto& [pair, ns] : truth.arcs)
      EXPECT_EQ(graph.arc(pair.first, pair.second).total_ns, ns);
    for (const Cycle& cycle : graph.graph().cycles) {
      uint64_t shares = 0;
      for (const CallNodeId id : cycle.members) shares += graph.graph().share_of_cycle_ns(id);
      EXPECT_EQ(shares, cycle.total_ns) << "a stack enters once and leaves once";
    }
  }
}

}  // namespace
}  // namespace pkprof
