// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <sstream>

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
  EXPECT_EQ(sample->period, 1);
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

TEST(PerfHeader, OtherLinesAreNone) {
  for (const char* line :
       {"", ":", "nginx 812 [001] cycles:", "12.5: cycles:", "nginx x [001] 12.5: cycles:",
        "nginx 812 [001] 12.5:", "nginx 812 [001] 99999999999999999999.5: cycles:",
        "nginx 812 [99999999] 12.5: cycles:", "nginx 812 [001] 12.5: cycles"})
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
  EXPECT_FALSE(parse_perf_frame("not a frame"));
  EXPECT_FALSE(parse_perf_frame("7f00"));
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

TEST(PerfScript, WhatItIsNotIsSaid) {
  EXPECT_FALSE(imported(""));
  EXPECT_FALSE(imported("hello\nworld\n"));
  const auto longest = imported(std::string(100'000, 'x'));
  ASSERT_FALSE(longest);
  EXPECT_NE(longest.error().message.find("line 1"), std::string::npos);
  EXPECT_FALSE(
      imported("a 1 [000] 1.0: 18446744073709551615 cpu-clock: \n\n"
               "a 1 [000] 2.0: 18446744073709551615 cpu-clock: \n\n"));
  const auto strange = imported("a 1 [000] 1.000000: 1000000 cpu-clock: \n\nwhat is this\n");
  ASSERT_TRUE(strange);
  EXPECT_EQ(strange->meta.degraded.back(), "1 lines were not understood");
}

}  // namespace
}  // namespace pkprof
