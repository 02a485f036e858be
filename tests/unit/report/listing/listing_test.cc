// SPDX-License-Identifier: Apache-2.0
#include "report/listing/listing.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "random_profile.h"
#include "report/ledger.h"
#include "report/listing/flat_text.h"
#include "report/listing/graph_text.h"
#include "report/listing/listing_json.h"

namespace pkprof {
namespace {

TEST(Listings, SumToTheLedger) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    const Profile profile = test::random_profile(seed, 40);
    for (const auto& pids : {std::vector<uint32_t>{}, {1, 2}, {99}}) {
      for (const By by : every_by) {
        const ReportOptions options{.pids = pids, .by = by, .apart = seed % 2 == 0};
        for (const ListingKind kind : {ListingKind::flat, ListingKind::graph}) {
          const Listing listing = listing_of(profile, options, kind);
          uint64_t sum = 0;
          for (const CallNode& node : listing.graph().nodes) sum += node.self_ns;
          EXPECT_EQ(sum, listing.busy().busy_ns);
          for (const auto& [name, ns] : listing.rest()) sum += ns;
          EXPECT_EQ(sum, build_ledger(profile).sum_ns());
        }
        const auto json = nlohmann::json::parse(graph_json(profile, options));
        uint64_t sum = 0;
        for (const auto& function : json["functions"]) sum += function["self_ns"].get<uint64_t>();
        for (const auto& [name, ns] : json["rest"].items()) sum += ns.get<uint64_t>();
        EXPECT_EQ(sum, build_ledger(profile).sum_ns());
        EXPECT_FALSE(graph_text(profile, options).empty());
        EXPECT_FALSE(flat_text(profile, options).empty());
      }
    }
  }
}

// Callers of a function outside of cycles add up to it, as do its own time and its calls.
TEST(Listings, EntriesAddUp) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const Profile profile = test::random_profile(seed, 60);
    const Listing listing = listing_of(profile, {}, ListingKind::graph);
    const CallGraph& graph = listing.graph();
    for (CallNodeId id = 0; id < graph.nodes.size(); ++id) {
      const CallNode& node = graph.nodes[id];
      uint64_t self_ns = 0;
      uint64_t total_ns = 0;
      bool recursive = node.cycle != no_cycle;
      for (const CallArcId arc : graph.calls_to(id)) {
        self_ns += graph.arcs[arc].self_ns;
        total_ns += graph.arcs[arc].total_ns;
        recursive = recursive || graph.is_recursive(graph.arcs[arc]);
      }
      if (node.function == no_function) continue;
      EXPECT_EQ(self_ns, node.self_ns);
      if (!recursive) {
        EXPECT_EQ(total_ns, node.total_ns);
      }
    }
  }
}

}  // namespace
}  // namespace pkprof
