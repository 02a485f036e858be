// SPDX-License-Identifier: Apache-2.0
// gprof's listings of a client with its servers' time below it.
#include <gtest/gtest.h>

#include <map>

#include "golden.h"
#include "random_profile.h"
#include "report/clients.h"
#include "report/ledger.h"
#include "report/listing/flat_text.h"
#include "report/listing/graph_text.h"
#include "report/listing/listing.h"
#include "served_fixture.h"

namespace pkprof {
namespace {

class ListingOfClients : public testing::Test {
 protected:
  [[nodiscard]] Listing listing(ListingKind kind, std::vector<uint32_t> pids = {},
                                double threshold = 0) const {
    return listing_of(
        charged_,
        {.unicode = false, .pids = std::move(pids), .apart = true, .threshold = threshold}, kind);
  }
  static std::map<std::string, CallNode> nodes(const Listing& listing) {
    std::map<std::string, CallNode> found;
    for (CallNodeId id = 0; id < listing.graph().nodes.size(); ++id) {
      const auto [it, fresh] = found.emplace(listing.name(id), listing.graph().nodes[id]);
      EXPECT_TRUE(fresh) << it->first << " is there twice";
    }
    return found;
  }
  static uint64_t call_ns(const Listing& listing, const std::string& caller,
                          const std::string& callee) {
    uint64_t ns = 0;
    for (const CallArc& arc : listing.graph().arcs)
      if (listing.name(arc.caller) == caller && listing.name(arc.callee) == callee)
        ns += arc.total_ns;
    return ns;
  }

