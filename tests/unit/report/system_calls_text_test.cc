// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "export/debox_json.h"
#include "golden.h"
#include "report/system_calls_text.h"

namespace pkprof {
namespace {

// A record as a hostile program might have it: nothing in it is to be believed but its size.
SlowCall hostile_call() {
  SlowCall slow;
  std::memset(&slow.record, 0xff, sizeof slow.record);
  slow.trace.resize(3);
  std::memset(slow.trace.data(), 0xff, 3 * sizeof slow.trace[0]);
  slow.frames = {"\x1b[2Jmain", ""};
  return slow;
}

SlowCall slow_read() {
  SlowCall slow;
  debox_record& record = slow.record;
  record.sequence = 42;
  record.wall_ns = 20'100'000;
  record.result = 4096;
  record.number = 0;
  record.pid = 812;
  record.tid = 813;
  record.asleep_ns = 20'000'000;
  record.voluntary = 3;
  record.major_faults = 1;
  record.sleeps = 1;
  record.sleep[0].place = 1;
  record.sleep[0].inside = 2;
  record.sleep[0].count = 3;
  record.sleep[0].total_ns = 20'000'000;
  record.sleep[0].waiters_entry = 7;
  record.sleep[0].waiters_exit = DEBOX_UNKNOWN;
  record.sleep[0].waker = {
      .pid = 0, .tid = 0, .for_pid = 0, .context = DEBOX_BY_SOFTIRQ, .comm = {}};
  record.faults = 1;
  record.fault[0] = {.address = 0x7f0000001000, .minor = 0, .major = 1, .place = 1, .reserved = 0};
  record.traces = 3;
  slow.trace = {{.function = 3, .depth = 0, .begin_ns = 5, .wall_ns = 20'050'000},
                {.function = 4, .depth = 1, .begin_ns = 300, .wall_ns = 20'000'100},
                {.function = 9, .depth = 2, .begin_ns = 400, .wall_ns = 0}};
  slow.frames = {"read (libc.so.6)", "answer(Request&) at server.cc:77"};
  return slow;
}

SystemCalls some_calls() {
  SystemCalls calls;
  calls.command = "server \x1b[2J --fast";
  calls.duration_ns = 10'000'000'000;
  calls.cost_kernel_ns = 120'000'000;
  calls.cost_user_ns = 31'000'000;
  CallKind read{.name = "read",
                .count = 120'345,
                .errors = 12,
                .total_ns = 3'200'000'000,
                .longest_ns = 20'100'000,
                .asleep_ns = 2'900'000'000,
                .runnable_ns = 40'000'000,
                .voluntary = 4'000,
                .forced = 3,
                .minor_faults = 11,
                .major_faults = 1,
                .bytes = 5'000'000'000,
                .async_ns = 120'000'000,
                .durations = {}};
  read.durations.add(Durations::bucket_of(1'500), 120'000);
  read.durations.add(Durations::bucket_of(10'000'000), 345);
  calls.kinds.push_back(read);
  CallKind getppid{
      .name = "getppid", .count = 1, .total_ns = 90, .longest_ns = 90, .durations = {}};
  getppid.durations.add(Durations::bucket_of(90), 1);
  calls.kinds.push_back(getppid);
  calls.sleeps.push_back({.call = "read",
                          .place = "folio_wait_bit_common+0x110",
                          .inside = "io_schedule+0x3f",
                          .count = 4'000,
                          .total_ns = 2'900'000'000,
                          .longest_ns = 20'000'000,
                          .runnable_ns = 1,
                          .waiters = 6'000,
                          .waiters_known = 4'000,
                          .waiters_most = 7,
                          .wakers = {{3'000, DEBOX_BY_SOFTIRQ, 0, ""},
                                     {999, DEBOX_BY_PROCESS, 77, "e\x1b[31mvil"},
                                     {1, DEBOX_BY_KTHREAD, 12, "kworker/0:1"}}});
  calls.sleeps.push_back({.call = "futex", .place = "", .inside = "", .count = 1, .wakers = {}});
  calls.slowest = {slow_read(), hostile_call()};
  calls.places = {{1, "folio_wait_bit_common+0x110"},
                  {2, "io_schedule+0x3f"},
                  {3, "vfs_read"},
                  {4, "ext4_file_read_iter"}};
  calls.names = {{0, "read"}};
  calls.degraded = {"3 records were lost: they came too fast"};
  return calls;
}

TEST(SystemCallsText, At80Columns) {
  const std::string text = system_calls_text(some_calls(), {});
  test::expect_harmless(text);
  test::expect_golden("system-calls-80.txt", text);
}

TEST(SystemCallsText, WideAndInAscii) {
  const std::string text = system_calls_text(some_calls(), {.width = 150, .unicode = false});
  test::expect_harmless(text, 150);
  test::expect_golden("system-calls-150.txt", text);
}

TEST(SystemCallsText, OfNothing) {
  test::expect_harmless(system_calls_text({}, {}));
}

TEST(SystemCalls, SinceAnEarlierTime) {
  SystemCalls before = some_calls();
  SystemCalls now = before;
  EXPECT_TRUE(calls_since(now, before).kinds.empty());
  EXPECT_TRUE(calls_since(now, before).sleeps.empty());
  CallKind& getppid = now.kinds.at(1);
  getppid.count += 10;
  getppid.total_ns += 2'000;
  getppid.durations.add(Durations::bucket_of(200), 10);
  getppid.longest_ns = 210;
  SleepPlace& place = now.sleeps.at(0);
  place.count += 5;
  place.total_ns += 1'000'000;
  place.wakers.at(2).count += 5;
  const SystemCalls since = calls_since(now, before);
  ASSERT_EQ(since.kinds.size(), 1);
  EXPECT_EQ(since.kinds[0].name, "getppid");
  EXPECT_EQ(since.kinds[0].count, 10);
  EXPECT_EQ(since.kinds[0].total_ns, 2'000);
  EXPECT_EQ(since.kinds[0].durations.count(), 10);
  EXPECT_GE(since.kinds[0].durations.percentile_ns(0.01), 190);
  EXPECT_EQ(since.kinds[0].longest_ns, 208);  // as far as the histogram knows
  ASSERT_EQ(since.sleeps.size(), 1);
  EXPECT_EQ(since.sleeps[0].count, 5);
  EXPECT_EQ(since.sleeps[0].longest_ns, 1'000'000);
  ASSERT_EQ(since.sleeps[0].wakers.size(), 1);
  EXPECT_EQ(since.sleeps[0].wakers[0].count, 5);
  // What is new since is there whole.
  before.kinds.pop_back();
  EXPECT_EQ(calls_since(now, before).kinds.at(0).count, 11);
}

TEST(DeboxJson, OneLineForEachRecord) {
  const std::string line = debox_json(slow_read(), "read", some_calls().places);
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  const auto record = nlohmann::json::parse(line);
  EXPECT_EQ(record.at("call"), "read");
  EXPECT_EQ(record.at("wall_ns"), 20'100'000);
  EXPECT_EQ(record.at("sleeps").at(0).at("place"), "folio_wait_bit_common+0x110");
  EXPECT_EQ(record.at("sleeps").at(0).at("waiters_entry"), 7);
  EXPECT_TRUE(record.at("sleeps").at(0).at("waiters_exit").is_null());
  EXPECT_EQ(record.at("sleeps").at(0).at("waker").at("context"), "softirq");
  EXPECT_EQ(record.at("faults").at(0).at("major"), 1);
  EXPECT_EQ(record.at("trace").at(1).at("function"), "ext4_file_read_iter");
  EXPECT_EQ(record.at("trace").at(1).at("depth"), 1);
  EXPECT_EQ(record.at("stack").at(1), "answer(Request&) at server.cc:77");
}

TEST(DeboxJson, AHostileRecordIsALine) {
  const auto record = nlohmann::json::parse(debox_json(hostile_call(), "\xff\x1b\"", {}));
  EXPECT_EQ(record.at("sleeps").size(), DEBOX_SLEEPS);
  EXPECT_EQ(record.at("faults").size(), DEBOX_FAULTS);
}

}  // namespace
}  // namespace pkprof
