// SPDX-License-Identifier: Apache-2.0
#include "calls/call_targets.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "report_fixture.h"

namespace pkprof {
namespace {

const KernelSymbols& symbols() {
  static const auto parsed = KernelSymbols::parse(
      "ffffffff81000000 T vfs_read\n"
      "ffffffff81000100 T vfs_write\n"
      "ffffffff81000200 t vfs_read.cold\n"
      "ffffffff81000300 t twice\n"
      "ffffffff81000400 t twice\n"
      "ffffffff81000500 t __pfx_vfs_open\n"
      "ffffffff81000510 T vfs_open\n"
      "ffffffff81000600 T __ia32_sys_getppid\n"
      "ffffffff81000600 T __x64_sys_getppid\n"
      "ffffffff81000700 t bpf_map_update_elem\n"
      "ffffffff81000800 t __netif_receive_skb_core.constprop.0\n"
      "ffffffffc0000100 t veth_xmit\t[veth]\n"
      "ffffffffc0000200 t bpf_prog_1_vfs_x\t[bpf]\n"
      "ffffffffc0000300 t last\t[veth]\n");
  return *parsed;
}

std::vector<CallTarget> found(const std::vector<std::string>& patterns) {
  auto targets = find_call_targets(symbols(), patterns);
  if (!targets) ADD_FAILURE() << targets.error().message;
  return targets.value_or(std::vector<CallTarget>());
}

std::vector<std::string> names(const std::vector<CallTarget>& targets) {
  std::vector<std::string> all;
  for (const CallTarget& target : targets) all.push_back(target.name);
  return all;
}

using Names = std::vector<std::string>;

TEST(CallTargets, NamesAndPatterns) {
  EXPECT_EQ(names(found({"vfs_write"})), Names{"vfs_write"});
  EXPECT_EQ(names(found({"vfs_*"})), (Names{"vfs_read", "vfs_write", "vfs_open"}))
      << "parts that are never called by themselves are no functions";
  EXPECT_EQ(names(found({"vfs_?rite", "vfs_[r]ead", "vfs_read"})), (Names{"vfs_read", "vfs_write"}))
      << "each once";
}

TEST(CallTargets, ANameThatNothingHasIsAnError) {
  const auto none = find_call_targets(symbols(), Names{"vfs_read", "vfs_reed"});
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message.find("vfs_reed"), std::string::npos);
  EXPECT_FALSE(find_call_targets(symbols(), Names{"xfs_*"}));
  EXPECT_FALSE(find_call_targets(symbols(), Names{"bpf_prog_1_vfs_x"}))
      << "no function of the kernel";
}

// Attaching by name takes any function of that name.
TEST(CallTargets, AliasesAreOneFunctionAndNamesakesAreSeveral) {
  const auto getppid = found({"*_sys_getppid"});
  ASSERT_EQ(getppid.size(), 1U);
  EXPECT_EQ(getppid[0].name, "__x64_sys_getppid");
  EXPECT_EQ(getppid[0].names, (Names{"__x64_sys_getppid", "__ia32_sys_getppid"}));
  const auto twice = found({"twice"});
  ASSERT_EQ(twice.size(), 2U);
  EXPECT_TRUE(twice[0].names.empty());
}

TEST(CallTargets, WhatCountingCallsIsOfNoPattern) {
  EXPECT_FALSE(find_call_targets(symbols(), Names{"bpf_map_*"}));
  EXPECT_EQ(found({"bpf_map_update_elem"}).size(), 1U) << "asked for by name";
}

TEST(CallTargets, WhatComesBeforeItsPacketIsKnown) {
  EXPECT_TRUE(found({"__netif_receive_skb_core*"})[0].ahead);
  EXPECT_FALSE(found({"vfs_read"})[0].ahead);
  EXPECT_TRUE(found({"veth_xmit"})[0].in_module);
}

TEST(HotFunctions, AreTheKernelsByTheirOwnTime) {
  const Names hot = hot_functions(test::counted_machine());
  // copy_page_to_iter 600 ms, vfs_read 400 + 100, udp_queue_rcv_skb 50.
  EXPECT_EQ(hot, (Names{"copy_page_to_iter", "vfs_read", "udp_queue_rcv_skb"}));
  EXPECT_EQ(hot_functions(test::counted_machine(), 1), Names{"copy_page_to_iter"});
}

TEST(HotFunctions, InterruptsByTheirHandlersAreNot) {
  const Names hot = hot_functions(test::called_machine());
  EXPECT_EQ(hot, Names{"exc_page_fault"});
}

}  // namespace
}  // namespace pkprof