  const test::ServedMachine machine_;
  const Profile charged_ = charged_to_clients(machine_.profile);
};

TEST_F(ListingOfClients, AServersFunctionsAreBelowWhomItServed) {
  const Listing graph = listing(ListingKind::graph);
  auto node = nodes(graph);
  EXPECT_EQ(node["browser[100]"].total_ns, (50 + 300 + 330 + 15) * test::one_ms);
  EXPECT_EQ(node["100k:<served by nginx:200>"].total_ns, 300 * test::one_ms);
  EXPECT_EQ(node["100k:<served by postgres:300>"].total_ns, 330 * test::one_ms);
  EXPECT_EQ(call_ns(graph, "browser[100]", "100k:<served by nginx:200>"), 300 * test::one_ms);
  EXPECT_EQ(call_ns(graph, "100k:<served by nginx:200>", "100>200u:main"), 300 * test::one_ms);
  EXPECT_EQ(call_ns(graph, "100>200u:serve", "100>200k:<syscall:read>"), 100 * test::one_ms);
  EXPECT_EQ(node["100>200k:vfs_read"].self_ns, 100 * test::one_ms);
  EXPECT_EQ(call_ns(graph, "100k:<served by postgres:300>", "100>300k:<softirq:NET_RX>"),
            30 * test::one_ms);
}

// The browser and nginx are one program; what each ran is told apart.
TEST_F(ListingOfClients, OneProgramsFunctionsAreToldApart) {
  auto node = nodes(listing(ListingKind::graph));
  EXPECT_EQ(node["100u:main"].total_ns, 50 * test::one_ms);
  EXPECT_EQ(node["100>200u:main"].total_ns, 300 * test::one_ms);
  EXPECT_EQ(node["200u:main"].total_ns, 10 * test::one_ms) << "for itself";
  EXPECT_EQ(node["200>300u:exec_query"].self_ns, 7 * test::one_ms)
      << "the database for nginx itself";
  EXPECT_EQ(node["150>300u:exec_query"].self_ns, 20 * test::one_ms);
  EXPECT_EQ(node["300u:exec_query"].self_ns, 5 * test::one_ms);
}

TEST_F(ListingOfClients, AClientOnAnotherMachineIsARoot) {
  const Listing graph = listing(ListingKind::graph);
  auto node = nodes(graph);
  EXPECT_EQ(node["192.0.2.7"].total_ns, 40 * test::one_ms);
  EXPECT_EQ(call_ns(graph, "192.0.2.7", "192.0.2.7 k:<served by nginx:200>"), 40 * test::one_ms);
  EXPECT_EQ(node["192.0.2.7>200u:serve"].self_ns, 40 * test::one_ms);
}

TEST_F(ListingOfClients, OfAClientAloneItsServersAreThere) {
  const Listing flat = listing(ListingKind::flat, {100});
  EXPECT_EQ(flat.busy().busy_ns, 695 * test::one_ms);
  uint64_t sum = 0;
  for (const CallNode& node : flat.graph().nodes) sum += node.self_ns;
  EXPECT_EQ(sum, 695 * test::one_ms);
  for (const auto& [name, ns] : flat.rest()) sum += ns;
  EXPECT_EQ(sum, 2000 * test::one_ms);
  EXPECT_EQ(nodes(flat)["100>300u:exec_query"].self_ns, 300 * test::one_ms);
}

// What is below the threshold still says by whom it was served.
TEST_F(ListingOfClients, LittleTimeOfAServerIsSummedUp) {
  auto node = nodes(listing(ListingKind::graph, {}, 50));
  EXPECT_EQ(node["100k:<served by nginx:200>"].self_ns, 300 * test::one_ms);
  EXPECT_FALSE(node.contains("100>200u:main"));
}

// An interrupt that is called so often is no reason to say that a client was served so often.
TEST(ListingOfServedInterrupts, CallsAreTheInterrupts) {
  Profile profile;
  profile.meta = {.cpus = 1, .duration_ns = 100};
  const LabelId client =
      profile.label({.kind = LabelKind::process, .pid = 1, .start_ns = 1, .comm = "client"});
  const LabelId server =
      profile.label({.kind = LabelKind::process, .pid = 2, .start_ns = 1, .comm = "server"});
  const FrameId irq =
      profile.frame({FrameKind::pseudo, no_mapping, 0, profile.string("irq:disk"), 0, 0});
  profile.add({.ran_on = server,
               .served = server,
               .source = profile.string("irq:disk"),
               .stack = profile.stack({&irq, 1}),
               .client = profile.client({.label = client})},
              {.ns = 50, .calls = 7});
  const Listing graph = listing_of(charged_to_clients(profile), {.unicode = false, .apart = true},
                                   ListingKind::graph);
  std::map<std::string, uint64_t> calls;
  for (const CallArc& arc : graph.graph().arcs) calls[graph.name(arc.callee)] = arc.calls;
  EXPECT_EQ(calls["1k:<served by server:2>"], 0U);
  EXPECT_EQ(calls["1>2k:<irq:disk>"], 7U);
}

TEST_F(ListingOfClients, SumToTheLedger) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const Profile profile = charged_to_clients(test::random_profile(seed, 60));
    for (const auto& pids : {std::vector<uint32_t>{}, {1, 2}}) {
      for (const ListingKind kind : {ListingKind::flat, ListingKind::graph}) {
        const Listing listing = listing_of(profile, {.pids = pids, .apart = true}, kind);
        uint64_t sum = 0;
        for (const CallNode& node : listing.graph().nodes) sum += node.self_ns;
        EXPECT_EQ(sum, listing.busy().busy_ns);
        for (const auto& [name, ns] : listing.rest()) sum += ns;
        EXPECT_EQ(sum, build_ledger(profile).sum_ns());
      }
    }
  }
}

TEST_F(ListingOfClients, Text) {
  const ReportOptions options{.pids = {100}, .apart = true};
  const std::string flat = flat_text(charged_, options);
  test::expect_harmless(flat);
  test::expect_golden("flat-by-client.txt", flat);
  const std::string graph = graph_text(charged_, options);
  test::expect_harmless(graph);
  test::expect_golden("graph-by-client.txt", graph);
}

}  // namespace
}  // namespace pkprof
