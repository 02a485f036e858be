// SPDX-License-Identifier: Apache-2.0
// What a wait is, by stacks as kernels have them and by who ended it.
#include <gtest/gtest.h>

#include <string_view>
#include <vector>

#include "attribution/waits/kinds.h"

namespace pkprof {
namespace {

using Functions = std::vector<std::string_view>;

constexpr pk_waker by_task = {.context = PK_WOKEN_BY_TASK};
constexpr pk_waker by_timer = {.context = PK_WOKEN_BY_INTERRUPT, .vec = PK_EXACT_TIMER};
constexpr pk_waker by_old_timer = {.context = PK_WOKEN_BY_SOFTIRQ, .vec = PK_VEC_TIMER};
constexpr pk_waker by_device = {.context = PK_WOKEN_BY_INTERRUPT, .vec = PK_EXACT_DEVICE};
constexpr pk_waker by_answer = {.context = PK_WOKEN_BY_SOFTIRQ, .vec = PK_VEC_NET_RX};
constexpr pk_waker by_question = {
    .context = PK_WOKEN_BY_SOFTIRQ, .question = 1, .vec = PK_VEC_NET_RX};

std::string_view kind(const Functions& functions, const pk_waker* waker = nullptr,
                      uint8_t futex = 0) {
  return wait_kind({.functions = functions, .futex = futex, .waker = waker});
}

const Functions polls = {"__schedule", "schedule",      "schedule_hrtimeout_range",
                         "ep_poll",    "do_epoll_wait", "__x64_sys_epoll_wait"};
const Functions receives = {"__schedule",   "schedule",           "schedule_timeout",  "wait_woken",
                            "sk_wait_data", "tcp_recvmsg_locked", "__x64_sys_recvfrom"};
const Functions futexes = {"__schedule", "schedule", "futex_do_wait", "__futex_wait", "futex_wait"};

TEST(WaitKinds, ReadyIsRunnableWhereverItWas) {
  EXPECT_EQ(wait_kind({.part = PK_WAIT_READY, .functions = polls}), "runnable");
}

TEST(WaitKinds, OfConnections) {
  EXPECT_EQ(kind(receives, &by_answer), "reply");
  EXPECT_EQ(kind(receives, &by_question), "idle");
  EXPECT_EQ(kind(receives, &by_old_timer), "timer");
  EXPECT_EQ(kind(polls, &by_answer), "reply");
  EXPECT_EQ(kind(polls, &by_question), "idle");
  EXPECT_EQ(kind(polls, &by_timer), "timer");
  EXPECT_EQ(kind(polls), "idle");  // nothing came
  EXPECT_EQ(kind({"__schedule", "schedule", "inet_csk_accept", "inet_accept"}, &by_question),
            "idle");
  EXPECT_EQ(kind({"__schedule", "schedule", "anon_pipe_read", "vfs_read"}, &by_task), "reply");
}

TEST(WaitKinds, OfFutexes) {
  constexpr uint8_t wait = 1 + 0, wait_bitset = 1 + 9;
  EXPECT_EQ(kind(futexes, &by_task, wait), "lock");
  EXPECT_EQ(kind(futexes, &by_task, wait_bitset), "event");
  EXPECT_EQ(kind(futexes, &by_timer, wait_bitset), "timer");
  const auto called_by = [](const Functions& callers) {
    return wait_kind(
        {.functions = futexes, .futex = wait_bitset, .waker = &by_task, .callers = callers});
  };
  EXPECT_EQ(called_by({"__futex_abstimed_wait_common", "pthread_cond_wait", "work"}), "event");
  EXPECT_EQ(called_by({"__futex_abstimed_wait_common", "pthread_rwlock_rdlock", "work"}), "lock");
  EXPECT_EQ(called_by({"__futex_abstimed_wait_common", "sem_clockwait",
                       "PyThread_acquire_lock_timed", "lock_PyThread_acquire_lock"}),
            "lock");
}

TEST(WaitKinds, OfTheKernel) {
  EXPECT_EQ(kind({"__schedule", "schedule", "io_schedule", "folio_wait_bit_common"}, &by_device),
            "disk");
  EXPECT_EQ(kind({"__schedule", "schedule", "io_schedule", "__folio_lock_or_retry", "filemap_fault",
                  "exc_page_fault", "asm_exc_page_fault"},
                 &by_device),
            "fault");
  EXPECT_EQ(
      kind({"__schedule", "schedule", "rwsem_down_write_slowpath", "down_write", "vm_mmap_pgoff"},
           &by_task),
      "lock");
  EXPECT_EQ(kind({"__schedule", "schedule", "schedule_timeout", "reclaim_throttle", "shrink_node"}),
            "memory");
  EXPECT_EQ(kind({"__schedule", "schedule", "do_nanosleep", "hrtimer_nanosleep"}, &by_timer),
            "timer");
  EXPECT_EQ(kind({"__schedule", "schedule", "do_wait", "kernel_wait4"}, &by_task), "child");
  EXPECT_EQ(
      kind({"__schedule", "schedule", "do_wait_intr_irq", "eventfd_read", "vfs_read"}, &by_task),
      "event");
  EXPECT_EQ(kind({"__schedule", "schedule", "schedule_timeout", "__mem_cgroup_handle_over_high"},
                 &by_timer),
            "memory");
  EXPECT_EQ(kind({"__schedule", "schedule", "ptrace_stop"}, &by_task), "stopped");
}

TEST(WaitKinds, OfWhatNobodyKnows) {
  EXPECT_EQ(kind({"__schedule", "schedule", "some_driver_wait"}, &by_task), "other");
  EXPECT_EQ(kind({"__schedule", "schedule", "some_driver_wait"}, &by_timer), "timer");
  EXPECT_EQ(kind({}), "other");
}

}  // namespace
}  // namespace pkprof
