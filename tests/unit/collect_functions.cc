// SPDX-License-Identifier: Apache-2.0
#include "collect/functions.h"

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

}  // namespace
}  // namespace pkprof
