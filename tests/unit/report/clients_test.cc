// SPDX-License-Identifier: Apache-2.0
// Servers' time by client: adding up, charging to clients, text and JSON.
#include "report/clients.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "golden.h"
#include "random_profile.h"
#include "report/clients/clients_text.h"
#include "report/ledger.h"
#include "report/report_json.h"

namespace pkprof {
namespace {

constexpr uint64_t milli = 1'000'000;

// 2 CPUs, 1 s: a browser whose proxy asks a database, a client elsewhere, and what the servers did
// for themselves.
struct Chain {
  Profile profile;
  LabelId browser, proxy, database, remote;
  ClientId direct, through, elsewhere;

  Chain() {
    profile.meta.cpus = 2;
    profile.meta.duration_ns = 1000 * milli;
    profile.meta.kernel = "6.18.0";
    profile.meta.samples_taken = 1000;
    browser = process("browser", 100);
    proxy = process("nginx", 200);
    database = process("postgres", 300);
    remote = profile.label({.kind = LabelKind::remote,
                            .without_pid = true,
                            .comm = "192.0.2.7",
                            .reason = "192.0.2.7"});
    direct = profile.client({.label = browser});
    through = profile.client({.label = browser, .via = {proxy}});
    elsewhere = profile.client({.label = remote, .rule = ClientRule::replied});
    add(browser, "user", 50, 0);
    add(proxy, "user", 200, direct);
    add(proxy, "syscall:read", 100, direct);
    add(proxy, "user", 40, elsewhere);
    add(proxy, "user", 10, 0);
    add(database, "user", 300, through);
    add(database, "softirq:NET_RX", 30, through, browser);
    add(database, "user", 5, 0);
    profile.requests = {{{proxy, direct}, 1000}, {{database, through}, 2000}};
  }
  LabelId process(const char* comm, uint32_t pid) {
    return profile.label({.kind = LabelKind::process, .pid = pid, .start_ns = pid, .comm = comm});
  }
  void add(LabelId served, const char* source, uint64_t milliseconds, ClientId client,
           LabelId ran_on = UINT32_MAX) {
    profile.add({.ran_on = ran_on == UINT32_MAX ? served : ran_on,
                 .served = served,
                 .source = profile.string(source),
                 .client = client},
                {.count = milliseconds, .ns = milliseconds * milli});
  }
};

TEST(Clients, AServersRowsAreWhatItCosts) {
  const Chain chain;
  const auto servers = servers_of(chain.profile);
  ASSERT_EQ(servers.size(), 2U);
  EXPECT_EQ(servers[0].label, chain.proxy);
  EXPECT_EQ(servers[0].for_clients_ns, 340 * milli);
  EXPECT_EQ(servers[0].for_itself_ns, 10 * milli);
  EXPECT_EQ(servers[1].label, chain.database);
  ASSERT_EQ(servers[1].clients.size(), 2U);
  EXPECT_EQ(servers[1].clients[0].client, chain.through);
  EXPECT_EQ(servers[1].clients[0].user_ns, 300 * milli);
  EXPECT_EQ(servers[1].clients[0].async_ns, 30 * milli);
  EXPECT_EQ(servers[1].clients[0].requests, 2000U);
  EXPECT_EQ(servers[0].clients[0].requests, 1000U);
  EXPECT_EQ(servers[0].clients[1].requests, 0U) << "nobody counted them";
  const Ledger ledger = build_ledger(chain.profile);
  for (const LedgerRow& row : ledger.processes)
    for (const Server& server : servers)
      if (server.label == row.label) {
        EXPECT_EQ(server.for_clients_ns + server.for_itself_ns, row.costs_ns());
      }
}

TEST(Clients, OfSomeServersAlone) {
  const Chain chain;
  const std::vector<uint32_t> pids = {300};
  const auto servers = servers_of(chain.profile, pids);
  ASSERT_EQ(servers.size(), 1U);
  EXPECT_EQ(servers[0].label, chain.database);
}

TEST(Clients, ChargedToClientsTheLedgerStillSums) {
  const Chain chain;
  const Profile charged = charged_to_clients(chain.profile);
  const Ledger before = build_ledger(chain.profile);
  const Ledger after = build_ledger(charged);
  EXPECT_EQ(after.sum_ns(), before.sum_ns());
  std::map<std::string, const LedgerRow*> rows;
  for (const LedgerRow& row : after.processes) rows[charged.labels()[row.label].name()] = &row;
  ASSERT_TRUE(rows.contains("browser:100"));
  EXPECT_EQ(rows["browser:100"]->costs_ns(), (50 + 300 + 330) * milli);
  EXPECT_EQ(rows["browser:100"]->sources.at("server:postgres"), 330 * milli);
  ASSERT_TRUE(rows.contains("192.0.2.7"));
  EXPECT_EQ(rows["192.0.2.7"]->costs_ns(), 40 * milli);
  EXPECT_EQ(rows["nginx:200"]->costs_ns(), 10 * milli);
  EXPECT_EQ(rows["nginx:200"]->stolen_ns, 340 * milli) << "what it did for others";
  EXPECT_TRUE(servers_of(charged).empty());
}

TEST(Clients, ChargedToClientsRandomProfilesStillSum) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const Profile profile = test::random_profile(seed, 50);
    uint64_t before = 0;
    uint64_t after = 0;
    for (const auto& [key, value] : profile.samples()) before += value.ns;
    for (const auto& [key, value] : charged_to_clients(profile).samples()) after += value.ns;
    EXPECT_EQ(after, before) << seed;
  }
}

TEST(Clients, Json) {
  const Chain chain;
  const auto json = nlohmann::json::parse(clients_json(chain.profile, {}));
  EXPECT_EQ(json["schema"], "pkprof.clients/1");
  const auto& proxy = json["servers"][0];
  EXPECT_EQ(proxy["pid"], 200);
  EXPECT_EQ(proxy["for_clients"][0]["client"], 100);
  EXPECT_EQ(proxy["for_clients"][0]["own_ns"], 100 * milli);
  EXPECT_EQ(proxy["for_clients"][1]["client"], "192.0.2.7");
  EXPECT_EQ(proxy["for_clients"][1]["rules"]["replied"], 40 * milli);
  EXPECT_EQ(json["servers"][1]["for_clients"][0]["via"], nlohmann::json::array({200}));
  const auto report = nlohmann::json::parse(report_json(chain.profile));
  for (const auto& process : report["processes"])
    EXPECT_EQ(process.contains("for_clients"), process["pid"] == 200 || process["pid"] == 300)
        << process["pid"];
}

TEST(Clients, Text) {
  const Chain chain;
  for (const size_t width : {80, 120}) {
    const std::string text = clients_text(chain.profile, {.width = width});
    test::expect_golden("clients-" + std::to_string(width) + ".txt", text);
    test::expect_harmless(text, width);
  }
  test::expect_golden("clients-none.txt", clients_text(charged_to_clients(chain.profile), {}));
}

TEST(Clients, HostileNamesDoNoHarm) {
  Chain chain;
  const LabelId bad = chain.process(
      "\x1b[31m\n\xe2\x80\xae"
      "evil",
      400);
  const ClientId client = chain.profile.client({.label = bad, .via = {bad, bad}});
  chain.add(chain.proxy, "user", 500, client);
  chain.add(bad, "user", 500, client);
  test::expect_harmless(clients_text(chain.profile, {.width = 100}), 100);
}

}  // namespace
}  // namespace pkprof
