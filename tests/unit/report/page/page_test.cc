// SPDX-License-Identifier: Apache-2.0
// What the page knows: all of the time, in no more nodes than it may have, and no name as markup.
// How it looks and what it does is web/tests.
#include "report/page/page.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>

#include "clients_fixture.h"
#include "page_fixture.h"
#include "random_profile.h"
#include "report/clients.h"
#include "report/ledger.h"
#include "report/page/page_stacks.h"
#include "report_fixture.h"

namespace pkprof {
namespace {

using nlohmann::json;
using test::page_data_of;
using test::unpacked;

uint64_t busy_ns(const Profile& profile) {
  uint64_t ns = 0;
  for (const auto& [key, value] : profile.samples())
    if (is_working(profile.labels()[key.served].kind)) ns += value.ns;
  return ns;
}

uint64_t sum(const PageStacks& stacks) {
  uint64_t ns = 0;
  for (const PageSample& sample : stacks.samples) ns += sample.ns;
  return ns;
}

TEST(PageStacks, HaveAllTimeThatWasWorked) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const Profile profile = test::random_profile(seed, 500);
    EXPECT_EQ(sum(page_stacks(profile)), busy_ns(profile));
  }
}

TEST(PageStacks, AParentStandsBeforeItsChildren) {
  const PageStacks stacks = page_stacks(test::random_profile(1, 2000));
  for (size_t i = 1; i < stacks.nodes.size(); ++i) EXPECT_LT(stacks.nodes[i].parent, i);
}

TEST(PageStacks, AreBoundedAndLoseNothing) {
  const Profile profile = test::random_profile(7, 3000);
  const PageStacks all = page_stacks(profile);
  ASSERT_GT(all.nodes.size(), 1000U);
  EXPECT_EQ(all.small_ns, 0U);
  const PageStacks few = page_stacks(profile, 100);
  EXPECT_EQ(sum(few), busy_ns(profile));
  EXPECT_GT(few.small_ns, 0U);
  size_t kept = 0;
  for (size_t i = 1; i < few.nodes.size(); ++i) kept += few.nodes[i].function != few.small;
  EXPECT_LE(kept, 100U);
  EXPECT_LE(few.nodes.size(), 2 * kept + 2);  // one more under each that is left, at most
}

// Whom the page charges by client is whom charged_to_clients() does, also of what is summed up.
TEST(PageStacks, AreChargedToClientsAsTheLedgerIs) {
  const Profile profile = test::clients_machine();
  const Profile charged = charged_to_clients(profile);
  using Charged = std::tuple<std::string, Part, bool, bool>;
  std::map<Charged, uint64_t> wanted;
  for (const auto& [key, value] : charged.samples())
    wanted[{charged.labels()[key.served].name(), part_of(charged, key), is_taken(charged, key),
            charged.text(key.source).starts_with("server:")}] += value.ns;
  for (const size_t most : {most_page_nodes, size_t{3}}) {
    std::map<Charged, uint64_t> had;
    for (const PageSample& sample : page_stacks(profile, most).samples)
      had[{profile.labels()[sample.by_client.served].name(), sample.by_client.part,
           sample.by_client.taken, sample.for_client}] += sample.ns;
    EXPECT_EQ(had, wanted) << most;
  }
}

// Below a client's own call stands what servers did for it then.
TEST(PageStacks, HaveTheClientsCalls) {
  const Profile profile = test::clients_machine();
  std::map<std::string, uint64_t> wanted;
  std::map<std::string, uint64_t> had;
  for (const auto& [key, value] : profile.samples()) {
    std::string path;
    const auto frames = profile.frames_of(profile.clients()[key.client].call);
    for (size_t i = frames.size(); i-- > 0;)
      path += profile.text(profile.frames()[frames[i]].function) + ";";
    if (!path.empty()) wanted[path] += value.ns;
  }
  const PageStacks stacks = page_stacks(profile);
  for (const PageSample& sample : stacks.samples) {
    std::string path;
    for (uint32_t at = sample.call; at; at = stacks.nodes[at].parent)
      path.insert(0, stacks.functions.functions[stacks.nodes[at].function].name + ";");
    if (!path.empty()) had[path] += sample.ns;
  }
  EXPECT_FALSE(wanted.empty());
  EXPECT_EQ(had, wanted);
}

TEST(PageStacks, KeepWhoRanAndWhoWasServed) {
  const Profile profile = test::small_machine();
  std::map<std::pair<LabelId, LabelId>, uint64_t> wanted;
  std::map<std::pair<LabelId, LabelId>, uint64_t> had;
  for (const auto& [key, value] : profile.samples())
    if (is_working(profile.labels()[key.served].kind) && value.ns)
      wanted[{key.ran_on, key.served}] += value.ns;
  for (const PageSample& sample : page_stacks(profile, 5).samples)
    had[{sample.ran_on, sample.served}] += sample.ns;
  EXPECT_EQ(had, wanted);
}

