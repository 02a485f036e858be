// SPDX-License-Identifier: Apache-2.0
#include "attribution/recorder.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <map>

namespace pkprof {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;

class RecorderTest : public testing::Test {
 protected:
  // As profiles are handed over at intervals.
  uint64_t idle_of_interval(uint64_t told_by_cpus, uint64_t idle_so_far) {
    Tables tables;
    pk_key key{};
    key.ran_on = PK_IDLE;
    key.served = PK_IDLE;
    key.kind = PK_IDLING;
    key.syscall = PK_NO_SYSCALL;
    if (told_by_cpus) tables.counts.push_back({key, {told_by_cpus, 1}});
    recorder_.add(tables);
    recorder_.add_idle_so_far(idle_so_far);
    Profile profile;
    recorder_.finish(profile, [](uint64_t) { return true; });
    uint64_t ns = 0;
    for (const auto& [k, value] : profile.samples()) ns += value.ns;
    return ns;
  }

  // What was charged to each of so many who have an equal part of an object, of a row of it.
  std::map<uint64_t, pk_count> parts_of(pk_count row, uint32_t parties) {
    Tables tables;
    pk_key key{};
    key.ran_on = uint64_t{1} << 32;
    key.served = PK_OBJECT | 1;
    key.served_kind = PK_SERVED_OBJECT;
    key.kind = PK_CALLS;
    key.vec = PK_VEC_RCU;
    key.syscall = PK_NO_SYSCALL;
    tables.counts.push_back({key, row});
    recorder_.add(tables);
    recorder_.resolve_owners([=](uint64_t) {
      std::vector<Parties::Share> shares;
      for (uint64_t i = 1; i <= parties; ++i) shares.push_back({(1000 + i) << 32, 1.0 / parties});
      return shares;
    });
    Profile profile;
    recorder_.finish(profile, [](uint64_t) { return true; });
    std::map<uint64_t, pk_count> parts;
    for (const auto& [k, value] : profile.samples()) {
      pk_count& part = parts[profile.labels()[k.served].pid];
      part.ns += value.ns;
      part.samples += value.calls;
    }
    return parts;
  }

