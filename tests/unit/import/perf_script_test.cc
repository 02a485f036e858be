// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "import/contexts.h"
#include "import/perf_sample.h"
#include "import/perf_script.h"
#include "report/ledger.h"

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

std::vector<ContextFrame> kernel(std::initializer_list<const char*> functions) {
  std::vector<ContextFrame> frames;
  for (const char* f : functions) frames.push_back({f, true});
  return frames;
}

TEST(ImportedContexts, ASoftirqAtAnInterruptsEndIsTheSoftirqs) {
  auto frames = kernel({"tcp_v4_rcv", "net_rx_action", "handle_softirqs", "irq_exit_rcu",
                        "common_interrupt", "asm_common_interrupt", "vfs_read", "__x64_sys_read"});
  frames.push_back({"main", false});
  const Contexts c = contexts_of(frames);
  EXPECT_EQ(c.source, "softirq:NET_RX");
  EXPECT_EQ(c.asynchronous, 6);
  EXPECT_EQ(c.kernel, 8);
  EXPECT_EQ(c.entry, "syscall:read");
  EXPECT_FALSE(c.for_kernel);
}

TEST(ImportedContexts, AnInterruptInASoftirqIsStillWithinIt) {
  const Contexts c = contexts_of(
      kernel({"nvme_irq", "asm_common_interrupt", "net_rx_action", "__do_softirq", "do_softirq"}));
  EXPECT_EQ(c.source, "softirq:NET_RX");
  EXPECT_EQ(c.asynchronous, 5);
}

TEST(ImportedContexts, GracePeriodsAreTheKernels) {
  const Contexts c = contexts_of(kernel({"rcu_do_batch", "rcu_core", "handle_softirqs"}));
  EXPECT_EQ(c.source, "softirq:RCU");
  EXPECT_TRUE(c.for_kernel);
}

TEST(ImportedContexts, InterruptsByTheirEntries) {
  EXPECT_EQ(contexts_of(kernel({"x", "asm_sysvec_apic_timer_interrupt"})).source,
            "irq:local_timer");
  EXPECT_EQ(contexts_of(kernel({"x", "asm_sysvec_call_function"})).source, "ipi:unknown");
  EXPECT_EQ(contexts_of(kernel({"x", "asm_common_interrupt"})).source, "irq:unknown");
}

TEST(ImportedContexts, CallsAndFaults) {
  EXPECT_EQ(contexts_of(kernel({"ksys_read", "__x64_sys_read", "do_syscall_64"})).entry,
            "syscall:read");
  EXPECT_EQ(contexts_of(kernel({"handle_mm_fault", "asm_exc_page_fault"})).entry, "fault");
  EXPECT_EQ(contexts_of(kernel({"schedule"})).entry, "kernel");
  EXPECT_EQ(contexts_of({}).entry, "");
  // A function of a program's own says nothing of the kernel.
  const ContextFrame own[] = {{"handle_softirqs", false}};
  EXPECT_EQ(contexts_of(own).asynchronous, 0);
}

constexpr const char* header = "# os release : 6.1.0-x\n# hostname : web\n# nrcpus online : 2\n";

// 2 CPUs, a clock of 100 Hz, 10 s.
std::string ten_seconds() {
  std::ostringstream text;
  text << header;
  for (int i = 0; i < 1000; ++i) {
    const auto at = [&](int cpu) {
      text << " [00" << cpu << "] " << 100 + i / 100 << "." << (i % 100 < 10 ? "0" : "") << i % 100
           << "0000: 10000000 cpu-clock: \n";
    };
    // Half of the time of a server is a softirq's.
    text << "web 10/10";
    at(0);
    if (i % 2)
      text << "\tffffffff81000001 tcp_v4_rcv+0x1 ([kernel.kallsyms])\n"
              "\tffffffff81000002 net_rx_action+0x1 ([kernel.kallsyms])\n"
              "\tffffffff81000003 handle_softirqs+0x1 ([kernel.kallsyms])\n"
              "\tffffffff81000004 asm_common_interrupt+0x1 ([kernel.kallsyms])\n";
    text << "\t    55d000 serve+0x10 (/usr/bin/web)\n\n";
    text << "swapper 0";
    at(1);
    text << "\tffffffff81000005 default_idle+0x1 ([kernel.kallsyms])\n\n";
  }
  return text.str();
}

