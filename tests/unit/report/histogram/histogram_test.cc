// SPDX-License-Identifier: Apache-2.0
// The histogram of a small program of known addresses: ranges, sums, what is elsewhere; and its
// text and JSON against tests/golden.
#include "report/histogram/histogram.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "golden.h"
#include "model/pprof/pprof.h"
#include "report/histogram/address_range.h"
#include "report/histogram/histogram_json.h"
#include "report/histogram/histogram_text.h"

namespace pkprof {
namespace {

using Kind = HistogramElsewhere::Kind;

// 1000 samples of a millisecond: of a program that was loaded at another place than it was linked
// for, a library, memory of no file, the kernel, and work done for it elsewhere; and another
// process.
class HistogramTest : public testing::Test {
 protected:
  HistogramTest() {
    profile_.meta.frequency_hz = 1000;
    const LabelId hot = process(10, "hot", "/bin/hot");
    const LabelId other = process(11, "other", "/bin/other");
    const MappingId program =
        profile_.mapping({0x555500001000, 0x555500002000, 0x1000, "/bin/hot", "aa", 0x401000});
    const MappingId library =
        profile_.mapping({0x7f0000000000, 0x7f0000001000, 0, "/lib/libfoo.so.6", "bb", 0x2000});
    const MappingId nameless = profile_.mapping({0x10000, 0x11000, 0, "//anon", ""});
    add(hot, "user", frame(program, 0x555500001010, "bogusa(int)"), 200);
    add(hot, "user", frame(program, 0x55550000103f, "bogusb(int)"), 400);
    add(hot, "syscall:getppid", frame(program, 0x555500001052, "stub"), 100);
    add(hot, "fault", frame(program, 0x555500001060, "main"), 50);
    add(hot, "user", frame(library, 0x7f0000000100, "in_library"), 150);
    add(hot, "user", frame(nameless, 0x10500, ""), 40);
    add(hot, "user", frame(no_mapping, 0x99, ""), 10);
    add(hot, "syscall:read", 0, 20);
    add(hot, "softirq:NET_RX", frame(program, 0x555500001010, "bogusa(int)"), 30, Basis::consumed);
    add(other, "user", frame(program, 0x555500001010, "bogusa(int)"), 500);
    options_.pids = {10};
  }

  LabelId process(uint32_t pid, const char* comm, const char* exe) {
    return profile_.label(
        {.kind = LabelKind::process, .pid = pid, .start_ns = 1, .comm = comm, .exe = exe});
  }
  StackId frame(MappingId mapping, uint64_t address, const char* function) {
    const FrameId user =
        profile_.frame({FrameKind::user, mapping, address, profile_.string(function), 0, 0});
    const FrameId caller = profile_.frame(
        {FrameKind::user, mapping, address + 0x100, profile_.string("caller"), 0, 0});
    const FrameId kernel = profile_.frame(
        {FrameKind::kernel, no_mapping, ~uint64_t{0xff}, profile_.string("k"), 0, 0});
    return profile_.stack(std::vector{kernel, user, caller});
  }
  void add(LabelId label, const char* source, StackId stack, uint64_t ms,
           Basis basis = Basis::own) {
    profile_.add({.ran_on = label,
                  .served = label,
                  .source = profile_.string(source),
                  .basis = basis,
                  .stack = stack},
                 {.count = ms, .ns = ms * 1'000'000});
  }
  Histogram make(const FileCode* code = nullptr) {
    auto h = histogram_of(profile_, options_, code);
    if (!h) throw std::runtime_error(h.error().message);
    uint64_t sum = 0;
    for (const HistogramRow& row : h->rows) sum += row.value.samples;
    EXPECT_EQ(h->here.samples, sum);
    for (const HistogramElsewhere& e : h->elsewhere) sum += e.value.samples;
    EXPECT_EQ(h->all.samples, sum) << "what is in no row is elsewhere";
    EXPECT_EQ(h->all.samples, 1000);
    return *h;
  }
  static uint64_t elsewhere(const Histogram& h, Kind kind) {
    uint64_t samples = 0;
    for (const HistogramElsewhere& e : h.elsewhere)
      if (e.kind == kind) samples += e.value.samples;
    return samples;
  }
  std::string failure(const FileCode* code = nullptr) {
    const auto h = histogram_of(profile_, options_, code);
    return h ? "" : h.error().message;
  }