  UserSymbols symbols_;
  Processes processes_{symbols_};
  Recorder recorder_{nullptr, symbols_, processes_};
};

TEST_F(RecorderTest, ACpuThatSleepsIsIdleInEachIntervalAndOnlyOnce) {
  EXPECT_EQ(idle_of_interval(0, kSecond), kSecond);
  EXPECT_EQ(idle_of_interval(0, 2 * kSecond), kSecond) << "it still sleeps";
  // It wakes, and tells all of it.
  EXPECT_EQ(idle_of_interval(5 * kSecond / 2, 0), kSecond / 2);
  EXPECT_EQ(idle_of_interval(kSecond, 0), kSecond);
}

TEST_F(RecorderTest, CallsForManyAreSplitAmongThem) {
  const auto parts = parts_of({0, 1000}, 100);
  EXPECT_EQ(parts.size(), 100U);
  uint64_t sum = 0;
  for (const auto& [pid, part] : parts) {
    EXPECT_NEAR(static_cast<double>(part.samples), 10, 1) << pid;
    sum += part.samples;
  }
  EXPECT_EQ(sum, 1000U);
}

TEST_F(RecorderTest, WhatWasWatchedStandsForAPause) {
  Tables tables;
  for (uint64_t pid = 1; pid <= 3; ++pid) {
    pk_key key{};
    key.ran_on = key.served = pid << 32;
    key.kind = PK_USER;
    key.syscall = PK_NO_SYSCALL;
    tables.counts.push_back({key, {kSecond / 3, 100}});
  }
  recorder_.begin_scale(kSecond, 4 * kSecond);
  recorder_.add(tables);
  recorder_.begin_scale(kSecond, kSecond);
  recorder_.add(tables);
  recorder_.scale_all(5, 6);  // and for one at the end
  Profile profile;
  recorder_.finish(profile, [](uint64_t) { return true; });
  uint64_t ns = 0;
  uint64_t samples = 0;
  for (const auto& [k, value] : profile.samples()) {
    EXPECT_NEAR(static_cast<double>(value.ns), 2e9, 10);
    ns += value.ns;
    samples += value.count;
  }
  EXPECT_NEAR(static_cast<double>(ns), 6e9, 10);
  EXPECT_EQ(samples, 600U) << "samples are those that were taken";
}

// Nanoseconds and bytes of an object are shared out apart, and whom it is for is asked once.
TEST_F(RecorderTest, AnObjectsPartiesAreAskedForOnce) {
  Tables tables;
  for (const pk_usage usage : {PK_NET_RECEIVED, PK_NET_DROPPED, PK_MEMORY_TAKEN}) {
    pk_key key{};
    key.served = PK_OBJECT | 1;
    key.served_kind = PK_SERVED_OBJECT;
    key.kind = PK_USAGE;
    key.usage = static_cast<uint8_t>(usage);
    tables.counts.push_back({key, {1000, 1}});
  }
  recorder_.add(tables);
  int asked = 0;
  EXPECT_EQ(recorder_.resolve_owners([&](uint64_t) {
    ++asked;
    return std::vector<Parties::Share>{{uint64_t{7} << 32, 0.5}, {uint64_t{8} << 32, 0.5}};
  }),
            0U);
  EXPECT_EQ(asked, 1);
  Profile profile;
  recorder_.finish(profile, [](uint64_t) { return true; });
  ASSERT_EQ(profile.samples().size(), 6U);
  for (const auto& [k, value] : profile.samples()) EXPECT_EQ(value.ns, 500U);
}

// What is left at the end is of a device and a peer, too; no stack has the device's number.
TEST_F(RecorderTest, WhatIsLeftOfANetworkHasItsPeer) {
  recorder_.peers().ask(
      [](uint64_t) { return pk_peer{.address = {0x0100007f}, .family = AF_INET, .object = 5}; },
      [](uint64_t object) { return object == 5 ? uint64_t{10} << 32 : 0; });
  int fetched = 0;
  recorder_.fetch_stacks_by([&](uint64_t) {
    ++fetched;
    return CountedStack{};
  });
  pk_charge charge{};
  charge.ran_on = 77;
  charge.kstack = 1;
  charge.ns = 1500;
  charge.samples = 1;
  charge.kind = PK_USAGE;
  charge.vec = PK_NET_RECEIVED;
  Leftovers left;
  left.slots.emplace_back(PK_OBJECT | 1, charge);
  left.waiting.push_back(charge);
  recorder_.add_leftovers(left);
  Profile profile;
  recorder_.finish(profile, [](uint64_t) { return true; });
  EXPECT_EQ(fetched, 0);
  uint64_t bytes = 0;
  for (const auto& [key, value] : profile.samples()) {
    EXPECT_EQ(profile.labels()[key.ran_on].pid, 10U);
    bytes += value.ns;
  }
  EXPECT_EQ(bytes, 3000U);
}

// Memory has bounds: what gives way is counted as what it was.
TEST(RecorderOfFewObjects, WhatIsForgottenIsCountedAsWhatItIs) {
  UserSymbols symbols;
  Processes processes(symbols);
  Recorder recorder(nullptr, symbols, processes, {.objects = 1});
  Tables tables;
  for (const uint8_t kind : {PK_SOFTIRQ, PK_USAGE})
    for (uint64_t object = 1; object <= 2; ++object) {
      pk_key key{};
      key.served = PK_OBJECT | object;
      key.served_kind = PK_SERVED_OBJECT;
      key.kind = kind;
      tables.counts.push_back({key, {1000, kind == PK_USAGE ? 100U : 1U}});
    }
  recorder.add(tables);
  recorder.make_room();
  EXPECT_EQ(recorder.forgotten().samples, 2U);
  EXPECT_EQ(recorder.forgotten().uses, 200U);
}

}  // namespace
}  // namespace pkprof
