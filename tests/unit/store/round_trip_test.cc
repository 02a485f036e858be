// SPDX-License-Identifier: Apache-2.0
// What is put into a store comes out of it, to the nanosecond.
#include <nlohmann/json.hpp>

#include "model/merge.h"
#include "random_profile.h"
#include "report/ledger.h"
#include "report/report_json.h"
#include "store/store_fixture.h"

namespace pkprof {
namespace {

using test::cut_of;
using test::second_ns;
using test::served_name;
using test::StoreTest;
using test::times_by;
using test::web_machine;

class StoreRoundTrip : public StoreTest {};

// Labels that nothing refers to are the one thing that does not come back.
std::vector<std::string> lines_of(const Profile& profile) {
  std::vector<std::string> lines = test::described(rekeyed(profile, [](Profile&, SampleKey&) {}));
  std::erase_if(lines, [](const std::string& line) { return line.find('>') == std::string::npos; });
  return lines;
}

TEST_F(StoreRoundTrip, AnythingComesBack) {
  for (uint64_t seed = 1; seed < 60; ++seed) {
    std::filesystem::remove(path());
    const auto store = made();
    const Cut cut = cut_of("web1", 1 + seed, test::storable_profile(seed, seed));
    const auto put = store->put(cut);
    ASSERT_TRUE(put) << seed << ": " << put.error().message;
    const auto back = store->query({});
    ASSERT_TRUE(back) << seed << ": " << back.error().message;
    ASSERT_EQ(lines_of(*back), lines_of(cut.profile)) << seed;
    EXPECT_EQ(back->meta, cut.profile.meta) << seed;
    EXPECT_EQ(back->requests.size(), cut.profile.requests.size()) << seed;
    EXPECT_EQ(back->thread_names().size(), cut.profile.thread_names().size()) << seed;
  }
}

std::string identity_of(const Label& label) {
  return std::string(to_string(label.kind)) + "," + std::to_string(label.pid) + "," +
         std::to_string(label.start_ns) + "," + label.reason;
}

// All values, by process, source, basis, stack, resource, thread, client and waker. (What else a
// label says may differ by cut. A merged file has what its first one says, a store what the first
// one with a sample of it says.)
std::map<std::string, SampleValue> values_of(const Profile& profile) {
  std::map<std::string, SampleValue> values;
  const auto stack = [&](StackId id) {
    std::string text;
    for (const FrameId frame : profile.frames_of(id)) {
      const Frame& f = profile.frames()[frame];
      text += ";" + profile.text(f.function) + "," + std::to_string(f.address) + "," +
              profile.text(f.file) + "," + std::to_string(f.line);
    }
    return text;
  };
  for (const auto& [key, value] : profile.samples()) {
    const Client& client = profile.clients()[key.client];
    const Wakeup& wakeup = profile.wakeups()[key.wakeup];
    std::string name = identity_of(profile.labels()[key.ran_on]) + ">" +
                       identity_of(profile.labels()[key.served]) + ">" + profile.text(key.source) +
                       std::string(to_string(key.basis)) + std::string(to_string(key.resource)) +
                       std::to_string(key.thread) + "/" + std::to_string(key.served_thread) +
                       stack(key.stack);
    if (key.client)
      name += "|" + identity_of(profile.labels()[client.label]) +
              std::string(to_string(client.rule)) + std::to_string(client.via.size()) +
              stack(client.call);
    if (key.wakeup)
      name += "|" + identity_of(profile.labels()[wakeup.label]) +
              std::to_string(wakeup.before.size()) + stack(wakeup.stack);
    values[name] += value;
  }
  return values;
}

TEST_F(StoreRoundTrip, CutsOfOneHostAreAsMergedFiles) {
  const auto store = made();
  Profile merged;
  for (uint64_t i = 0; i < 12; ++i) {
    Cut cut = cut_of("web1", (i + 1) * 10 * second_ns, test::storable_profile(i, 30));
    cut.profile.meta.kernel = "6.1";
    cut.profile.meta.command = cut.profile.meta.counted_by = "";
    cut.profile.meta.frequency_hz = 997;
    ASSERT_TRUE(store->put(cut).value());
    if (i == 0)
      merged = cut.profile;
    else
      ASSERT_TRUE(merge(merged, cut.profile));
  }
  const Profile found = store->query({}).value();
  EXPECT_EQ(values_of(found), values_of(merged));
  EXPECT_GT(values_of(found).size(), 300U);
  EXPECT_EQ(found.meta, merged.meta);
  EXPECT_EQ(found.cpu_ns(), merged.cpu_ns());
}

TEST_F(StoreRoundTrip, TheSameCutTwiceIsOneCut) {
  const auto store = made();
  const Cut cut = cut_of("web1", second_ns, web_machine());
  EXPECT_TRUE(store->put(cut).value());
  EXPECT_FALSE(store->put(cut).value());
  EXPECT_FALSE(opened()->put(cut).value()) << "through another connection";
  const Profile found = store->query({}).value();
  EXPECT_EQ(times_by(found, served_name), times_by(cut.profile, served_name));
  EXPECT_EQ(found.cpu_ns(), 2 * second_ns);
  Cut after_boot = cut;
  after_boot.boot_id = "another";
  EXPECT_TRUE(store->put(after_boot).value()) << "another boot's";
  EXPECT_EQ(store->info()->cuts, 2U);
}

TEST_F(StoreRoundTrip, HostsWithTheSameIdsAreToldApart) {
  const auto store = made();
  ASSERT_TRUE(store->put(cut_of("web1", second_ns, web_machine())).value());
  Profile longer = web_machine();
  longer.meta.cpus = 3;
  longer.meta.duration_ns = 3 * second_ns;
  longer.add({.ran_on = 3, .served = 3, .source = longer.string("idle")}, {.ns = 7 * second_ns});
  ASSERT_TRUE(store->put(cut_of("web2", second_ns, longer)).value());
  const Profile both = store->query({}).value();
  const auto times = times_by(both, served_name);
  EXPECT_EQ(times.at("web1/nginx:812"), 500'000'001U);
  EXPECT_EQ(times.at("web2/nginx:812"), 500'000'001U);
  EXPECT_EQ(times.at("IDLE"), 9 * second_ns);
  EXPECT_EQ(both.meta.cpus, 5U);
  EXPECT_EQ(both.meta.host, "web1, web2");
  EXPECT_EQ(both.cpu_ns(), 11 * second_ns) << "CPU time adds up";
  const Ledger ledger = build_ledger(both, {}, By::host);
  ASSERT_EQ(ledger.processes.size(), 2U);
  for (const LedgerRow& row : ledger.processes)
    EXPECT_EQ(row.user_ns + row.own_ns + row.async_ns, second_ns);
  // Each by itself is as if there were no other.
  const Profile web2 = store->query({.hosts = {"web2"}}).value();
  EXPECT_EQ(lines_of(web2), lines_of(longer));
  EXPECT_EQ(web2.meta.all_cpu_ns, 0U);
}

TEST_F(StoreRoundTrip, SumsAreThoseOfSqlite3) {
  const auto store = made();
  if (asked_of_sqlite3("select 1;") != "1\n") GTEST_SKIP() << "there is no sqlite3 command";
  for (uint64_t i = 1; i < 5; ++i)
    ASSERT_TRUE(
        store->put(cut_of("web" + std::to_string(i % 2), i * second_ns, web_machine())).value());
  const auto report =
      nlohmann::json::parse(report_json(store->query({.hosts = {"web1"}}).value(), {}));
  std::map<std::string, uint64_t> reported;
  for (const auto& row : report["processes"])
    reported[row["comm"]] = row["user_ns"].get<uint64_t>() + row["own_ns"].get<uint64_t>() +
                            row["async_ns"].get<uint64_t>();
  EXPECT_EQ(asked_of_sqlite3("select sum(ns) from charges join labels on labels.id = served join "
                             "cuts on cuts.id = cut where comm = 'nginx' and cuts.host = 'web1';"),
            std::to_string(reported["nginx"]) + "\n");
  EXPECT_EQ(asked_of_sqlite3("select sum(cpu_ns) from cuts where host = 'web1';"),
            std::to_string(report["cpu_ns"].get<uint64_t>()) + "\n");
  EXPECT_EQ(asked_of_sqlite3("select count(*) from labels where comm = 'nginx';"), "2\n")
      << "once for each host";
  EXPECT_EQ(asked_of_sqlite3("select count(*) from stacks;"), "1\n") << "once for all hosts";
  EXPECT_EQ(asked_of_sqlite3("pragma integrity_check;"), "ok\n");
}

TEST_F(StoreRoundTrip, WhatIsIncompleteSaysWhere) {
  const auto store = made();
  Cut cut = cut_of("web1", second_ns, web_machine());
  cut.profile.meta.degraded = {"no BTF", "all are so"};
  ASSERT_TRUE(store->put(cut).value());
  cut = cut_of("web2", second_ns, web_machine());
  cut.profile.meta.degraded = {"all are so"};
  cut.profile.meta.counters = {{"stacks lost", 3}};
  ASSERT_TRUE(store->put(cut).value());
  const Meta meta = store->query({}).value().meta;
  EXPECT_EQ(meta.degraded, (std::vector<std::string>{"no BTF (on web1)", "all are so"}));
  EXPECT_EQ(meta.counters.at("stacks lost"), 3U);
}

TEST_F(StoreRoundTrip, AProfileOfSeveralHostsIsNoCut) {
  const auto store = made();
  Profile profile = web_machine();
  profile.label({.kind = LabelKind::process, .pid = 1, .host = "web7"});
  const auto put = store->put(cut_of("web1", second_ns, profile));
  ASSERT_FALSE(put);
  EXPECT_NE(put.error().message.find("several machines"), std::string::npos);
  EXPECT_EQ(store->info()->cuts, 0U);
}

}  // namespace
}  // namespace pkprof