void expect_ledger(const json& shown, const Ledger& ledger) {
  ASSERT_EQ(shown["rows"].size(), ledger.processes.size());
  for (size_t i = 0; i < ledger.processes.size(); ++i) {
    const LedgerRow& row = ledger.processes[i];
    EXPECT_EQ(shown["rows"][i]["user"], row.user_ns);
    EXPECT_EQ(shown["rows"][i]["async"], row.async_ns);
    EXPECT_EQ(shown["rows"][i]["stolen"], row.stolen_ns);
  }
  EXPECT_EQ(shown["sum"], ledger.sum_ns());
}

TEST(Page, HasTheLedgersOwnRows) {
  const Profile profile = test::grouped_machine();
  const json data = page_data_of(profile);
  for (const By by : every_by)
    if (by != By::client && by != By::host)
      expect_ledger(data["ledgers"][std::string(to_string(by))], build_ledger(profile, {}, by));
}

TEST(Page, ByClientHasTheRowsOfTheReportByClient) {
  Profile profile = test::clients_machine();
  const json data = page_data_of(profile);
  expect_ledger(data["ledgers"]["pid"], build_ledger(profile));
  const By rows = charge_as_asked(profile, By::client);
  const json& shown = data["ledgers"]["client"];
  expect_ledger(shown, build_ledger(profile, {}, rows));
  EXPECT_EQ(shown["sum"], data["ledgers"]["pid"]["sum"]);
  for (const json& flow : shown["flows"])
    EXPECT_TRUE(shown["sources"].contains(std::to_string(flow[2].get<StringId>()))) << flow;
}

TEST(Page, HasEachServersClients) {
  const Profile profile = test::clients_machine();
  const json data = page_data_of(profile);
  const auto servers = servers_of(profile);
  ASSERT_EQ(data["servers"].size(), servers.size());
  std::map<std::string, uint64_t> rules;
  for (size_t i = 0; i < servers.size(); ++i) {
    const json& rows = data["servers"][i]["clients"];
    ASSERT_EQ(rows.size(), servers[i].clients.size());
    for (size_t j = 0; j < rows.size(); ++j) {
      const ClientRow& row = servers[i].clients[j];
      EXPECT_EQ(rows[j]["own"], row.own_ns);
      EXPECT_EQ(rows[j]["async"], row.async_ns);
      ASSERT_EQ(rows[j].contains("client"), row.client != 0) << "what it did for itself has none";
      if (row.client == 0) continue;
      EXPECT_EQ(rows[j]["client"], profile.clients()[row.client].label);
      EXPECT_EQ(rows[j]["via"], profile.clients()[row.client].via);
      for (const auto& [rule, ns] : rows[j]["rules"].items()) rules[rule] += ns.get<uint64_t>();
    }
  }
  EXPECT_EQ(rules.size(), 4U);
  EXPECT_EQ(rules["asked"], 20'000'000U);
}

TEST(Page, WithoutClientsHasNoneOfThem) {
  const Profile charged = charged_to_clients(test::clients_machine());
  for (const json& data : {page_data_of(test::small_machine()), page_data_of(charged)}) {
    EXPECT_FALSE(data.contains("servers"));
    EXPECT_FALSE(data["ledgers"].contains("client"));
    EXPECT_FALSE(data["samples"].contains("by_client"));
  }
}

// Names that are markup, or end the script they stand in, are in the page in no readable form.
TEST(Page, HasNoNameAsMarkup) {
  Profile profile = test::small_machine();
  const LabelId id =
      profile.label({.kind = LabelKind::process, .pid = 66, .comm = "</script><b>x"});
  profile.add({.ran_on = id, .served = id, .source = profile.string("user")}, {1, 1000, 0, 0});
  const auto html = page_html(profile, "</script><img src=x onerror=alert(1)>");
  ASSERT_TRUE(html);
  EXPECT_EQ(html->find("</script><b>"), std::string::npos);
  EXPECT_EQ(html->find("<img"), std::string::npos);
  EXPECT_EQ(unpacked(*html)["profile"]["labels"][id]["comm"], "</script><b>x");
}

TEST(Page, FetchesNothing) {
  const auto html = page_html(test::small_machine(), "x");
  ASSERT_TRUE(html);
  EXPECT_NE(html->find("default-src 'none'"), std::string::npos);
  for (const char* outside : {"<link", "src=\"http", "@import", "url(http"})
    EXPECT_EQ(html->find(outside), std::string::npos) << outside;
}

TEST(Page, OfTwoProfilesHasBothAndTheDifference) {
  const Profile a = test::small_machine();
  const Profile b = test::grouped_machine();
  const auto html = diff_page_html(a, "a", b, "b", By::comm);
  ASSERT_TRUE(html) << html.error().message;
  const json data = unpacked(*html);
  EXPECT_EQ(data["profile"]["file"], "b");
  EXPECT_EQ(data["before"]["file"], "a");
  EXPECT_FALSE(data["diff"]["rows"].empty());
}

}  // namespace
}  // namespace pkprof
