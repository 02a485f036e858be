// SPDX-License-Identifier: Apache-2.0
#include "report/ledger.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "random_profile.h"
#include "report/report_json.h"
#include "report_fixture.h"

namespace pkprof {
namespace {

constexpr uint64_t ms = 1'000'000;

const LedgerRow& row_of(const Profile& profile, const Ledger& ledger, uint32_t pid) {
  for (const LedgerRow& row : ledger.processes) {
    if (profile.labels()[row.label].pid == pid) return row;
  }
  ADD_FAILURE() << "no row for " << pid;
  return ledger.processes.at(0);
}

// Of those that are not rows.
uint64_t special_seems_ns(const Ledger& ledger) {
  return ledger.idle_seems_ns + ledger.kernel_seems_ns + ledger.steal_seems_ns +
         ledger.other_seems_ns;
}

uint64_t special_ns(const nlohmann::json& report) {
  uint64_t sum = 0;
  for (const char* key : {"kernel_ns", "idle_ns", "steal_ns", "other_ns"})
    sum += report[key].get<uint64_t>();
  return sum;
}

TEST(Ledger, SumsToCpusTimesTime) {
  const Profile profile = test::small_machine();
  const Ledger ledger = build_ledger(profile);
  EXPECT_EQ(ledger.sum_ns(), profile.cpu_ns());
  EXPECT_EQ(ledger.unclaimed.at("unsampled"), 1100 * ms);
  EXPECT_EQ(ledger.sampled_ns + ledger.unsampled_ns, ledger.cpu_ns);
}

TEST(Ledger, SumsWhateverTheProfile) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const Profile profile = test::random_profile(seed, 40);
    for (const auto& pids : {std::vector<uint32_t>{}, {1, 2}, {99}}) {
      const Ledger ledger = build_ledger(profile, pids);
      uint64_t sampled = 0;
      for (const auto& [key, value] : profile.samples()) sampled += value.ns;
      EXPECT_EQ(ledger.sum_ns(), std::max(profile.cpu_ns(), sampled));
      uint64_t flows = 0;
      for (const Flow& flow : ledger.flows) flows += flow.ns;
      EXPECT_EQ(flows, sampled);
      uint64_t seems = special_seems_ns(ledger);
      for (const LedgerRow& row : ledger.processes) seems += row.seems_ns;
      EXPECT_EQ(seems, sampled) << "someone was on the CPU all the time";
    }
  }
}

TEST(Ledger, MoreThanFullIsLeftAsItIs) {
  Profile profile;
  profile.meta.cpus = 1;
  profile.meta.duration_ns = 100;
  profile.add({}, {.count = 1, .ns = 101});
  const Ledger ledger = build_ledger(profile);
  EXPECT_EQ(ledger.sum_ns(), 101u);
  EXPECT_TRUE(ledger.unclaimed.empty());
}

TEST(Ledger, UserOwnAsyncAndStolen) {
  const Profile profile = test::small_machine();
  const Ledger ledger = build_ledger(profile);
  const LedgerRow& nginx = row_of(profile, ledger, 812);
  EXPECT_EQ(nginx.user_ns, 1300 * ms);
  EXPECT_EQ(nginx.own_ns, 950 * ms) << "system calls and faults";
  EXPECT_EQ(nginx.async_ns, 3180 * ms) << "interrupts count even when they hit the right one";
  EXPECT_EQ(nginx.stolen_ns, 60 * ms) << "for the kernel itself";
  EXPECT_EQ(nginx.seems_ns, (1300 + 950 + 30 + 60) * ms);
  EXPECT_EQ(nginx.sources.at("softirq:NET_RX"), 3150 * ms);
  EXPECT_EQ(nginx.basis[static_cast<size_t>(Basis::consumed)], 3150 * ms);
  const LedgerRow& ksoftirqd = row_of(profile, ledger, 22);
  EXPECT_EQ(ksoftirqd.costs_ns(), 0u) << "it works for others only";
  EXPECT_EQ(ksoftirqd.stolen_ns, 2790 * ms);
}

