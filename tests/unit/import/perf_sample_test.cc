// SPDX-License-Identifier: Apache-2.0
#include "import/perf_sample.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace pkprof {
namespace {

TEST(PerfHeader, SaysWhoWhenAndOfWhat) {
  const auto sample = parse_perf_header(
      "           nginx   812/813   [001]  4711.123456:   10101010 cpu-clock:pppH: ");
  ASSERT_TRUE(sample);
  EXPECT_EQ(sample->comm, "nginx");
  EXPECT_EQ(sample->pid, 812);
  EXPECT_EQ(sample->tid, 813);
  EXPECT_EQ(sample->cpu, 1);
  EXPECT_EQ(sample->time_ns, 4711'123'456'000);
  EXPECT_EQ(sample->period, 10'101'010);
  EXPECT_EQ(sample->event, "cpu-clock");
}

TEST(PerfHeader, WithoutACpuOrAPeriod) {
  const auto sample = parse_perf_header("sh 7 1.000000001: cycles:");
  ASSERT_TRUE(sample);
  EXPECT_FALSE(sample->cpu);
  EXPECT_FALSE(sample->period);
  EXPECT_EQ(sample->time_ns, 1'000'000'001);
  EXPECT_EQ(sample->event, "cycles");
}

TEST(PerfHeader, NamesMayLookLikeAnything) {
  const auto sample = parse_perf_header("a [3] 1.5: 9 b 77 [000] 12.5: 250000 cycles:P: ");
  ASSERT_TRUE(sample);
  EXPECT_EQ(sample->comm, "a [3] 1.5: 9 b");
  EXPECT_EQ(sample->pid, 77);
  EXPECT_EQ(sample->time_ns, 12'500'000'000);
}

TEST(PerfHeader, AnyFieldMayBeLeftOut) {
  struct Case {
    const char* line;
    const char* comm;
    std::optional<uint32_t> pid;
    std::optional<uint32_t> cpu;
    std::optional<uint64_t> time_ns;
    std::optional<uint64_t> period;
    const char* event;
  };
  constexpr std::nullopt_t none = std::nullopt;
  for (const Case& c : std::initializer_list<Case>{
           {"foobar [worker] 21332 cycles:", "foobar [worker]", 21332, none, none, none, "cycles"},
           {"sh 500 500 cycles:", "sh", 500, none, none, 500, "cycles"},
           {"sh 7/8 [002] 250000 cycles:u: ", "sh", 7, 2, none, 250000, "cycles"},
           {"sh 7 [002]  12.500000: ", "sh", 7, 2, 12'500'000'000, none, ""},
           {"sh  12.500000: cycles:", "sh", none, none, 12'500'000'000, none, "cycles"},
           {"[002]  12.500000: cycles:", "", none, 2, 12'500'000'000, none, "cycles"},
           {"sh 7 [000] d.h1.  12.5: 10 cpu-clock:", "sh", 7, 0, 12'500'000'000, 10, "cpu-clock"},
           {"sh 7 [000] U  12.5: 10 cpu-clock:", "sh", 7, 0, 12'500'000'000, 10, "cpu-clock"},
           {":-1    -1/-1 [000] 13.000000: 250000 cpu-clock:", ":-1", none, 0, 13'000'000'000,
            250000, "cpu-clock"},
           {"sh 7 [000] 1795775000.000001: 1 a:read:", "sh", 7, 0, 1795775000'000'001'000, 1,
            "a:read"},
           {"sh 7 [0] 1.5: sched:sched_switch: prev_comm=sh prev_pid=7", "sh", 7, 0, 1'500'000'000,
            none, "sched:sched_switch"}}) {
    const auto sample = parse_perf_header(c.line);
    ASSERT_TRUE(sample) << c.line;
    EXPECT_EQ(sample->comm, c.comm) << c.line;
    EXPECT_EQ(sample->pid, c.pid) << c.line;
    EXPECT_EQ(sample->cpu, c.cpu) << c.line;
    EXPECT_EQ(sample->time_ns, c.time_ns) << c.line;
    EXPECT_EQ(sample->period, c.period) << c.line;
    EXPECT_EQ(sample->event, c.event) << c.line;
    EXPECT_TRUE(sample->frames.empty()) << c.line;
  }
}

TEST(PerfHeader, HasItsFrameWithoutCallGraphs) {
  for (const char* line :
       {"hot  5279  6757.490623:    1003009 cpu-clock:      56379fced1d0 f(int)+0x20 "
        "(/usr/bin/hot)",
        "hot  5279  6757.490623:      56379fced1d0 f(int) (/usr/bin/hot)",
        "hot 5279 10 mem:u:   7ffd00001000   12  56379fced1d0 f(int) (/usr/bin/hot)"}) {
    const auto sample = parse_perf_header(line);
    ASSERT_TRUE(sample) << line;
    EXPECT_EQ(sample->pid, 5279) << line;
    ASSERT_EQ(sample->frames.size(), 1) << line;
    EXPECT_EQ(sample->frames[0].address, 0x56379fced1d0) << line;
    EXPECT_EQ(sample->frames[0].function, "f(int)") << line;
    EXPECT_EQ(sample->frames[0].file, "/usr/bin/hot") << line;
  }
}

TEST(PerfHeader, OtherLinesAreNone) {
  for (const char* line :
       {"", ":", "12.5:", "it took 12.5: too long",
        "nginx 812 [001] 99999999999999999999.5: cycles:", "nginx 812 [001] 12.5: cycles",
        "nginx 812", "cycles:", "55d0 1234 (a):"})
    EXPECT_FALSE(parse_perf_header(line)) << line;
}

TEST(PerfFrame, HasAFunctionAndAFile) {
  const auto frame = parse_perf_frame("\tffffffff81a2b3c4 tcp_recvmsg+0x64 ([kernel.kallsyms])");
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->address, 0xffffffff81a2b3c4);
  EXPECT_EQ(frame->function, "tcp_recvmsg");
  EXPECT_EQ(frame->file, "[kernel.kallsyms]");
  const auto cpp = parse_perf_frame("  55d0 ns::f(int (*)(char), A<+0x1>)+0x5 (/opt/a (1)/b)");
  ASSERT_TRUE(cpp);
  EXPECT_EQ(cpp->function, "ns::f(int (*)(char), A<+0x1>)");
  EXPECT_EQ(cpp->file, "/opt/a (1)/b");
  const auto unknown = parse_perf_frame("  7f00 [unknown] ([unknown])");
  ASSERT_TRUE(unknown);
  EXPECT_EQ(unknown->function + unknown->file, "");
  const auto inlined = parse_perf_frame("  7f00 helper (inlined)");
  ASSERT_TRUE(inlined);
  EXPECT_EQ(inlined->function, "helper");
  const auto deleted =
      parse_perf_frame("ffee operator()(int) (.constprop.0) (/lib/libudev.so (deleted))");
  ASSERT_TRUE(deleted);
  EXPECT_EQ(deleted->function, "operator()(int) (.constprop.0)");
  EXPECT_EQ(deleted->file, "/lib/libudev.so (deleted)");
  const auto parentheses = parse_perf_frame("7f01 [unknown] (/tmp/with (parens) x/lib.so)");
  ASSERT_TRUE(parentheses);
  EXPECT_EQ(parentheses->function, "");
  EXPECT_EQ(parentheses->file, "/tmp/with (parens) x/lib.so");
  const auto in_file = parse_perf_frame("7f01 f+0x3 (/lib/a.so+0x1003)");
  ASSERT_TRUE(in_file);
  EXPECT_EQ(in_file->function, "f");
  EXPECT_EQ(in_file->file, "/lib/a.so");
  EXPECT_FALSE(parse_perf_frame("not a frame"));
  EXPECT_FALSE(parse_perf_frame("7f00"));
  EXPECT_TRUE(parse_perf_frame("\t            7f00"));
}

}  // namespace
}  // namespace pkprof
