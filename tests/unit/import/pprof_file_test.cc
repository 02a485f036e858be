// SPDX-License-Identifier: Apache-2.0
// pprof files of other programs. They are written here by hand, as such programs do: ids of their
// own, several functions in one place, units of their own.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>

#include <protozero/pbf_writer.hpp>

#include "import/import.h"
#include "import/pprof_file.h"
#include "model/pprof/pprof.h"
#include "report/ledger.h"
#include "report_fixture.h"

namespace pkprof {
namespace {

using protozero::pbf_writer;

class Foreign {
 public:
  Foreign() { string(""); }

  uint64_t string(const std::string& text) {
    const auto it = std::ranges::find(strings_, text);
    if (it != strings_.end()) return static_cast<uint64_t>(it - strings_.begin());
    strings_.push_back(text);
    return strings_.size() - 1;
  }
  void type(const std::string& name, const std::string& unit) { put(1, {{1, name}, {2, unit}}); }
  void period(const std::string& name, const std::string& unit, uint64_t period) {
    put(11, {{1, name}, {2, unit}});
    out_.add_uint64(12, period);
  }
  void duration(uint64_t ns) { out_.add_int64(10, static_cast<int64_t>(ns)); }
  uint64_t mapping(const std::string& file) {
    std::string bytes;
    pbf_writer in(bytes);
    in.add_uint64(1, next_);
    in.add_uint64(2, 0x400000);
    in.add_uint64(3, 0x500000);
    in.add_uint64(5, string(file));
    out_.add_message(3, bytes);
    return take();
  }
  // Functions, the innermost of what was inlined first.
  uint64_t location(uint64_t mapping, uint64_t address, const std::vector<std::string>& names) {
    std::string lines;
    pbf_writer in(lines);
    std::vector<uint64_t> functions;
    for (const std::string& name : names) {
      std::string function;
      pbf_writer of(function);
      of.add_uint64(1, next_);
      of.add_uint64(2, string(name));
      out_.add_message(5, function);
      functions.push_back(take());
    }
    in.add_uint64(1, next_);
    if (mapping) in.add_uint64(2, mapping);
    in.add_uint64(3, address);
    for (const uint64_t function : functions) {
      std::string line;
      pbf_writer of(line);
      of.add_uint64(1, function);
      of.add_uint64(2, 7);
      in.add_message(4, line);
    }
    out_.add_message(4, lines);
    return take();
  }
  void sample(const std::vector<uint64_t>& locations, const std::vector<uint64_t>& values,
              const std::vector<std::pair<std::string, std::string>>& labels = {}) {
    std::string bytes;
    pbf_writer in(bytes);
    in.add_packed_uint64(1, locations.begin(), locations.end());
    in.add_packed_uint64(2, values.begin(), values.end());
    for (const auto& [key, value] : labels) {
      std::string label;
      pbf_writer of(label);
      of.add_uint64(1, string(key));
      of.add_uint64(2, string(value));
      in.add_message(3, label);
    }
    out_.add_message(2, bytes);
  }
  [[nodiscard]] std::string bytes() const {
    std::string all = bytes_;
    pbf_writer out(all);
    for (const std::string& text : strings_) out.add_string(6, text);
    return all;
  }

 private:
  void put(uint32_t field, const std::vector<std::pair<uint32_t, std::string>>& texts) {
    std::string bytes;
    pbf_writer in(bytes);
    for (const auto& [tag, text] : texts) in.add_uint64(tag, string(text));
    out_.add_message(field, bytes);
  }
  uint64_t take() {
    const uint64_t id = next_;
    next_ += 1000;  // not 1, 2, 3
    return id;
  }

