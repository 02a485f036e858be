// SPDX-License-Identifier: Apache-2.0
// FOR OTHERS and WITH SERVERS: each moment is once in the column, whatever the rows are.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <random>

#include "golden.h"
#include "random_profile.h"
#include "report/clients.h"
#include "report/ledger.h"
#include "report/ledger/ledger_text.h"
#include "report/report_json.h"
#include "report_fixture.h"
#include "served_fixture.h"

namespace pkprof {
namespace {

std::map<std::string, LedgerRow> rows_of(const Profile& profile, const Ledger& ledger) {
  std::map<std::string, LedgerRow> rows;
  for (const LedgerRow& row : ledger.processes)
    rows[group_title(profile, ledger.by, ledger.groups[row.group])] = row;
  return rows;
}

void expect_row(const LedgerRow& row, uint64_t costs, uint64_t for_others, uint64_t with_servers) {
  EXPECT_EQ(row.costs_ns(), costs * test::one_ms);
  EXPECT_EQ(row.for_others_ns, for_others * test::one_ms);
  EXPECT_EQ(row.with_servers_ns(), with_servers * test::one_ms);
}

TEST(LedgerOfClients, WhatWasForOthersMovesToThem) {
  const test::ServedMachine machine;
  const Ledger ledger = build_ledger(machine.profile);
  auto rows = rows_of(machine.profile, ledger);
  ASSERT_EQ(rows.size(), 5U);
  expect_row(rows["browser[100]"], 50, 0, 695);
  expect_row(rows["nginx[200]"], 358, 348, 17);
  expect_row(rows["postgres[300]"], 362, 357, 5);
  expect_row(rows["curl[150]"], 0, 0, 20);
  expect_row(rows["192.0.2.7"], 0, 0, 40);
  EXPECT_EQ(ledger.other_ns, 15 * test::one_ms);
  EXPECT_EQ(ledger.other_for_others_ns, 15 * test::one_ms);
  EXPECT_EQ(ledger.other_with_servers_ns(), 8 * test::one_ms);
  EXPECT_EQ(ledger.sum_ns(), 2000 * test::one_ms);
  EXPECT_EQ(ledger.sum_with_servers_ns(), 2000 * test::one_ms);
}

TEST(LedgerOfClients, WhatIsNotSelectedIsOther) {
  const test::ServedMachine machine;
  const std::vector<uint32_t> pids = {200};
  const Ledger ledger = build_ledger(machine.profile, pids);
  ASSERT_EQ(ledger.processes.size(), 1U);
  expect_row(ledger.processes[0], 358, 348, 17);
  EXPECT_EQ(ledger.other_for_others_ns, 7 * test::one_ms) << "postgres for nginx";
  EXPECT_EQ(ledger.other_with_servers_ns(), (50 + 355 + 15 + 348) * test::one_ms);
  EXPECT_EQ(ledger.sum_with_servers_ns(), 2000 * test::one_ms);
}

TEST(LedgerOfClients, WhatIsForAFellowStaysWithTheGroup) {
  const test::ServedMachine machine;
  const Ledger ledger = build_ledger(machine.profile, {}, By::cgroup);
  auto rows = rows_of(machine.profile, ledger);
  expect_row(rows["/shop"], 720, 698, 22);
  expect_row(rows["/user"], 50, 0, 715);
  expect_row(rows["(other machines)"], 0, 0, 40);
  EXPECT_EQ(ledger.sum_with_servers_ns(), 2000 * test::one_ms);
}

TEST(LedgerOfClients, WhichThreadAskedIsNotKnown) {
  Profile profile;
  profile.meta = {.cpus = 1, .duration_ns = 100};
  const auto process = [&](uint32_t pid) {
    return profile.label({.kind = LabelKind::process, .pid = pid, .start_ns = 1, .comm = "p"});
  };
  const LabelId server = process(1);
  const ClientId client = profile.client({.label = process(2)});
  profile.add({.ran_on = server,
               .served = server,
               .source = profile.string("user"),
               .thread = 11,
               .served_thread = 11,
               .client = client},
              {.ns = 60});
  const Ledger ledger = build_ledger(profile, {}, By::thread);
  auto rows = rows_of(profile, ledger);
  EXPECT_EQ(rows["p[1/11]"].for_others_ns, 60U);
  EXPECT_EQ(rows["p[2/-]"].with_servers_ns(), 60U);
}

TEST(LedgerOfClients, WithoutClientsNothingIsForOthers) {
  const Ledger ledger = build_ledger(test::small_machine());
  EXPECT_FALSE(ledger.has_clients);
  for (const LedgerRow& row : ledger.processes) EXPECT_EQ(row.with_servers_ns(), row.costs_ns());
  EXPECT_FALSE(build_ledger(charged_to_clients(test::ServedMachine().profile)).has_clients)
      << "they are charged already";
}

// Whatever a file says, also clients that are the kernel, idle or nobody.
TEST(LedgerOfClients, SumsWhateverTheProfile) {
  bool any = false;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const Profile profile = test::random_profile(seed, 60);
    for (const By by : every_by) {
      for (const auto& pids : {std::vector<uint32_t>{}, {1, 2}, {99}}) {
        const Ledger ledger = build_ledger(profile, pids, by);
        EXPECT_EQ(ledger.sum_with_servers_ns(), ledger.sum_ns());
        uint64_t moved = ledger.other_for_others_ns;
        uint64_t arrived = ledger.other_by_servers_ns;
        for (const LedgerRow& row : ledger.processes) {
          EXPECT_LE(row.for_others_ns, row.costs_ns());
          moved += row.for_others_ns;
          arrived += row.by_servers_ns;
        }
        EXPECT_LE(ledger.other_for_others_ns, ledger.other_ns);
        EXPECT_EQ(moved, arrived);
        any = any || moved != 0;
      }
    }
  }
  EXPECT_TRUE(any);
}

// Processes, addresses and OTHER that work for one another.
Profile random_servers(uint64_t seed) {
  std::mt19937_64 random(seed);
  Profile profile;
  profile.meta = {.cpus = 4, .duration_ns = 1'000'000'000'000};
  std::vector<LabelId> labels = {profile.label({.kind = LabelKind::other})};
  for (uint32_t pid = 1; pid < 8; ++pid)
    labels.push_back(profile.label({.kind = LabelKind::process, .pid = pid, .start_ns = pid}));
  for (const char* const address : {"192.0.2.1", "2001:db8::1"})
    labels.push_back(
        profile.label({.kind = LabelKind::remote, .without_pid = true, .reason = address}));
  const auto any = [&] { return labels[random() % labels.size()]; };
  for (int i = 0; i < 80; ++i) {
    const LabelId served = labels[random() % 8];  // an address runs nothing
    const LabelId client = any();
    profile.add({.ran_on = served,
                 .served = served,
                 .source = profile.string(random() % 2 ? "user" : "syscall:read"),
                 .client = random() % 3 ? profile.client({.label = client, .via = {any()}}) : 0},
                {.ns = random() % 1'000'000'000});
  }
  return profile;
}

TEST(LedgerOfClients, WithServersIsWhatByClientSays) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const Profile profile = random_servers(seed);
    const Profile charged = charged_to_clients(profile);
    for (const auto& pids : {std::vector<uint32_t>{}, {1, 2}}) {
      const Ledger before = build_ledger(profile, pids);
      const Ledger after = build_ledger(charged, pids);
      std::map<std::string, uint64_t> with_servers;
      std::map<std::string, uint64_t> by_client;
      for (const auto& [name, row] : rows_of(profile, before))
        if (row.with_servers_ns()) with_servers[name] = row.with_servers_ns();
      for (const auto& [name, row] : rows_of(charged, after))
        if (row.costs_ns()) by_client[name] = row.costs_ns();
      EXPECT_EQ(with_servers, by_client) << seed;
      EXPECT_EQ(before.other_with_servers_ns(), after.other_ns) << seed;
    }
  }
}

TEST(LedgerOfClients, Text) {
  const test::ServedMachine machine;
  for (const size_t width : {76, 80, 120, 160}) {
    const std::string text = ledger_text(machine.profile, {.width = width});
    test::expect_harmless(text, width);
    test::expect_golden("ledger-clients-" + std::to_string(width) + ".txt", text);
  }
  test::expect_golden("ledger-clients-by-cgroup.txt",
                      ledger_text(machine.profile, {.by = By::cgroup}));
  test::expect_golden("ledger-clients-limit.txt", ledger_text(machine.profile, {.limit = 1}));
}

TEST(LedgerOfClients, TextFitsWhereIdsAreLong) {
  const test::ServedMachine machine;
  for (const By by : {By::pid, By::thread, By::comm, By::container})
    for (size_t width = 80; width < 140; ++width)
      test::expect_harmless(ledger_text(machine.profile, {.width = width, .by = by}), width);
}

TEST(LedgerOfClients, Json) {
  const test::ServedMachine machine;
  const std::string text = report_json(machine.profile);
  test::expect_golden("report-clients.json",
                      nlohmann::ordered_json::parse(text).dump(1, ' ', true) + "\n");
  for (const By by : {By::pid, By::cgroup, By::comm}) {
    const auto report = nlohmann::json::parse(report_json(machine.profile, {.by = by}));
    uint64_t sum = report["other_with_servers_ns"].get<uint64_t>();
    for (const char* const key : {"kernel_ns", "idle_ns", "steal_ns"})
      sum += report[key].get<uint64_t>();
    for (const auto& [reason, ns] : report["unclaimed"].items()) sum += ns.get<uint64_t>();
    for (const auto& row : report[by == By::pid ? "processes" : "groups"])
      sum += row["with_servers_ns"].get<uint64_t>();
    EXPECT_EQ(sum, report["cpu_ns"]) << to_string(by);
  }
  const auto without = nlohmann::json::parse(report_json(test::small_machine()));
  EXPECT_FALSE(without.contains("other_with_servers_ns"));
  EXPECT_FALSE(without["processes"][0].contains("with_servers_ns"));
}

}  // namespace
}  // namespace pkprof