TEST(Ledger, RowsAddUpByThemselves) {
  const Profile profile = test::small_machine();
  for (const LedgerRow& row : build_ledger(profile).processes) {
    uint64_t sources = 0;
    for (const auto& [source, ns] : row.sources) sources += ns;
    uint64_t basis = 0;
    for (const uint64_t ns : row.basis) basis += ns;
    EXPECT_EQ(sources, row.costs_ns());
    EXPECT_EQ(basis, row.costs_ns());
  }
}

TEST(Ledger, SelectionKeepsTheSum) {
  const Profile profile = test::small_machine();
  const std::vector<uint32_t> pids = {812};
  const Ledger ledger = build_ledger(profile, pids);
  ASSERT_EQ(ledger.processes.size(), 1u);
  EXPECT_EQ(ledger.sum_ns(), profile.cpu_ns());
  EXPECT_EQ(ledger.processes[0].costs_ns(), row_of(profile, build_ledger(profile), 812).costs_ns());
}

TEST(Ledger, StealIsARowOfItsOwn) {
  const Profile profile = test::small_machine();
  for (const By by : every_by) {
    for (const auto& pids : {std::vector<uint32_t>{}, {812}}) {
      const Ledger ledger = build_ledger(profile, pids, by);
      EXPECT_EQ(ledger.steal_ns, 400 * ms);
      EXPECT_EQ(ledger.steal_seems_ns, 400 * ms);
      EXPECT_EQ(ledger.sum_ns(), profile.cpu_ns());
      if (pids.empty()) {
        EXPECT_EQ(ledger.other_ns, 1000 * ms);
      }
      for (const Flow& flow : ledger.flows) {
        const bool steal = group_title(profile, by, ledger.groups[flow.served]) == "STEAL";
        EXPECT_EQ(profile.text(flow.source) == "steal", steal);
        EXPECT_FALSE(steal && is_taken(profile, ledger, flow));
      }
    }
  }
}

TEST(Ledger, LargestFirst) {
  const Ledger ledger = build_ledger(test::small_machine());
  for (size_t i = 1; i < ledger.processes.size(); ++i) {
    const LedgerRow& before = ledger.processes[i - 1];
    const LedgerRow& row = ledger.processes[i];
    EXPECT_GE(before.costs_ns() + before.stolen_ns, row.costs_ns() + row.stolen_ns);
  }
  for (size_t i = 1; i < ledger.flows.size(); ++i)
    EXPECT_GE(ledger.flows[i - 1].ns, ledger.flows[i].ns);
}

// The row whose title this is.
const LedgerRow& row_of(const Profile& profile, const Ledger& ledger, const std::string& title) {
  for (const LedgerRow& row : ledger.processes) {
    if (group_title(profile, ledger.by, ledger.groups[row.group]) == title) return row;
  }
  ADD_FAILURE() << "no row for " << title;
  return ledger.processes.at(0);
}

TEST(Groups, NamesGoBothWays) {
  for (const By by : every_by) EXPECT_EQ(by_from_string(to_string(by)), by);
  EXPECT_FALSE(by_from_string("colour"));
}

TEST(Groups, SumWhateverTheProfile) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const Profile profile = test::random_profile(seed, 40);
    uint64_t sampled = 0;
    for (const auto& [key, value] : profile.samples()) sampled += value.ns;
    for (const By by : every_by) {
      for (const auto& pids : {std::vector<uint32_t>{}, {1, 2}, {99}}) {
        const Ledger ledger = build_ledger(profile, pids, by);
        EXPECT_EQ(ledger.sum_ns(), std::max(profile.cpu_ns(), sampled));
        uint64_t seems = special_seems_ns(ledger);
        for (const LedgerRow& row : ledger.processes) seems += row.seems_ns;
        EXPECT_EQ(seems, sampled);
        uint64_t flows = 0;
        for (const Flow& flow : ledger.flows) flows += flow.ns;
        EXPECT_EQ(flows, sampled);
        for (const LedgerRow& row : ledger.processes) {
          EXPECT_LE(row.stolen_ns + row.within_ns, row.seems_ns);
          EXPECT_NE(ledger.groups[row.group].kind, GroupKind::special);
        }
      }
    }
  }
}

