// SPDX-License-Identifier: Apache-2.0
// What was used of other resources: adding up, text and JSON.
#include "report/usage/usage.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "golden.h"
#include "model/merge.h"
#include "report/format.h"
#include "report/tree/tree_text.h"
#include "report/usage/usage_text.h"
#include "usage_fixture.h"

namespace pkprof {
namespace {

using test::UsageMachine;

TEST(Usage, AddsUpByWhoeverUsedIt) {
  const UsageMachine machine;
  const Usage disk = usage_of(machine.profile, Resource::disk, By::pid, {});
  ASSERT_EQ(disk.rows.size(), 2);
  const User& database = disk.rows[0];
  EXPECT_EQ(disk.groups.all()[database.who].label, machine.database);
  EXPECT_EQ(database.all.amount, 320 * UsageMachine::mib);
  EXPECT_EQ(database.all.count, 80);
  EXPECT_EQ(database.all.time_ns, 910 * UsageMachine::ms);  // not that in the queue
  EXPECT_EQ(database.ways.at("queued").time_ns, 400 * UsageMachine::ms);
  EXPECT_EQ(database.devices.at("vdb").at("write").amount, 20 * UsageMachine::mib);
  EXPECT_EQ(disk.total.all.amount, 320 * UsageMachine::mib + 4096);
}

TEST(Usage, OfOneProcess) {
  const UsageMachine machine;
  const std::vector<uint32_t> pids = {77};
  EXPECT_EQ(usage_of(machine.profile, Resource::memory, By::pid, pids).rows.size(), 1);
  EXPECT_EQ(usage_of(machine.profile, Resource::net, By::pid, pids).rows.size(), 0);
}

TEST(Usage, OfLocksSaysWhoHeldThem) {
  const UsageMachine machine;
  const Usage locks = usage_of(machine.profile, Resource::lock, By::pid, {});
  ASSERT_EQ(locks.rows.size(), 2);
  const User& waiter = locks.rows[0];
  uint64_t by_database = 0;
  for (const auto& [holder, ns] : waiter.others)
    if (locks.groups.all()[holder].label == machine.database) by_database += ns;
  EXPECT_EQ(by_database, 1900 * UsageMachine::ms);
}

// Those that are nobody's come last, each reason by itself.
TEST(Usage, EndsWithWhatIsNobodys) {
  const UsageMachine machine;
  const Usage net = usage_of(machine.profile, Resource::net, By::pid, {});
  ASSERT_EQ(net.rows.size(), 3);
  EXPECT_EQ(net.groups.all()[net.rows[1].who].label, machine.nobody);
  EXPECT_EQ(net.rows[1].all.amount, 1500);
  EXPECT_EQ(net.groups.all()[net.rows[2].who].label, machine.forgotten);
  EXPECT_EQ(net.rows[2].all.amount, 900);
}

TEST(Usage, Text) {
  const UsageMachine machine;
  for (const size_t width : {80, 120}) {
    const std::string text = usage_text(machine.profile, {.width = width});
    test::expect_harmless(text, width);
    test::expect_golden("usage-" + std::to_string(width) + ".txt", text);
  }
  test::expect_golden("usage-none.txt", usage_text(Profile(), {.width = 80}));
}

TEST(Usage, IsNoCpuTime) {
  const UsageMachine machine;
  EXPECT_EQ(of_resource(machine.profile, Resource::cpu).samples().size(), 1);
  const ReportOptions options{.width = 80};
  const Profile disk = of_resource(machine.profile, Resource::disk);
  EXPECT_EQ(busy_line(busy_time(disk, options), options), "320 MiB shown in 5.0 s\n");
}

TEST(Usage, Json) {
  const UsageMachine machine;
  const auto json = nlohmann::json::parse(usage_json(machine.profile, {}));
  EXPECT_EQ(json["schema"], "pkprof.usage/1");
  const auto& disk = json["resources"]["disk"];
  EXPECT_EQ(disk["rows"][0]["who"]["pid"], 812);
  EXPECT_EQ(disk["rows"][0]["devices"]["vda"]["write"]["bytes"], 300 * UsageMachine::mib);
  EXPECT_EQ(disk["total"]["ways"]["read"]["count"], 1);
  const auto& peer = json["resources"]["net"]["rows"][0]["peers"][0];
  EXPECT_EQ(peer["who"], "192.0.2.7");
  EXPECT_EQ(peer["bytes"], 97 * UsageMachine::mib);
  const auto& lock = json["resources"]["lock"]["rows"][0];
  EXPECT_EQ(lock["ns"], 1903 * UsageMachine::ms);
  EXPECT_EQ(lock["holders"][0]["who"]["comm"], "postgres");
  const auto& longest = json["resources"]["lock"]["locks"][0];
  EXPECT_EQ(longest["name"], "pool_lock");
  EXPECT_EQ(longest["way"], "futex");
  EXPECT_EQ(longest["ns"], 1500 * UsageMachine::ms);
  EXPECT_EQ(longest["count"], 300);
  EXPECT_EQ(longest["waiters"][0]["who"]["pid"], 77);
  EXPECT_EQ(longest["holders"][0]["ns"], 1500 * UsageMachine::ms);
}

}  // namespace
}  // namespace pkprof