Result<Profile> imported(const std::string& text) {
  std::istringstream in(text);
  return read_perf_script(in);
}

TEST(PerfScript, InterruptsAreNotTheirBystanders) {
  const auto profile = imported(ten_seconds());
  ASSERT_TRUE(profile) << profile.error().message;
  EXPECT_EQ(profile->meta.kernel, "6.1.0-x");
  EXPECT_EQ(profile->meta.host, "web");
  EXPECT_EQ(profile->meta.cpus, 2);
  EXPECT_EQ(profile->meta.frequency_hz, 100);
  EXPECT_EQ(profile->meta.duration_ns, 10'000'000'000);
  const Ledger ledger = build_ledger(*profile);
  ASSERT_EQ(ledger.processes.size(), 1);
  const LedgerRow& web = ledger.processes.front();
  EXPECT_EQ(web.seems_ns, 10'000'000'000);
  EXPECT_EQ(web.user_ns, 5'000'000'000);
  EXPECT_EQ(web.stolen_ns, 5'000'000'000);
  EXPECT_EQ(ledger.unclaimed.at("untracked"), 5'000'000'000);
  EXPECT_EQ(ledger.idle_ns, 10'000'000'000);
  EXPECT_EQ(ledger.cpu_ns, 20'000'000'000);
}

TEST(PerfScript, EventsThatAreNoClockCountByTheirDistance) {
  std::ostringstream text;
  for (int i = 0; i < 100; ++i)
    text << "a 1 [000] 1." << (i < 10 ? "0" : "") << i
         << "0000: 123456 cycles:P: \n\t55 f (/bin/a)\n\n";
  const auto profile = imported(text.str());
  ASSERT_TRUE(profile) << profile.error().message;
  EXPECT_EQ(profile->meta.frequency_hz, 100);
  EXPECT_NEAR(static_cast<double>(build_ledger(*profile).processes.front().user_ns), 1e9, 2e7);
}

TEST(PerfScript, WhatIsNotSampledIsOther) {
  const auto profile = imported(
      "a 1 [000] 1.000000: 1000000 cpu-clock: \n\t55 f (/bin/a)\n\n"
      "a 1 [001] 2.000000: 1000000 cpu-clock: \n\t55 f (/bin/a)\n\n");
  ASSERT_TRUE(profile) << profile.error().message;
  const Ledger ledger = build_ledger(*profile);
  EXPECT_EQ(ledger.processes.front().user_ns, 2'000'000);
  EXPECT_EQ(ledger.other_ns, 2 * 1'001'000'000 - 2'000'000);
}

// Of one process: the rows of the ledger, "comm USER OWN STOLEN" in ms.
std::vector<std::string> rows_of(const Result<Profile>& profile) {
  if (!profile) return {profile.error().message};
  std::vector<std::string> rows;
  for (const LedgerRow& row : build_ledger(*profile).processes)
    rows.push_back(
        profile->labels()[row.label].comm + " " + std::to_string(row.user_ns / 1'000'000) + " " +
        std::to_string(row.own_ns / 1'000'000) + " " + std::to_string(row.stolen_ns / 1'000'000));
  return rows;
}

using Rows = std::vector<std::string>;

// Hundred of them, 10 ms apart; what comes after the time is `what`.
std::string hundred(const std::string& who, const std::string& what) {
  std::ostringstream text;
  for (int i = 0; i < 100; ++i)
    text << who << " 5." << (i < 10 ? "0" : "") << i << "0000: " << what;
  return text.str();
}

bool says(const Profile& profile, const std::string& part) {
  return std::ranges::any_of(profile.meta.degraded, [&](const std::string& line) {
    return line.find(part) != std::string::npos;
  });
}

TEST(PerfScript, WithoutCallGraphsEachLineIsASample) {
  const auto profile =
      imported(hundred("hot 5279", "10000000 cpu-clock:   56379fced1d0 f+0x20 (/usr/bin/hot)\n"));
  EXPECT_EQ(rows_of(profile), Rows{"hot 1000 0 0"});
}

TEST(PerfScript, SamplesWithoutAFrameNeedNoLineBetween) {
  EXPECT_EQ(rows_of(imported(hundred("dd 7", "10000000 cpu-clock: \n") +
                             hundred("bash 8", "20000000 cpu-clock: \n"))),
            (Rows{"bash 2000 0 0", "dd 1000 0 0"}));
}

TEST(PerfScript, AnotherNameIsAnotherProgramButForThreads) {
  EXPECT_EQ(rows_of(imported(hundred("sh 7/7", "10000000 cpu-clock: \n") +
                             hundred("dd 7/7", "20000000 cpu-clock: \n") +
                             hundred("worker 7/9", "10000000 cpu-clock: \n"))),
            (Rows{"dd 3000 0 0", "sh 1000 0 0"}));
}

TEST(PerfScript, AClockWithoutPeriodsGoesByItsDistances) {
  const auto profile = imported(hundred("hot 5279 [000]", "cpu-clock: \n\t55 f (/bin/hot)\n\n"));
  EXPECT_EQ(rows_of(profile), Rows{"hot 1000 0 0"});
  EXPECT_EQ(profile->meta.frequency_hz, 100);
}

TEST(PerfScript, ASampleWithoutAPeriodCountsAsTheOthersDo) {
  EXPECT_EQ(rows_of(imported(hundred("a 1 [000]", "10000000 cpu-clock: \n\n") +
                             "b 2 [000] 6.000000: cpu-clock: \n\n")),
            (Rows{"a 1000 0 0", "b 10 0 0"}));
}

TEST(PerfScript, WithoutNumbersNamesTellProcessesApart) {
  std::ostringstream text;
  for (int i = 0; i < 200; ++i) text << "p" << i << " 5.000000: 1000000 cpu-clock: \n\n";
  EXPECT_EQ(rows_of(imported(text.str())).size(), 200);
}

TEST(PerfScript, OfSeveralEventsOneIsTaken) {
  const std::string text = hundred("a 1 [000]", "1 faults: \n\t55 f (/bin/a)\n\n") +
                           hundred("a 1 [000]", "10000000 cpu-clock:u: \n\t55 f (/bin/a)\n\n") +
                           hundred("b 2 [000]", "1 sched:sched_switch: \n\t55 f (/bin/a)\n\n");
  const auto clock = imported(text);
  EXPECT_EQ(rows_of(clock), Rows{"a 1000 0 0"});
  EXPECT_TRUE(says(*clock, "faults (100 samples), sched:sched_switch (100 samples)"));
  std::istringstream again(text);
  EXPECT_EQ(rows_of(read_perf_script(again, "sched:sched_switch")), Rows{"b 1000 0 0"});
  std::istringstream none(text);
  const auto other = read_perf_script(none, "cycles");
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().message.find("no event cycles"), std::string::npos);
}

TEST(PerfScript, ThreadsThatEndedHaveARow) {
  EXPECT_EQ(rows_of(imported(hundred(":-1 -1/-1 [000]", "10000000 cpu-clock: \n\t55 f (/a)\n\n"))),
            Rows{"(ended) 1000 0 0"});
}

TEST(PerfScript, AKernelReadFromAFileIsTheKernel) {
  for (const char* file : {"/usr/lib/debug/boot/vmlinux-6.1.0", "/lib/modules/6/net/a.ko",
                           "/lib/modules/6/net/a.ko.zst", "/x/a.ko.xz", "[kernel.vmlinux]"}) {
    std::ostringstream stack;
    stack << "10000000 cpu-clock: \n\t55 net_rx_action+0x1 (" << file
          << ")\n\t66 handle_softirqs+0x1 (" << file << ")\n\t77 main+0x1 (/bin/a)\n\n";
    EXPECT_EQ(rows_of(imported(hundred("a 1 [000]", stack.str()))), Rows{"a 0 0 1000"}) << file;
  }
}

TEST(PerfScript, WhatAVirtualMachineDoesIsItsOwn) {
  const std::string in = "+0x1 ([guest.kernel.kallsyms])\n";
  EXPECT_EQ(rows_of(imported(hundred("CPU 0/KVM 1/2 [000]",
                                     "10000000 cpu-clock: \n\tffffffff81101234 net_rx_action" + in +
                                         "\tffffffff81101238 handle_softirqs" + in + "\n"))),
            Rows{"CPU 0/KVM 1000 0 0"});
}

TEST(PerfScript, SourceLinesBelongToTheirFrames) {
  const auto profile = imported(hundred("a 1 [000]",
                                        "10000000 cpu-clock: \n\t55 f+0x1 (/bin/a)\n  a.c:12\n"
                                        "\t66 g+0x1 (/bin/a)\n  a.c:40 (discriminator 3)\n"
                                        "\t77 main+0x1 (/bin/a)\n  a[4011f3]\n\n"));
  EXPECT_EQ(rows_of(profile), Rows{"a 1000 0 0"});
  EXPECT_FALSE(says(*profile, "not understood"));
}

TEST(PerfScript, LongNamesAndDeepStacksAreCut) {
  const auto profile =
      imported("a 1 [000] 1.0: 10000000 cpu-clock: \n\t55 " + std::string(100'000, 'x') +
               " (/bin/a)\n\t66 main+0x1 (/bin/a)\n\n");
  EXPECT_EQ(rows_of(profile), Rows{"a 10 0 0"});
  EXPECT_TRUE(says(*profile, "1 lines longer than"));
}

TEST(PerfScript, WhatTimeSaysNothingOfIsNotMadeUp) {
  const auto one = imported("a 1 [000] 5.000000: cycles: \n\t55 f (/bin/a)\n\n");
  ASSERT_TRUE(one);
  EXPECT_EQ(one->meta.frequency_hz, 0);
  EXPECT_TRUE(says(*one, "not known: each sample counts for 1 ms"));
  EXPECT_EQ(rows_of(one), Rows{"a 1 0 0"});
  const auto apart = imported("a 1 [000] 5.0: cycles: \n\na 1 [000] 4738968.0: cycles: \n\n");
  ASSERT_TRUE(apart);
  EXPECT_EQ(apart->meta.frequency_hz, 0);
  EXPECT_LT(apart->meta.duration_ns, 1'000'000'000);
  EXPECT_EQ(rows_of(imported("a [w] 9 cycles:\n\nb 8 cycles:\n\na [w] 9 cycles:\n\n")),
            (Rows{"a [w] 2 0 0", "b 1 0 0"}));
}

TEST(PerfScript, ALineThatSaysOnlyWhoIsASamplesWhereAFrameFollows) {
  const auto profile = imported(
      "a b 12\n\t55d000 f (/bin/a)\n\na b 12 [001]\n\t55d000 f (/bin/a)\n\n"
      "c 12 [001] 500\n\nhot 7   56379fced1d0 f+0x2 (/usr/bin/hot)\n");
  EXPECT_EQ(rows_of(profile), (Rows{"a b 2 0 0", "hot 1 0 0"}));
  EXPECT_TRUE(says(*profile, "1 lines were not understood"));
}

TEST(PerfScript, WhatItIsNotIsSaid) {
  EXPECT_FALSE(imported(""));
  EXPECT_FALSE(imported("hello\nworld\n"));
  EXPECT_FALSE(imported(std::string(100'000, 'x')));
  EXPECT_FALSE(
      imported("a 1 [000] 1.0: 18446744073709551615 cpu-clock: \n\n"
               "a 1 [000] 2.0: 18446744073709551615 cpu-clock: \n\n"));
  const auto strange = imported("a 1 [000] 1.000000: 1000000 cpu-clock: \n\nwhat is this\n");
  ASSERT_TRUE(strange);
  EXPECT_EQ(strange->meta.degraded.back(), "1 lines were not understood");
}

}  // namespace
}  // namespace pkprof