// Each process is in one group, and a group is what its members are; but what they do for each
// other is not stolen from it.
TEST(Groups, AreTheSumsOfTheirMembers) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const Profile profile = seed == 0 ? test::grouped_machine() : test::random_profile(seed, 60);
    const Ledger alone = build_ledger(profile);
    for (const By by : every_by) {
      if (by == By::thread) continue;
      const Ledger ledger = build_ledger(profile, {}, by);
      size_t processes = 0;
      for (const LedgerRow& row : ledger.processes) {
        const auto& members = ledger.groups[row.group].processes;
        processes += members.size();
        LedgerRow sum;
        for (const LedgerRow& one : alone.processes) {
          if (std::ranges::find(members, one.label) == members.end()) continue;
          sum.user_ns += one.user_ns;
          sum.own_ns += one.own_ns;
          sum.async_ns += one.async_ns;
          sum.seems_ns += one.seems_ns;
          sum.stolen_ns += one.stolen_ns;
        }
        EXPECT_EQ(row.user_ns, sum.user_ns);
        EXPECT_EQ(row.own_ns, sum.own_ns);
        EXPECT_EQ(row.async_ns, sum.async_ns);
        EXPECT_EQ(row.seems_ns, sum.seems_ns);
        EXPECT_EQ(row.stolen_ns + row.within_ns, sum.stolen_ns);
      }
      EXPECT_EQ(processes, alone.processes.size());
    }
  }
}

TEST(Groups, WorkForAFellowIsNotStolen) {
  const Profile profile = test::grouped_machine();
  const Ledger ledger = build_ledger(profile, {}, By::container);
  const LedgerRow& web = row_of(profile, ledger, "web\x1b[31m");
  EXPECT_EQ(ledger.groups[web.group].processes.size(), 2u);
  EXPECT_EQ(web.user_ns, 1600 * ms);
  EXPECT_EQ(web.own_ns, 600 * ms);
  EXPECT_EQ(web.async_ns, (200 + 50 + 25 + 75 + 400) * ms) << "for any member, on whatever CPU";
  EXPECT_EQ(web.within_ns, 200 * ms) << "of one member's time, for the other";
  EXPECT_EQ(web.stolen_ns, 300 * ms) << "for the other container";
  EXPECT_EQ(web.seems_ns, web.user_ns + web.own_ns + (200 + 50 + 25 + 75) * ms + web.stolen_ns);
  EXPECT_EQ(row_of(profile, ledger, "docker 0123456789ab").stolen_ns, 10 * ms) << "for nobody";
  EXPECT_EQ(row_of(profile, ledger, "(kernel threads)").stolen_ns, 1030 * ms);
  EXPECT_EQ(row_of(profile, ledger, "(no container)").costs_ns(), 280 * ms);
  EXPECT_EQ(row_of(profile, ledger, "(container not known)").costs_ns(), 70 * ms);
}

TEST(Groups, ThreadsTakeFromEachOther) {
  const Profile profile = test::grouped_machine();
  const Ledger ledger = build_ledger(profile, {}, By::thread);
  const LedgerRow& first = row_of(profile, ledger, "nginx[100/100]");
  EXPECT_EQ(first.user_ns, 900 * ms);
  EXPECT_EQ(first.async_ns, 50 * ms) << "by the other thread";
  EXPECT_EQ(first.stolen_ns, 500 * ms);
  const LedgerRow& second = row_of(profile, ledger, "log\x1b]0;x\x07[100/103]");
  EXPECT_EQ(second.costs_ns(), 400 * ms);
  EXPECT_EQ(second.stolen_ns, 50 * ms) << "not the 25 that may have been for itself";
  EXPECT_EQ(second.seems_ns, 475 * ms);
  const LedgerRow& any = row_of(profile, ledger, "nginx[100/-]");
  EXPECT_EQ(any.async_ns, 425 * ms);
  EXPECT_EQ(any.seems_ns, 0u);
  // By process, what threads do for each other is nobody's loss.
  EXPECT_EQ(row_of(profile, build_ledger(profile), 100).stolen_ns, 500 * ms);
}

TEST(Groups, ContainersOfOneNameStayTwo) {
  Profile profile;
  const auto add = [&](uint32_t pid, const Container& container) {
    const LabelId id = profile.label(
        {.kind = LabelKind::process, .pid = pid, .start_ns = 1, .container = container});
    profile.add({.ran_on = id, .served = id, .source = profile.string("user")}, {.ns = 1});
  };
  add(1, {.id = std::string(64, 'a'), .name = "web"});
  add(2, {.id = std::string(64, 'b'), .name = "web"});
  add(3, {.id = std::string(64, 'b'), .name = "web"});
  add(4, {.id = "web", .runtime = "lxc"});
  add(5, {.id = "web", .runtime = "machine"});
  EXPECT_EQ(build_ledger(profile, {}, By::container).processes.size(), 4u);
}

