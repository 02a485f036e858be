// SPDX-License-Identifier: Apache-2.0
#include "import/contexts.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <vector>

namespace pkprof {
namespace {

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

}  // namespace
}  // namespace pkprof
