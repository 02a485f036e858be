// SPDX-License-Identifier: Apache-2.0
// What a long recording keeps has bounds, and what gives way to them keeps its time.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "attribution/recorder.h"

namespace pkprof {
namespace {

constexpr uint32_t kFirstPid = 5'000'000;  // above every pid there can be
constexpr uint64_t kMs = 1'000'000;
constexpr uint64_t kCode = 0x40'0000;

uint64_t label_of(uint32_t pid) {
  return uint64_t{pid} << 32 | 1;
}

ProcessEvent event(ProcessEvent::Kind kind, uint32_t pid, uint64_t time) {
  ProcessEvent e;
  e.kind = kind;
  e.pid = pid;
  e.parent = kFirstPid - 1;
  e.time = time;
  return e;
}

class ScaleTest : public testing::Test {
 protected:
  // A process that runs /bin/NAME, mapped at an address of its own.
  void start(uint32_t pid, const std::string& name) {
    ++now_;
    ProcessEvent exec = event(ProcessEvent::Kind::exec, pid, now_ + 1);
    exec.comm = name;
    ProcessEvent map = event(ProcessEvent::Kind::map, pid, now_ + 2);
    map.map = {code_of(pid), code_of(pid) + 0x10000, 0, 1, 1, 1, "/bin/" + name, ""};
    processes_.add_events({event(ProcessEvent::Kind::fork, pid, now_), exec, map});
    now_ += 3;
  }
  void meet(uint32_t pid, const std::string& name) {
    pk_label info{};
    info.pid = pid;
    info.tid = pid;
    info.seen = now_;
    info.exec_id = 1;
    name.copy(info.comm, sizeof(info.comm) - 1);
    processes_.add_label(label_of(pid), info);
  }
  // One that a sample meets.
  void run(uint32_t pid, const std::string& name) {
    start(pid, name);
    meet(pid, name);
  }
  void end(uint32_t pid) { processes_.add_events({event(ProcessEvent::Kind::exit, pid, ++now_)}); }
  static uint64_t code_of(uint32_t pid) { return kCode + uint64_t{pid} * 0x100000; }

  static pk_key own(uint32_t pid, uint64_t ustack, uint64_t kstack = 0) {
    pk_key key{};
    key.ran_on = label_of(pid);
    key.served = label_of(pid);
    key.ustack = ustack;
    key.kstack = kstack;
    key.syscall = PK_NO_SYSCALL;
    key.kind = kstack ? PK_OWN : PK_USER;
    key.exec_id = 1;
    return key;
  }
  void add(const pk_key& key, uint64_t ns = kMs) {
    tables_.counts.emplace_back(key, pk_count{ns, 1});
    ns_ += ns;
    if (slots_) in_slots_ += ns;
  }
  void add_stack(uint64_t number, std::vector<uint64_t> ips) {
    tables_.stacks.emplace_back(number, std::move(ips));
  }
  // What Session::drain() does with the tables.
  void drain() {
    if (slots_) recorder_.begin_slot(slots_++ - 1, 1, 1000 * kMs);
    recorder_.add(tables_);
    tables_ = {};
    processes_.bury();
    recorder_.make_room();
  }
  Profile finish() {
    Profile profile;
    recorder_.finish(profile, [](uint64_t) { return true; });
    uint64_t ns = 0;
    for (const auto& sample : profile.samples()) ns += sample.value.ns;
    EXPECT_EQ(ns, ns_) << "no time is lost";
    uint64_t on_timeline = 0;
    for (const TimelineCell& cell : profile.timeline) on_timeline += cell.ns;
    EXPECT_EQ(on_timeline, in_slots_) << "nor what was in slots";
    return profile;
  }
  static std::vector<Label> labels_named(const Profile& profile, const std::string& comm) {
    std::vector<Label> found;
    for (const Label& label : profile.labels())
      if (label.comm == comm) found.push_back(label);
    return found;
  }

  static constexpr size_t kLabels = 100;
  static constexpr RecorderLimits kLimits{
      .rows = 200, .stack_frames = 2000, .frames = 1000, .objects = 50, .cells = 300};

