// SPDX-License-Identifier: Apache-2.0
#include "probe/functions.h"

#include <gtest/gtest.h>

namespace pkprof {
namespace {

KnownFunctions table_of(std::string_view kallsyms) {
  const auto symbols = KernelSymbols::parse(kallsyms);
  return find_functions(*symbols);
}

TEST(Functions, AreFoundByName) {
  const KnownFunctions table = table_of(
      "ffffffff81000000 T handle_softirqs\n"
      "ffffffff81001000 t __netif_receive_skb_core.constprop.0\n"
      "ffffffff81002000 T __dev_queue_xmit\n"
      "ffffffff81003000 t kswapd\n"
      "ffffffff81004000 T last\n");
  EXPECT_TRUE(table.missing.empty());
  EXPECT_EQ(table.known[PK_KNOWN_KSWAPD], 0xffffffff81003000);
  ASSERT_EQ(table.entries.size(), 4U);  // the first stays below every address
  EXPECT_EQ(table.entries[1].start, 0xffffffff81000000);
  EXPECT_EQ(table.entries[2].start, 0xffffffff81001000);
}

TEST(Functions, WhatCannotBeFoundIsNamed) {
  EXPECT_EQ(table_of("ffffffff81000000 T something\n").missing.size(), 3U);
}

// Linux 6.1 has both names, and the first is not the tick's hrtimer there, wherever it lies.
TEST(Functions, TheTickIsTheOneWithAnHrtimer) {
  EXPECT_EQ(table_of("ffffffff81000000 t tick_nohz_handler\n"
                     "ffffffff81001000 t tick_sched_timer\n")
                .known[PK_KNOWN_TICK],
            0xffffffff81001000);
  EXPECT_EQ(table_of("ffffffff81000000 t tick_sched_timer\n"
                     "ffffffff81001000 t tick_nohz_handler\n")
                .known[PK_KNOWN_TICK],
            0xffffffff81000000);
  EXPECT_EQ(table_of("ffffffff81001000 t tick_nohz_handler\n").known[PK_KNOWN_TICK],
            0xffffffff81001000);
}

// How the kernel's own frames are left: tables that are no text, and the text that they are for.
TEST(Functions, TheUnwindersTablesAreFoundByTheirMarks) {
  const KnownFunctions table = table_of(
      "ffffffff81000000 T _stext\n"
      "ffffffff81001000 T return_to_handler\n"
      "ffffffff81002000 T arch_rethook_trampoline\n"
      "ffffffff82000000 T _etext\n"
      "ffffffff83000000 R __start_orc_unwind_ip\n"
      "ffffffff83001000 D __start_orc_unwind\n"
      "ffffffff83002000 d __stop_orc_unwind\n");
  EXPECT_EQ(table.known[PK_KNOWN_TEXT], 0xffffffff81000000);
  EXPECT_EQ(table.known[PK_KNOWN_RETURN_TRACED], 0xffffffff81001000);
  EXPECT_EQ(table.known[PK_KNOWN_RETURN_PROBED], 0xffffffff81002000);
  EXPECT_EQ(table.known[PK_KNOWN_TEXT_END], 0xffffffff82000000);
  EXPECT_EQ(table.known[PK_KNOWN_ORC_ADDRESSES], 0xffffffff83000000);
  EXPECT_EQ(table.known[PK_KNOWN_ORC], 0xffffffff83001000);
  EXPECT_EQ(table.known[PK_KNOWN_ORC_END], 0xffffffff83002000);
  EXPECT_EQ(table_of("ffffffff81000000 T _stext\n").known[PK_KNOWN_ORC], 0U);
}

}  // namespace
}  // namespace pkprof
