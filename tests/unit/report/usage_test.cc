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

namespace pkprof {
namespace {

constexpr uint64_t milli = 1'000'000;
constexpr uint64_t mega = 1 << 20;

// A database that writes to two disks, one that waits for its lock, and whoever has no nice name.
struct BusyMachine {
  Profile profile;
  LabelId database, waiter, hostile, kernel, nobody, peer;

  BusyMachine() {
    profile.meta = {.kernel = "6.18.2-test", .cpus = 2, .duration_ns = 5000 * milli};
    database = process("postgres", 812);
    waiter = process("worker", 77);
    hostile = process("\x1b[2J<img src=x>", 666);
    kernel = profile.label({.kind = LabelKind::kernel});
    nobody = profile.label({.kind = LabelKind::unclaimed, .reason = "dropped"});
    peer = profile.label({.kind = LabelKind::remote,
                          .without_pid = true,
                          .comm = "192.0.2.7",
                          .reason = "192.0.2.7"});
    profile.add({.ran_on = database, .served = database, .source = profile.string("user")},
                {.count = 300, .ns = 300 * milli});
    use(database, Resource::disk, "disk:write", "vda", 300 * mega, 75, 900 * milli);
    use(database, Resource::disk, "disk:write", "vdb", 20 * mega, 5, 10 * milli);
    use(database, Resource::disk, "disk:queued", "vda", 0, 0, 400 * milli);
    use(hostile, Resource::disk, "disk:read", "vda", 4096, 1, milli);
    use(hostile, Resource::disk, "disk:flush", "vda", 0, 1, milli);
    use(database, Resource::net, "net:received", "eth0", 7 * mega, 5000);
    use(database, Resource::net, "net:sent", "eth0", 90 * mega, 61000);
    use(nobody, Resource::net, "net:dropped", "eth0", 1500, 1);
    use(waiter, Resource::memory, "memory:anonymous", "do_anonymous_page", 240 * mega, 61440);
    use(hostile, Resource::memory, "memory:page cache", "filemap_fault", 812, 1);
    lock(waiter, database, "lock:futex", 1900, 400);
    lock(waiter, nobody, "lock:spinlock", 3, 2);
    lock(hostile, hostile, "lock:rwsem:write", 20, 1);
  }
  LabelId process(const char* comm, uint32_t pid) {
    return profile.label({.kind = LabelKind::process, .pid = pid, .start_ns = pid, .comm = comm});
  }
  void use(LabelId who, Resource of, const char* source, const char* leaf, uint64_t bytes,
           uint64_t count, uint64_t ns = 0) {
    const std::vector<FrameId> stack = {
        profile.frame({.kind = FrameKind::pseudo, .function = profile.string(leaf)}),
        profile.frame({.kind = FrameKind::pseudo, .function = profile.string(source)})};
    profile.add({.ran_on = of == Resource::net ? peer : kernel,
                 .served = who,
                 .source = profile.string(source),
                 .stack = profile.stack(stack),
                 .resource = of},
                {.count = count, .ns = bytes, .exact_ns = ns});
  }
  void lock(LabelId who, LabelId holder, const char* source, uint64_t milliseconds,
            uint64_t count) {
    profile.add({.ran_on = holder,
                 .served = who,
                 .source = profile.string(source),
                 .resource = Resource::lock},
                {.count = count, .ns = milliseconds * milli});
  }
};

TEST(Usage, AddsUpByWhoeverUsedIt) {
  const BusyMachine machine;
  const Usage disk = usage_of(machine.profile, Resource::disk, By::pid, {});
  ASSERT_EQ(disk.rows.size(), 2);
  const User& database = disk.rows[0];
  EXPECT_EQ(disk.groups.all()[database.who].label, machine.database);
  EXPECT_EQ(database.all.amount, 320 * mega);
  EXPECT_EQ(database.all.count, 80);
  EXPECT_EQ(database.all.time_ns, 910 * milli);  // not that in the queue
  EXPECT_EQ(database.ways.at("queued").time_ns, 400 * milli);
  EXPECT_EQ(database.devices.at("vdb").at("write").amount, 20 * mega);
  EXPECT_EQ(disk.total.all.amount, 320 * mega + 4096);
}

TEST(Usage, OfOneProcess) {
  const BusyMachine machine;
  const std::vector<uint32_t> pids = {77};
  EXPECT_EQ(usage_of(machine.profile, Resource::memory, By::pid, pids).rows.size(), 1);
  EXPECT_EQ(usage_of(machine.profile, Resource::net, By::pid, pids).rows.size(), 0);
}

TEST(Usage, OfLocksSaysWhoHeldThem) {
  const BusyMachine machine;
  const Usage locks = usage_of(machine.profile, Resource::lock, By::pid, {});
  ASSERT_EQ(locks.rows.size(), 2);
  const User& waiter = locks.rows[0];
  uint64_t by_database = 0;
  for (const auto& [holder, ns] : waiter.others)
    if (locks.groups.all()[holder].label == machine.database) by_database += ns;
  EXPECT_EQ(by_database, 1900 * milli);
}

// Those that are nobody's come last.
TEST(Usage, EndsWithWhatIsNobodys) {
  const BusyMachine machine;
  const Usage net = usage_of(machine.profile, Resource::net, By::pid, {});
  ASSERT_EQ(net.rows.size(), 2);
  EXPECT_EQ(net.groups.all()[net.rows[1].who].kind, GroupKind::special);
}

TEST(Usage, Text) {
  const BusyMachine machine;
  for (const size_t width : {80, 120}) {
    const std::string text = usage_text(machine.profile, {.width = width});
    test::expect_harmless(text, width);
    test::expect_golden("usage-" + std::to_string(width) + ".txt", text);
  }
  test::expect_golden("usage-none.txt", usage_text(Profile(), {.width = 80}));
}

TEST(Usage, IsNoCpuTime) {
  const BusyMachine machine;
  EXPECT_EQ(of_resource(machine.profile, Resource::cpu).samples().size(), 1);
  const ReportOptions options{.width = 80};
  const Profile disk = of_resource(machine.profile, Resource::disk);
  EXPECT_EQ(busy_line(busy_time(disk, options), options), "320 MiB shown in 5.0 s\n");
}

TEST(Usage, Json) {
  const BusyMachine machine;
  const auto json = nlohmann::json::parse(usage_json(machine.profile, {}));
  EXPECT_EQ(json["schema"], "pkprof.usage/1");
  const auto& disk = json["resources"]["disk"];
  EXPECT_EQ(disk["rows"][0]["who"]["pid"], 812);
  EXPECT_EQ(disk["rows"][0]["devices"]["vda"]["write"]["bytes"], 300 * mega);
  EXPECT_EQ(disk["total"]["ways"]["read"]["count"], 1);
  const auto& peer = json["resources"]["net"]["rows"][0]["peers"][0];
  EXPECT_EQ(peer["who"], "192.0.2.7");
  EXPECT_EQ(peer["bytes"], 97 * mega);
  const auto& lock = json["resources"]["lock"]["rows"][0];
  EXPECT_EQ(lock["ns"], 1903 * milli);
  EXPECT_EQ(lock["holders"][0]["who"]["comm"], "postgres");
}

}  // namespace
}  // namespace pkprof