  uint64_t now_ = 1000;
  uint64_t ns_ = 0;
  uint32_t slots_ = 0;  // 1 + those begun, where a timeline is kept
  uint64_t in_slots_ = 0;
  UserSymbols symbols_;
  Processes processes_{symbols_, false, kLabels};
  Recorder recorder_{nullptr, symbols_, processes_, kLimits};
  Tables tables_;
};

TEST_F(ScaleTest, ProcessesThatEndedAreFoldedByProgram) {
  for (uint32_t i = 0; i < 10 * kLabels; ++i) {
    const uint32_t pid = kFirstPid + i;
    const std::string name = i % 2 ? "cc" : "as";
    run(pid, name);
    add(own(pid, 0));
    end(pid);
    drain();
  }
  const Profile profile = finish();
  EXPECT_LE(profile.labels().size(), kLabels + 10);
  EXPECT_GE(processes_.folded(), 9 * kLabels - 10);
  for (const char* comm : {"cc", "as"}) {
    const auto labels = labels_named(profile, comm);
    EXPECT_EQ(std::ranges::count(labels, 0U, &Label::pid), 1) << comm;
    EXPECT_EQ(std::ranges::find(labels, 0U, &Label::pid)->exe, "/bin/" + std::string(comm));
  }
  EXPECT_EQ(std::ranges::count(profile.labels(), kFirstPid + 10 * kLabels - 1, &Label::pid), 1)
      << "the last ones have rows of their own";
}

TEST_F(ScaleTest, TheTimelineSaysWhenItWas) {
  slots_ = 1;
  run(kFirstPid, "server");
  for (uint64_t slot = 0; slot < 5; ++slot) {
    add(own(kFirstPid, 0), (1 + slot) * kMs);
    // Stacks are no matter of the timeline's.
    add(own(kFirstPid, 0, 7), kMs);
    add(own(kFirstPid, 0, 8), kMs);
    drain();
  }
  const Profile profile = finish();
  EXPECT_EQ(profile.meta.slot_ns, 1000 * kMs);
  ASSERT_EQ(profile.timeline.size(), 10);
  for (uint32_t i = 0; i < 10; ++i) {
    const TimelineCell& cell = profile.timeline[i];
    EXPECT_EQ(cell.slot, i / 2);
    EXPECT_EQ(profile.labels()[cell.served].comm, "server");
    EXPECT_EQ(cell.ns, profile.text(cell.source) == "user" ? (1 + cell.slot) * kMs : 2 * kMs);
  }
}

// However long it is, and however many processes come and go.
TEST_F(ScaleTest, OfALongTimelineSlotsGetLonger) {
  slots_ = 1;
  for (uint32_t i = 0; i < 2000; ++i) {
    const uint32_t pid = kFirstPid + i;
    run(pid, "cc");
    add(own(pid, 0));
    end(pid);
    drain();
  }
  const Profile profile = finish();
  EXPECT_LE(profile.timeline.size(), kLimits.cells);
  EXPECT_GE(profile.timeline.size(), kLimits.cells / 4);
  EXPECT_GT(profile.meta.slot_ns, 1000 * kMs);
  // Each slot has the time of its length, but for the last.
  std::map<uint32_t, uint64_t> slots;
  for (const TimelineCell& cell : profile.timeline) slots[cell.slot] += cell.ns;
  slots.erase(std::prev(slots.end()));
  for (const auto& [slot, ns] : slots) EXPECT_EQ(ns * 1000, profile.meta.slot_ns) << slot;
}

// Longer slots would not make it shorter, and say less.
TEST_F(ScaleTest, ManyShortProcessesLeaveTheTimelineItsSlots) {
  slots_ = 1;
  constexpr size_t slots = 3;
  constexpr size_t in_slot = kLabels / slots - 1;  // so that each keeps its row
  uint32_t pid = kFirstPid;
  for (size_t slot = 0; slot < slots; ++slot) {
    for (size_t i = 0; i < in_slot; ++i) {
      ++pid;
      run(pid, "cc");
      for (uint16_t syscall = 1; syscall <= 4; ++syscall) {
        pk_key key = own(pid, 0);
        key.kind = PK_OWN;
        key.syscall = syscall;
        add(key);
      }
      end(pid);
    }
    drain();
  }
  static_assert(slots * in_slot * 4 > kLimits.cells);
  const Profile profile = finish();
  EXPECT_EQ(labels_named(profile, "cc").size(), slots * in_slot + 1) << "and one for the program";
  EXPECT_EQ(profile.meta.slot_ns, 1000 * kMs);
  std::map<uint32_t, uint64_t> when;
  for (const TimelineCell& cell : profile.timeline) when[cell.slot] += cell.ns;
  EXPECT_EQ(when.size(), slots);
  for (const auto& [slot, ns] : when) EXPECT_EQ(ns, in_slot * 4 * kMs) << slot;
}

// A process for each cell, and all of them alive: slots cannot be made so long that it helps.
TEST_F(ScaleTest, ManyProcessesThatLiveDoNotBlurTheTimeline) {
  slots_ = 1;
  const auto self = static_cast<uint64_t>(getpid());  // one that kill(2) finds
  for (uint32_t slot = 0; slot < 8; ++slot) {
    for (uint64_t i = 0; i < 2 * kLimits.cells; ++i) {
      pk_label info{};
      info.pid = static_cast<uint32_t>(self);
      processes_.add_label(self << 32 | i, info);
      pk_key key = own(kFirstPid, 0);
      key.ran_on = key.served = self << 32 | i;
      add(key);
    }
    drain();
  }
  const Profile profile = finish();
  EXPECT_GE(profile.meta.slot_ns, 2000 * kMs);
  EXPECT_LE(profile.meta.slot_ns, 16'000 * kMs);
}

TEST_F(ScaleTest, WhatComesLaterForAFoldedProcessIsItsPrograms) {
  run(kFirstPid, "early");
  end(kFirstPid);
  for (uint32_t i = 1; i <= 2 * kLabels; ++i) {
    run(kFirstPid + i, "cc");
    end(kFirstPid + i);
    drain();
  }
  pk_key late = own(kFirstPid + 1, 0);  // written back for it after its end
  late.served = label_of(kFirstPid);
  late.basis = PK_BASIS_DIRTIER;
  add(late);
  drain();
  const Profile profile = finish();
  const auto labels = labels_named(profile, "early");
  ASSERT_EQ(labels.size(), 1U);
  EXPECT_EQ(labels[0].pid, 0U);
}

TEST_F(ScaleTest, FoldedProcessesStaySelected) {
  start(kFirstPid, "cc");
  processes_.select(kFirstPid);
  meet(kFirstPid, "cc");
  end(kFirstPid);
  for (uint32_t i = 1; i <= 2 * kLabels; ++i) {
    run(kFirstPid + i, "cc");
    end(kFirstPid + i);
    drain();
  }
  EXPECT_TRUE(processes_.selected(processes_.standing_for(label_of(kFirstPid))));
  EXPECT_FALSE(processes_.selected(processes_.standing_for(label_of(kFirstPid + 1))));
}

TEST_F(ScaleTest, LivingProcessesAreNotFolded) {
  const auto self = static_cast<uint32_t>(getpid());  // one that kill(2) finds
  pk_label info{};
  info.pid = self;
  for (uint32_t i = 0; i < 2 * kLabels; ++i) processes_.add_label(uint64_t{self} << 32 | i, info);
  processes_.fold();
  EXPECT_EQ(processes_.folded(), 0U);
  EXPECT_FALSE(processes_.is_crowded()) << "not tried again each time";
}

TEST_F(ScaleTest, ProcessesThatNobodyMetAreForgotten) {
  for (uint32_t i = 0; i < 10 * kLabels; ++i) {
    start(kFirstPid + i, "true");
    end(kFirstPid + i);
    drain();
  }
  EXPECT_LE(processes_.lives(), 10U);
}

// Address-space randomization gives each process other addresses for the same code.
TEST_F(ScaleTest, TheSameCodeOfManyProcessesIsOnePlace) {
  for (uint32_t i = 0; i < 10; ++i) {
    const uint32_t pid = kFirstPid + i;
    run(pid, "cc");
    add_stack(i + 1, {code_of(pid) + 0x100, code_of(pid) + 0x200});
    add(own(pid, i + 1));
  }
  drain();
  const Profile profile = finish();
  std::set<StackId> stacks;
  for (const auto& sample : profile.samples()) stacks.insert(sample.key.stack);
  EXPECT_EQ(stacks.size(), 1U);
}

TEST_F(ScaleTest, RowsWithTheLeastTimeLoseTheirStacks) {
  run(kFirstPid, "app");
  for (uint64_t i = 1; i <= 20 * kLimits.rows; ++i) {
    add_stack(i, {code_of(kFirstPid) + i, code_of(kFirstPid)});
    add(own(kFirstPid, i), i == 7 ? 1000 * kMs : kMs);
    if (i % 50 == 0) drain();
  }
  const Profile profile = finish();
  EXPECT_LE(profile.samples().size(), kLimits.rows + 50);
  EXPECT_GE(recorder_.without_stack().samples, 18 * kLimits.rows);
  const auto largest = std::ranges::max(profile.samples(), {}, [&](const Profile::Sample& s) {
    return profile.frames_of(s.key.stack).size() > 1 ? s.value.ns : 0;
  });
  EXPECT_EQ(largest.value.ns, 1000 * kMs) << "what has much time keeps its stack";
}

TEST_F(ScaleTest, FramesHaveABound) {
  run(kFirstPid, "app");
  uint64_t address = 0xffff'ffff'8000'0000;
  for (uint64_t i = 1; i <= 150; ++i) {  // fewer than rows may be
    std::vector<uint64_t> ips;
    ips.reserve(100);
    for (int depth = 0; depth < 100; ++depth) ips.push_back(address += 16);
    add_stack(i, std::move(ips));
    pk_key key = own(kFirstPid, 0, i);
    key.syscall = 1;
    add(key);
    drain();
  }
  for (int i = 0; i < 100; ++i) drain();  // until no account can name them any more
  EXPECT_LE(recorder_.frames(), kLimits.frames);
  (void)finish();
}

TEST_F(ScaleTest, ObjectsThatNobodyOwnsAreForgotten) {
  run(kFirstPid, "app");
  for (uint64_t i = 1; i <= 10 * kLimits.objects; ++i) {
    pk_key key = own(kFirstPid, 0);
    key.kind = PK_SOFTIRQ;
    key.served = PK_OBJECT | i;
    key.served_kind = PK_SERVED_OBJECT;
    key.reason = PK_DROPPED;
    add(key);
    if (i % 10 == 0) drain();
  }
  EXPECT_GE(recorder_.forgotten().samples, 9 * kLimits.objects);
  const auto nobody = [](uint64_t) { return std::vector<Parties::Share>{}; };
  EXPECT_LE(recorder_.resolve_owners(nobody), kLimits.objects);
  const Profile profile = finish();
  for (const auto& sample : profile.samples())
    EXPECT_EQ(profile.labels()[sample.key.served].reason, "dropped");
}

// What a thousand have voted for, as the callbacks of RCU where processes come and go: rows and
// processes have their time, but not every row is split among all of them.
TEST_F(ScaleTest, ManyPartiesShareRowsInFewPieces) {
  constexpr uint32_t kParties = 1000;
  constexpr uint32_t kRows = 50;
  const auto part_of = [](uint32_t i) { return (i % 2 ? 1.5 : 0.5) / kParties; };
  std::vector<Parties::Share> parties;
  for (uint32_t i = 0; i < kParties; ++i) {
    run(kFirstPid + i, std::to_string(i));
    parties.push_back({label_of(kFirstPid + i), part_of(i)});
  }
  for (uint32_t row = 1; row <= kRows; ++row) {
    pk_key key = own(kFirstPid + row, 0);
    key.kind = PK_SOFTIRQ;
    key.vec = PK_VEC_RCU;
    key.served = PK_OBJECT | 7;
    key.served_kind = PK_SERVED_OBJECT;
    for (uint32_t n = 0; n < row; ++n) add(key);
  }
  recorder_.add(tables_);
  EXPECT_EQ(recorder_.resolve_owners([&](uint64_t) { return parties; }), 0u);
  EXPECT_LE(recorder_.rows(), kParties + kRows);
  const Profile profile = finish();
  std::map<int, uint64_t> served;
  std::map<int, SampleValue> ran_on;
  for (const auto& [key, value] : profile.samples()) {
    EXPECT_EQ(key.basis, Basis::voted) << "also where a row is one party's alone";
    served[std::stoi(profile.labels()[key.served].comm)] += value.ns;
    SampleValue& sum = ran_on[std::stoi(profile.labels()[key.ran_on].comm)];
    sum.ns += value.ns;
    sum.count += value.count;
  }
  ASSERT_EQ(served.size(), kParties);
  for (const auto& [i, ns] : served)
    EXPECT_NEAR(static_cast<double>(ns), part_of(i) * static_cast<double>(ns_), 2) << i;
  ASSERT_EQ(ran_on.size(), kRows);
  for (const auto& [row, sum] : ran_on) {
    EXPECT_EQ(sum.ns, static_cast<uint64_t>(row) * kMs);
    EXPECT_EQ(sum.count, static_cast<uint64_t>(row));
  }
}

}  // namespace
}  // namespace pkprof
