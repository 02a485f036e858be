// SPDX-License-Identifier: Apache-2.0
// Waiting: adding up, text and JSON.
#include "report/waits/waits.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "golden.h"
#include "model/merge.h"
#include "report/format.h"
#include "report/waits/waits_text.h"

namespace pkprof {
namespace {

constexpr uint64_t one_ms = 1'000'000;

// A worker that asks a database, which reads its disk; a hog in its way; and whoever has no nice
// name.
struct Machine {
  Profile profile;
  LabelId worker, database, hog, hostile;

  Machine() {
    profile.meta = {.kernel = "6.18.2-test", .cpus = 2, .duration_ns = 5000 * one_ms};
    worker = process("worker", 77);
    database = process("postgres", 812);
    hog = process("stress-ng", 99);
    hostile = process("\x1b[2J<img src=x>", 666);
    const LabelId kernel = profile.label({.kind = LabelKind::kernel});
    const LabelId idle = profile.label({.kind = LabelKind::idle});
    cpu(worker, 300);
    cpu(hog, 4000);
    wait(worker, "wait:reply", database, 1900, 400, {kernel, hostile});
    wait(worker, "wait:reply", database, 100, 20);
    wait(worker, "wait:runnable", hog, 800, 90);
    wait(worker, "wait:runnable", idle, 20, 90);
    wait(worker, "wait:lock", worker, 500, 12);
    wait(worker, "wait:idle", hostile, 1000, 3);
    wait(database, "wait:disk", kernel, 1100, 200);
    wait(database, "wait:disk", hog, 200, 40);
    wait(database, "wait:fault", kernel, 100, 10);
    wait(database, "wait:memory", hog, 90, 5);
    wait(database, "wait:idle", worker, 2000, 400);
    wait(hostile, "wait:event", hostile, 60, 2);
    wait(hostile, "wait:timer", kernel, 60, 1);
    wait(hostile, "wait:other", kernel, 30, 1);
    const LabelId unknown = profile.label({.kind = LabelKind::unclaimed, .reason = "untracked"});
    const LabelId nobody_yet = profile.label({.kind = LabelKind::unclaimed, .reason = "not over"});
    wait(hog, "wait:lock", nobody_yet, 50, 1);
    wait(hog, "wait:reply", unknown, 40, 1);
    wait(hog, "wait:disk", unknown, 20, 1);
  }
  LabelId process(const char* comm, uint32_t pid) {
    return profile.label({.kind = LabelKind::process, .pid = pid, .start_ns = pid, .comm = comm});
  }
  void cpu(LabelId who, uint64_t milliseconds) {
    profile.add({.ran_on = who, .served = who, .source = profile.string("user")},
                {.count = milliseconds, .ns = milliseconds * one_ms});
  }
  void wait(LabelId who, const char* source, LabelId whom, uint64_t milliseconds, uint64_t count,
            const std::vector<LabelId>& before = {}) {
    profile.add({.ran_on = whom,
                 .served = who,
                 .source = profile.string(source),
                 .resource = Resource::wait,
                 .wakeup = profile.wakeup({.label = whom, .before = before})},
                {.count = count, .ns = milliseconds * one_ms});
  }
};

TEST(Waits, AddUpByWaiter) {
  const Machine machine;
  const Waits waits = waits_of(machine.profile, By::pid, {});
  ASSERT_EQ(waits.rows.size(), 4);
  const Waiting& worker = waits.rows[0];
  EXPECT_EQ(waits.groups.all()[worker.who].label, machine.worker);
  EXPECT_EQ(worker.cpu_ns, 300 * one_ms);
  EXPECT_EQ(worker.wait_ns, 3320 * one_ms);
  EXPECT_EQ(worker.idle_ns, 1000 * one_ms);
  EXPECT_EQ(worker.reasons[0].kind, "reply");
  EXPECT_EQ(worker.reasons[0].ns, 2000 * one_ms);
  EXPECT_EQ(worker.reasons[0].count, 420);
  EXPECT_EQ(worker.reasons[0].chains.size(), 2);
}

// On the CPU, waiting or idle is all of its lifetime: also while an interrupt works for another
// one.
TEST(Waits, CpuTimeIsThatOfWhoWasOnIt) {
  Machine machine;
  Profile& profile = machine.profile;
  const auto add = [&](LabelId ran_on, LabelId served) {
    profile.add({.ran_on = ran_on,
                 .served = served,
                 .source = profile.string("softirq:NET_RX"),
                 .basis = Basis::consumed},
                {.count = 7, .ns = 7 * one_ms});
  };
  add(machine.worker, machine.hog);
  add(machine.hog, machine.worker);
  EXPECT_EQ(waits_of(profile, By::pid, {}).rows[0].cpu_ns, 307 * one_ms);
}

// Chains that begin alike are one, as far as they are.
TEST(Waits, TellWhoHadMostlyWokenTheWaker) {
  WaitReason reason;
  reason.chains = {{{}, 100}, {{7}, 40}, {{7, 8, 7}, 50}, {{9, 8}, 20}};
  const WakerChain chain = main_chain(reason);
  EXPECT_EQ(chain.ns, 90);
  EXPECT_EQ(chain.wakers, (std::vector<GroupId>{7, 8, 7}));
  reason.chains = {{{7}, 60}, {{7, 8}, 30}};
  EXPECT_EQ(main_chain(reason).wakers, std::vector<GroupId>{7});
  reason.chains = {{{}, 100}};
  EXPECT_TRUE(main_chain(reason).wakers.empty());
}

TEST(Waits, OfOneProcess) {
  const Machine machine;
  const std::vector<uint32_t> pids = {812};
  const Waits waits = waits_of(machine.profile, By::pid, pids);
  ASSERT_EQ(waits.rows.size(), 1);
  EXPECT_EQ(waits.rows[0].wait_ns, 1490 * one_ms);
}

TEST(Waits, AreNoCpuTime) {
  const Machine machine;
  const Profile cpu = of_resource(machine.profile, Resource::cpu);
  EXPECT_EQ(cpu.samples().size(), 2);
  const Profile waits = of_resource(machine.profile, Resource::wait);
  EXPECT_EQ(waits.samples().size(), machine.profile.samples().size() - 2);
  EXPECT_FALSE(has_resource(cpu, Resource::wait));
  EXPECT_TRUE(has_resource(machine.profile, Resource::wait));
}

TEST(Waits, Text) {
  const Machine machine;
  for (const size_t width : {80, 120}) {
    const std::string text = waits_text(machine.profile, {.width = width});
    test::expect_harmless(text, width);
    test::expect_golden("waits-" + std::to_string(width) + ".txt", text);
  }
  test::expect_golden("waits-none.txt", waits_text(Profile(), {.width = 80}));
}

TEST(Waits, SumToNoCpuTime) {
  const Machine machine;
  const ReportOptions options{.width = 80};
  const Profile waits = of_resource(machine.profile, Resource::wait);
  EXPECT_EQ(busy_line(busy_time(waits, options), options),
            "8.1 s of waiting shown, of all threads, in 5.0 s\n");
}

TEST(Waits, Json) {
  const Machine machine;
  const auto json = nlohmann::json::parse(waits_json(machine.profile, {}));
  EXPECT_EQ(json["schema"], "pkprof.waits/1");
  const auto& row = json["waits"][0];
  EXPECT_EQ(row["who"]["pid"], 77);
  EXPECT_EQ(row["wait_ns"], 3320 * one_ms);
  EXPECT_EQ(row["kinds"]["runnable"], 820 * one_ms);
  EXPECT_EQ(row["reasons"][0]["for"]["comm"], "postgres");
  EXPECT_EQ(row["reasons"][0]["chains"][0]["woken_by"][0], "KERNEL");
}

}  // namespace
}  // namespace pkprof
