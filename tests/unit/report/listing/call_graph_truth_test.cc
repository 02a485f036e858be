// SPDX-License-Identifier: Apache-2.0
// The call graph of random stacks, against a slow and simple way to it.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>

#include "report/listing/stacks_fixture.h"

namespace pkprof {
namespace {

using test::Named;
using test::Names;
using test::Stacks;

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