  std::vector<std::string> strings_;
  std::string bytes_;
  pbf_writer out_{bytes_};
  uint64_t next_ = 77;
};

Result<Profile> read_bytes(const std::string& bytes) {
  return read_foreign_pprof(std::as_bytes(std::span(bytes)));
}

uint64_t time_of(const Profile& profile, const std::string& source) {
  uint64_t ns = 0;
  for (const auto& [key, value] : profile.samples())
    if (profile.text(key.source) == source) ns += value.ns;
  return ns;
}

TEST(PprofFile, OfOneProgramIsOneProcess) {
  Foreign file;
  file.type("samples", "count");
  file.type("cpu", "microseconds");
  file.period("cpu", "nanoseconds", 10'000'000);
  file.duration(2'000'000'000);
  const uint64_t program = file.mapping("/usr/bin/app");
  const uint64_t inlined = file.location(program, 0x400123, {"inner", "outer"});
  const uint64_t main = file.location(program, 0x400456, {"main"});
  file.sample({inlined, main}, {3, 30'000});
  file.sample({main}, {250, 2'500'000});
  const auto profile = read_bytes(file.bytes());
  ASSERT_TRUE(profile) << profile.error().message;
  EXPECT_EQ(profile->meta.samples_taken, 253U);
  EXPECT_EQ(profile->meta.frequency_hz, 100U);
  EXPECT_EQ(profile->meta.duration_ns, 2'000'000'000U);
  EXPECT_EQ(profile->meta.cpus, 2U) << "2.53 s in 2 s";
  EXPECT_EQ(time_of(*profile, "user"), 2'530'000'000U);
  const Ledger ledger = build_ledger(*profile);
  ASSERT_EQ(ledger.processes.size(), 1U);
  EXPECT_EQ(profile->labels()[ledger.processes[0].label].name(), "app:-");
  EXPECT_EQ(ledger.other_ns, 1'470'000'000U);
  EXPECT_EQ(ledger.sum_ns(), profile->cpu_ns());
  std::vector<std::string> stack;
  for (const auto& [key, value] : profile->samples())
    if (value.count == 3)
      for (const FrameId f : profile->frames_of(key.stack))
        stack.push_back(profile->text(profile->frames()[f].function));
  EXPECT_EQ(stack, (std::vector<std::string>{"inner", "outer", "main"}));
}

TEST(PprofFile, LabelsTellProcessesApart) {
  Foreign file;
  file.type("cpu", "nanoseconds");
  const uint64_t place = file.location(0, 0x1000, {"work"});
  file.sample({place}, {100}, {{"pid", "12"}, {"comm", "one"}, {"tid", "13"}});
  file.sample({place}, {50}, {{"pid", "99"}, {"comm", "two"}});
  file.sample({place}, {20}, {{"comm", "three"}});
  file.sample({place}, {10}, {{"comm", "four"}});
  const auto profile = read_bytes(file.bytes());
  ASSERT_TRUE(profile) << profile.error().message;
  const Ledger ledger = build_ledger(*profile);
  ASSERT_EQ(ledger.processes.size(), 4U);
  EXPECT_EQ(profile->labels()[ledger.processes[0].label].name(), "one:12");
  EXPECT_EQ(profile->labels()[ledger.processes[1].label].name(), "two:99");
  EXPECT_EQ(profile->samples()[0].key.thread, 13U);
}

TEST(PprofFile, InterruptsAreNotTheirBystanders) {
  Foreign file;
  file.type("samples", "count");
  file.period("cpu", "milliseconds", 1);
  const uint64_t kernel = file.mapping("[kernel.kallsyms]");
  const uint64_t program = file.mapping("/usr/bin/app");
  const auto in_kernel = [&](const char* name) {
    return file.location(kernel, 0xffffffff81000000, {name});
  };
  const uint64_t main = file.location(program, 0x400456, {"main"});
  file.sample({in_kernel("tcp_v4_rcv"), in_kernel("net_rx_action"), in_kernel("handle_softirqs"),
               in_kernel("asm_sysvec_apic_timer_interrupt"), main},
              {40});
  file.sample({in_kernel("vfs_read"), in_kernel("__x64_sys_read"), in_kernel("do_syscall_64"),
               in_kernel("entry_SYSCALL_64_after_hwframe"), main},
              {10});
  const auto profile = read_bytes(file.bytes());
  ASSERT_TRUE(profile) << profile.error().message;
  EXPECT_EQ(time_of(*profile, "softirq:NET_RX"), 40'000'000U);
  EXPECT_EQ(time_of(*profile, "syscall:read"), 10'000'000U);
  const Ledger ledger = build_ledger(*profile);
  EXPECT_EQ(ledger.unclaimed.at("untracked"), 40'000'000U);
  ASSERT_EQ(ledger.processes.size(), 1U);
  EXPECT_EQ(ledger.processes[0].own_ns, 10'000'000U);
}

TEST(PprofFile, WhatIsNoCpuTimeIsSaid) {
  Foreign memory;
  memory.type("alloc_space", "bytes");
  memory.sample({}, {5});
  const auto heap = read_bytes(memory.bytes());
  ASSERT_FALSE(heap);
  EXPECT_NE(heap.error().message.find("alloc_space (bytes)"), std::string::npos);
  Foreign nothing;
  nothing.type("cpu", "nanoseconds");
  EXPECT_FALSE(read_bytes(nothing.bytes()));
  EXPECT_FALSE(read_bytes(""));
  EXPECT_FALSE(read_bytes("\n\x04"));
}

TEST(PprofFile, EventsAreTimeWhereTheyAreAClocks) {
  Foreign clock;
  for (const char* name : {"cycles_sample", "cycles_event", "cpu-clock_sample", "cpu-clock_event"})
    clock.type(name, "count");
  const uint64_t place = clock.location(clock.mapping("/usr/bin/dd (deleted)"), 0x400123, {"f"});
  clock.sample({place}, {7, 70, 10, 50'000'000});
  const auto time = read_bytes(clock.bytes());
  ASSERT_TRUE(time) << time.error().message;
  EXPECT_EQ(time->meta.samples_taken, 10);
  EXPECT_EQ(time_of(*time, "user"), 50'000'000);
  EXPECT_EQ(time->labels()[build_ledger(*time).processes[0].label].comm, "dd");
  Foreign cycles;
  cycles.type("cycles:ppp_sample", "count");
  cycles.type("cycles:ppp_event", "count");
  cycles.sample({cycles.location(0, 1, {"f"})}, {50, 150'000'000});
  const auto counted = read_bytes(cycles.bytes());
  ASSERT_TRUE(counted) << counted.error().message;
  EXPECT_EQ(time_of(*counted, "user"), 50'000'000);
  EXPECT_EQ(counted->meta.frequency_hz, 0);
  EXPECT_NE(counted->meta.degraded[1].find("not known"), std::string::npos);
  Foreign others;
  others.type("cpu-samples", "count");
  others.type("cpu-time", "nanoseconds");
  others.sample({others.location(0, 1, {"f"})}, {10, 100});
  EXPECT_EQ(time_of(read_bytes(others.bytes()).value(), "user"), 100);
}

TEST(PprofFile, AProgramsOwnLabelsAreNoProcesses) {
  Foreign file;
  file.type("cpu", "nanoseconds");
  const uint64_t place = file.location(0, 0x1000, {"work"});
  file.sample({place}, {100}, {{"process", "batch"}});
  file.sample({place}, {50}, {{"endpoint", "/a"}});
  EXPECT_EQ(build_ledger(read_bytes(file.bytes()).value()).processes.size(), 1);
}

TEST(PprofFile, AVirtualMachinesKernelIsItsProcesssWork) {
  Foreign file;
  file.type("cpu", "nanoseconds");
  const uint64_t guest = file.mapping("[guest.kernel.kallsyms]");
  file.sample({file.location(guest, 0xffffffff81100000, {"net_rx_action"}),
               file.location(guest, 0xffffffff81100001, {"handle_softirqs"})},
              {100}, {{"pid", "9"}, {"comm", "qemu"}});
  EXPECT_EQ(time_of(read_bytes(file.bytes()).value(), "user"), 100);
}

TEST(PprofFile, DeepStacksAreCut) {
  Foreign file;
  file.type("cpu", "nanoseconds");
  const uint64_t place = file.location(0, 0x1000, {"recurse"});
  file.sample(std::vector<uint64_t>(5000, place), {100});
  const auto profile = read_bytes(file.bytes());
  ASSERT_TRUE(profile) << profile.error().message;
  EXPECT_EQ(time_of(*profile, "user"), 100);
  EXPECT_NE(profile->meta.degraded[1].find("904 frames"), std::string::npos)
      << profile->meta.degraded[1];
}

TEST(PprofFile, ADifferenceIsSaidToBeOne) {
  Foreign file;
  file.type("cpu", "nanoseconds");
  file.sample({file.location(0, 1, {"f"})}, {static_cast<uint64_t>(-5)});
  const auto negative = read_bytes(file.bytes());
  ASSERT_FALSE(negative);
  EXPECT_NE(negative.error().message.find("pkprof diff"), std::string::npos);
}

TEST(PprofFile, OursAreNotImportedAgain) {
  const auto bytes = encode_pprof(test::small_machine());
  ASSERT_TRUE(bytes);
  const auto again = read_bytes(*bytes);
  ASSERT_FALSE(again);
  EXPECT_NE(again.error().message.find("pkprof report"), std::string::npos);
}

TEST(PprofFile, AProfileOfGperftoolsIsSaidToBeOne) {
  const auto error_of = [](const auto& words) {
    const std::string path = testing::TempDir() + "pkprof-gperftools";
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(words.data()), sizeof(words));
    const auto profile = import_file(path, "");
    ::unlink(path.c_str());
    return profile ? std::string() : profile.error().message;
  };
  const auto is_said = [&](const auto& words) {
    return error_of(words).contains(
        "a CPU profile of gperftools, which pprof converts: pprof -proto");
  };
  EXPECT_TRUE(is_said(std::array<uint64_t, 8>{0, 3, 0, 10000, 0, 1, 1, 0x401000}));
  EXPECT_TRUE(is_said(std::array<uint32_t, 8>{0, 3, 0, 10000, 0, 1, 1, 0x401000}));
  EXPECT_FALSE(is_said(std::array<uint64_t, 8>{0, 3, 1, 10000, 0, 1, 1, 0x401000}));
  EXPECT_FALSE(is_said(std::array<uint64_t, 8>{0, 3, 0, 0, 0, 1, 1, 0x401000}));
}

TEST(PprofFile, WhatLeadsNowhereIsAnError) {
  const auto broken = [](auto change) {
    Foreign file;
    file.type("cpu", "nanoseconds");
    change(file);
    return read_bytes(file.bytes());
  };
  EXPECT_FALSE(broken([](Foreign& f) { f.sample({4711}, {1}); })) << "no such location";
  EXPECT_FALSE(broken([](Foreign& f) { f.sample({}, {1, 2}); })) << "two values of one type";
  EXPECT_FALSE(broken([](Foreign& f) { f.sample({f.location(4711, 1, {})}, {1}); }));
  EXPECT_FALSE(broken([](Foreign& f) {
    f.sample({}, {UINT64_MAX / 2});
    f.sample({}, {UINT64_MAX / 2});
  })) << "too much in sum";
}

}  // namespace
}  // namespace pkprof