// "(kernel threads)" may be somebody's name.
TEST(Groups, ANameIsNotTakenForWhatItSays) {
  Profile profile;
  const auto add = [&](const Label& label) {
    const LabelId id = profile.label(label);
    profile.add({.ran_on = id, .served = id, .source = profile.string("user")}, {.ns = 1});
  };
  add({.kind = LabelKind::process, .pid = 1, .exe = "(kernel threads)"});
  add({.kind = LabelKind::process, .pid = 2, .kthread = true});
  EXPECT_EQ(build_ledger(profile, {}, By::exe).processes.size(), 2u);
}

TEST(ReportJson, GroupsSumAndFlowsNameThem) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const Profile profile = test::random_profile(seed, 40);
    for (const By by : every_by) {
      if (by == By::pid) continue;
      const auto report = nlohmann::json::parse(report_json(profile, {.by = by}));
      EXPECT_EQ(report["by"], to_string(by));
      EXPECT_FALSE(report.contains("processes")) << "or a sum over both would count all twice";
      uint64_t sum = special_ns(report);
      for (const auto& row : report["groups"])
        sum += row["user_ns"].get<uint64_t>() + row["own_ns"].get<uint64_t>() +
               row["async_ns"].get<uint64_t>();
      for (const auto& [reason, ns] : report["unclaimed"].items()) sum += ns.get<uint64_t>();
      EXPECT_EQ(sum, build_ledger(profile).sum_ns());
      for (const auto& flow : report["flows"]) {
        for (const char* end : {"ran_on", "served"}) {
          if (flow[end].is_string()) continue;
          EXPECT_LT(flow[end].get<size_t>(), report["groups"].size());
        }
      }
    }
  }
}

TEST(ReportJson, StealIsInNoFlow) {
  const Profile profile = test::small_machine();
  for (const By by : every_by) {
    const auto report = nlohmann::json::parse(report_json(profile, {.by = by}));
    EXPECT_EQ(report["steal_ns"], 400 * ms);
    uint64_t sum =
        report["steal_ns"].get<uint64_t>() + report["unclaimed"]["unsampled"].get<uint64_t>();
    for (const auto& flow : report["flows"]) {
      sum += flow["ns"].get<uint64_t>();
      for (const char* end : {"ran_on", "served"})
        EXPECT_TRUE(flow[end].is_number() || flow[end] == "KERNEL" || flow[end] == "IDLE" ||
                    flow[end] == "OTHER" || flow[end] == "UNCLAIMED")
            << flow;
    }
    EXPECT_EQ(sum, report["cpu_ns"]);
  }
}

TEST(ReportJson, SaysWhatShareOfTheTimeWasWatched) {
  Profile profile = test::small_machine();
  auto report = nlohmann::json::parse(report_json(profile));
  EXPECT_EQ(report["watched"], 0.31);
  for (const char* key : {"sampled_hz", "unwatched_ns", "disks_unwatched_ns"})
    EXPECT_FALSE(report.contains(key)) << key;
  EXPECT_EQ(report["cost"].size(), 3U);
  profile.meta.unwatched_ns = 0;
  report = nlohmann::json::parse(report_json(profile));
  EXPECT_TRUE(report["watched"].is_number_float());
  EXPECT_EQ(report["watched"], 1.0);
}

TEST(ReportJson, SumsAndParses) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const Profile profile = test::random_profile(seed, 40);
    const auto report = nlohmann::json::parse(report_json(profile));
    uint64_t sum = special_ns(report);
    for (const auto& row : report["processes"])
      sum += row["user_ns"].get<uint64_t>() + row["own_ns"].get<uint64_t>() +
             row["async_ns"].get<uint64_t>();
    for (const auto& [reason, ns] : report["unclaimed"].items()) sum += ns.get<uint64_t>();
    EXPECT_EQ(sum, build_ledger(profile).sum_ns());
  }
}

}  // namespace
}  // namespace pkprof
