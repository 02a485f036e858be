// SPDX-License-Identifier: Apache-2.0
#include "report/ledger.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

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

TEST(Ledger, SumsToCpusTimesTime) {
  const Profile profile = test::small_machine();
  const Ledger ledger = build_ledger(profile);
  EXPECT_EQ(ledger.sum_ns(), profile.cpu_ns());
  EXPECT_EQ(ledger.unclaimed.at("unsampled"), 1500 * ms);
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
      uint64_t seems = ledger.idle_seems_ns + ledger.kernel_seems_ns + ledger.other_seems_ns;
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

TEST(ReportJson, SumsAndParses) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const Profile profile = test::random_profile(seed, 40);
    const auto report = nlohmann::json::parse(report_json(profile));
    uint64_t sum = report["kernel_ns"].get<uint64_t>() + report["idle_ns"].get<uint64_t>() +
                   report["other_ns"].get<uint64_t>();
    for (const auto& row : report["processes"])
      sum += row["user_ns"].get<uint64_t>() + row["own_ns"].get<uint64_t>() +
             row["async_ns"].get<uint64_t>();
    for (const auto& [reason, ns] : report["unclaimed"].items()) sum += ns.get<uint64_t>();
    EXPECT_EQ(sum, build_ledger(profile).sum_ns());
  }
}

}  // namespace
}  // namespace pkprof