  // As nm would have it.
  FileCode code_{.file = "/bin/hot",
                 .build_id = "aa",
                 .start = 0x401000,
                 .end = 0x401065,
                 .functions = {{0x401000, 0x401030, "bogusa(int)"},
                               {0x401030, 0x401050, "bogusb(int)"},
                               {0x401050, 0x401053, "stub"},
                               {0x401054, 0x401065, "(anonymous namespace)::main(int, char**)"}},
                 .names = {{0x401000, 0x401030, "_Z6bogusai"},
                           {0x401030, 0x401050, "_Z6bogusbi"},
                           {0x401050, 0x401053, "stub"},
                           {0x401050, 0x401053, "alias_of_stub"}}};
  Profile profile_;
  HistogramOptions options_;
};

TEST_F(HistogramTest, AddressesAreTheFilesOwn) {
  options_.rows = 0;
  const Histogram h = make();
  EXPECT_EQ(h.file, "/bin/hot");
  std::map<uint64_t, uint64_t> rows;
  for (const HistogramRow& row : h.rows) {
    EXPECT_EQ(row.first, row.last);
    rows[row.first] = row.value.samples;
  }
  // The system call is two bytes before where it returns to; the fault is at its instruction.
  EXPECT_EQ(rows, (std::map<uint64_t, uint64_t>{
                      {0x401010, 200}, {0x40103f, 400}, {0x401050, 100}, {0x401060, 50}}));
  EXPECT_EQ(elsewhere(h, Kind::file), 150);
  EXPECT_EQ(elsewhere(h, Kind::memory), 50);
  EXPECT_EQ(elsewhere(h, Kind::no_address), 20);
  EXPECT_EQ(elsewhere(h, Kind::asynchronous), 30);
  EXPECT_EQ(elsewhere(h, Kind::outside), 0);
}

TEST_F(HistogramTest, TheKernelApart) {
  options_.kernel = true;
  const Histogram h = make();
  EXPECT_EQ(h.here.samples, 600);
  EXPECT_EQ(elsewhere(h, Kind::system_calls), 120);
  EXPECT_EQ(elsewhere(h, Kind::kernel), 50);
}

TEST_F(HistogramTest, RowsCoverTheRangeExactly) {
  options_.range = "401003-40105F";
  for (const size_t n : {1U, 2U, 3U, 7U, 20U, 92U, 93U, 94U, 1000U}) {
    options_.rows = n;
    const Histogram h = make(&code_);
    ASSERT_FALSE(h.rows.empty());
    EXPECT_LE(h.rows.size(), n);
    EXPECT_EQ(h.rows.front().first, 0x401003);
    EXPECT_EQ(h.rows.back().last, 0x40105f);
    for (size_t i = 1; i < h.rows.size(); ++i) {
      EXPECT_EQ(h.rows[i].first, h.rows[i - 1].last + 1);
      EXPECT_LE(h.rows[i].last - h.rows[i].first, h.rows[0].last - h.rows[0].first);
    }
    EXPECT_EQ(h.here.samples, 700);
    EXPECT_EQ(elsewhere(h, Kind::outside), 50);
  }
}

TEST_F(HistogramTest, TheWidestRangeThereIs) {
  options_.range = "0-ffffffffffffffff";
  for (const size_t n : {1U, 3U, 20U}) {
    options_.rows = n;
    const Histogram h = make();
    EXPECT_EQ(h.rows.size(), n);
    EXPECT_EQ(h.rows.back().last, UINT64_MAX);
    EXPECT_EQ(h.here.samples, 750);
  }
}

TEST_F(HistogramTest, AllCodeWithoutARange) {
  const Histogram with = make(&code_);
  EXPECT_EQ(with.rows.front().first, 0x401000);
  EXPECT_EQ(with.rows.back().last, 0x401064);
  const Histogram without = make();
  EXPECT_EQ(without.rows.front().first, 0x401000);
  EXPECT_EQ(without.rows.back().last, 0x401fff) << "what was mapped";
}

TEST_F(HistogramTest, AFunctionByAnyOfItsNames) {
  for (const char* name : {"bogusb(int)", "bogusb", "_Z6bogusbi"}) {
    options_.range = name;
    const Histogram h = make(&code_);
    EXPECT_EQ(h.rows.front().first, 0x401030) << name;
    EXPECT_EQ(h.rows.back().last, 0x40104f) << name;
    EXPECT_EQ(h.here.samples, 400);
  }
  for (const char* name : {"main", "alias_of_stub"}) {
    options_.range = name;
    EXPECT_EQ(failure(&code_), "") << name;
  }
  options_.range = "bogus";
  EXPECT_EQ(failure(&code_),
            "-r bogus: neither START-END nor a function of /bin/hot; `nm` lists them");
  code_.functions.push_back({0x402000, 0x402010, "other::stub"});
  code_.names.clear();
  options_.range = "stub";
  EXPECT_EQ(failure(&code_), "") << "the whole name goes before a part";
  code_.functions.push_back({0x402010, 0x402020, "stub"});
  EXPECT_EQ(failure(&code_),
            "-r stub: there are 2 of that name, give addresses: 401050-401052, 402010-40201f");
}

TEST_F(HistogramTest, AFunctionWithoutSymbolsIsWhereItsSamplesAre) {
  options_.range = "bogusb";
  const Histogram h = make();
  ASSERT_EQ(h.rows.size(), 1);
  EXPECT_EQ(h.rows[0].first, 0x40103f);
  EXPECT_EQ(h.rows[0].last, 0x40103f);
  options_.range = "none";
  EXPECT_EQ(failure(), "-r none: neither START-END nor a function of /bin/hot that has a sample");
}

TEST_F(HistogramTest, SymbolsOfARow) {
  options_.range = "401020-40105f";
  options_.rows = 2;
  const Histogram h = make(&code_);
  ASSERT_EQ(h.rows.size(), 2);
  ASSERT_EQ(h.rows[0].symbols.size(), 2);
  EXPECT_EQ(h.rows[0].symbols[0].name, "bogusb(int)") << "the one with the most time first";
  EXPECT_EQ(h.rows[0].symbols[0].value.samples, 400);
  EXPECT_EQ(h.rows[0].symbols[1].name, "bogusa(int)");
  EXPECT_EQ(h.rows[0].symbols[1].offset, 0x20) << "it began before the row";
  EXPECT_EQ(h.rows[0].symbols[1].value.samples, 0);
}

TEST_F(HistogramTest, LibrariesByName) {
  for (const char* name : {"libfoo", "libfoo.so.6", "/lib/libfoo.so.6"}) {
    options_.library = name;
    const Histogram h = make();
    EXPECT_EQ(h.file, "/lib/libfoo.so.6") << name;
    EXPECT_EQ(h.here.samples, 150) << name;
    EXPECT_EQ(h.rows.front().first, 0x2000) << name;
  }
  for (const char* name : {"lib", "foo", "libfoo.so.5", "//anon"}) {
    options_.library = name;
    EXPECT_EQ(failure(), std::string("--library ") + name +
                             ": no such file was mapped; there were: hot, libfoo.so.6");
  }
}

TEST_F(HistogramTest, ABuildThatReplacedAnotherIsNotMixedIn) {
  const MappingId rebuilt =
      profile_.mapping({0x666600001000, 0x666600002000, 0x1000, "/bin/hot", "cc", 0x401000});
  add(1, "user", frame(rebuilt, 0x666600001010, "another"), 100);
  const auto h = histogram_of(profile_, options_, &code_);
  ASSERT_TRUE(h);
  EXPECT_EQ(h->here.samples, 750);
  EXPECT_EQ(elsewhere(*h, Kind::file), 250);
}

TEST_F(HistogramTest, AnOldRecordingHasNoAddressesOfFiles) {
  Profile old;
  const LabelId label = old.label(
      {.kind = LabelKind::process, .pid = 1, .start_ns = 1, .comm = "x", .exe = "/bin/x"});
  const MappingId mapping = old.mapping({0x1000, 0x2000, 0, "/bin/x", ""});
  const FrameId frame = old.frame({FrameKind::user, mapping, 0x1010, 0, 0, 0});
  old.add({.ran_on = label,
           .served = label,
           .source = old.string("user"),
           .stack = old.stack({&frame, 1})},
          {.count = 1, .ns = 1});
  const auto h = histogram_of(old, {});
  ASSERT_FALSE(h);
  EXPECT_TRUE(h.error().message.starts_with("/bin/x: its addresses are not known"))
      << h.error().message;
  EXPECT_EQ(histogram_of(Profile(), {}).error().message,
            "no code of any file was mapped: there is nothing to draw");
}

TEST_F(HistogramTest, AFileKeepsTheAddresses) {
  const auto bytes = encode_pprof(profile_);
  ASSERT_TRUE(bytes);
  const auto read = decode_pprof(std::as_bytes(std::span(*bytes)));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(histogram_json(*read, *histogram_of(*read, options_)),
            histogram_json(profile_, *histogram_of(profile_, options_)));
}

TEST_F(HistogramTest, Golden) {
  for (const size_t width : {60U, 80U, 120U}) {
    const std::string text = histogram_text(profile_, make(&code_), {.width = width});
    test::expect_harmless(text, width);
    test::expect_golden("histogram-" + std::to_string(width) + ".txt", text);
  }
  options_.rows = 0;
  options_.kernel = true;
  test::expect_golden("histogram-each.txt", histogram_text(profile_, make(), {.unicode = false}));
}

TEST_F(HistogramTest, GoldenJson) {
  options_.rows = 3;
  const std::string text = histogram_json(profile_, make(&code_));
  EXPECT_EQ(text.find('\n'), text.size() - 1) << "one line";
  test::expect_golden("histogram.json",
                      nlohmann::ordered_json::parse(text).dump(1, ' ', true) + "\n");
}

TEST_F(HistogramTest, GoldenOfNothing) {
  Profile nothing;
  nothing.meta.frequency_hz = 997;
  nothing.meta.counters = {{"samples of its children, not counted", 7}};
  nothing.label({.kind = LabelKind::process, .pid = 1, .start_ns = 1, .exe = "/bin/hot"});
  nothing.mapping({.start = 0x1000, .limit = 0x2000, .file = "/bin/hot"});
  const auto h = histogram_of(nothing, {.rows = 5}, &code_);
  ASSERT_TRUE(h) << h.error().message;
  test::expect_golden("histogram-empty.txt", histogram_text(nothing, *h));
}

TEST_F(HistogramTest, SaysWhatShareOfTheTimeWasWatched) {
  profile_.meta.duration_ns = 1000;
  const auto text = [&] {
    return histogram_text(profile_, histogram_of(profile_, {.rows = 5}, &code_).value());
  };
  EXPECT_EQ(text().find("watched"), std::string::npos);
  profile_.meta.unwatched_ns = 690;
  EXPECT_NE(text().find("\nwatched 31 % of the time (--budget)\n"), std::string::npos) << text();
}

TEST_F(HistogramTest, HostileNamesDoNothing) {
  code_.file = "/bin/\x1b[2J\n";
  code_.functions = {{0x401000, 0x401065, "evil\x1b]0;\x07\u202ename(\n)"}};
  const LabelId label = process(12, "x", code_.file.c_str());
  const MappingId mapping =
      profile_.mapping({0x777700001000, 0x777700002000, 0x1000, code_.file, "aa", 0x401000});
  add(label, "user", frame(mapping, 0x777700001010, "\x1b[31m"), 1);
  options_.pids = {12};
  const auto h = histogram_of(profile_, options_, &code_);
  ASSERT_TRUE(h) << h.error().message;
  test::expect_harmless(histogram_text(profile_, *h));
  for (const char c : histogram_json(profile_, *h))
    EXPECT_TRUE(c == '\n' || (c >= 0x20 && c < 0x7f));
}

TEST(AddressRange, Parsed) {
  EXPECT_EQ(**parse_range("0060-00b6"), (AddressRange{0x60, 0xb6}));
  EXPECT_EQ(**parse_range("0x401000-0x4010FF"), (AddressRange{0x401000, 0x4010ff}));
  EXPECT_EQ(**parse_range("5-5"), (AddressRange{5, 5}));
  EXPECT_EQ(**parse_range("0-ffffffffffffffff"), (AddressRange{0, UINT64_MAX}));
  EXPECT_FALSE(*parse_range("6-5"));
  for (const char* text : {"", "-", "5", "5-", "-5", "main", "x-y", "5-5-5", "10000000000000000-5",
                           "0x-5", "5 - 6", "operator-"})
    EXPECT_FALSE(parse_range(text)) << text;
}

TEST(AddressRange, WhatAFunctionIsCalled) {
  EXPECT_TRUE(is_called("main", "main"));
  EXPECT_TRUE(is_called("(anonymous namespace)::run(int, char**)", "run"));
  EXPECT_TRUE(is_called("(anonymous namespace)::run(int, char**)", "(anonymous namespace)::run"));
  EXPECT_TRUE(is_called("a::b(void (*)(int)) const", "b"));
  EXPECT_TRUE(is_called("a::operator()(int)", "operator()"));
  EXPECT_FALSE(is_called("a::rerun(int)", "run"));
  EXPECT_FALSE(is_called("run", ""));
  EXPECT_FALSE(is_called("", "run"));
  EXPECT_FALSE(is_called(")", "run"));
}

}  // namespace
}  // namespace pkprof
