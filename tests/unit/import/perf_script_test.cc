// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "import/perf_script.h"
#include "report/ledger.h"

namespace pkprof {
namespace {

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
  const auto profile = imported(text.str());
  EXPECT_EQ(rows_of(profile).size(), 200);
  const LedgerRow row = build_ledger(*profile).processes.front();
  EXPECT_EQ(profile->labels()[row.label].pid_text(), "-");
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
                                        "\t77 main+0x1 (/bin/a)\n  a[4011f3]\n"
                                        "\t88 [unknown] (/tmp/perf-1.map)\n  [JIT] tid 1[88]\n"
                                        "\t99 h+0x1 (/bin/my a)\n  my a[99]\n\n"));
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
