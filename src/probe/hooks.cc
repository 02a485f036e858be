// SPDX-License-Identifier: Apache-2.0
#include "probe/hooks.h"

#include <algorithm>
#include <string_view>
#include <vector>

namespace pkprof {
namespace {

constexpr Need packets = {"network: packets",
                          "network softirq time cannot be charged to receivers"};
constexpr Need drivers = {"network: hand-over by drivers",
                          "with packet steering, a driver's polling stays unclaimed"};
constexpr Need sockets = {"network: receiving sockets",
                          "only packets of TCP connections and UDP ports find their process"};
constexpr Need takers = {"network: who takes the data",
                         "work is charged to a socket's holder, without its call path"};
constexpr Need segments = {"network: TCP segments",
                           "TCP work is charged by the packets' addresses alone"};
constexpr Need splices = {"network: spliced TCP data",
                          "work for spliced data is charged to the socket's holder"};
constexpr Need drops = {"network: drops", "dropped packets count as expired"};
constexpr Need sending = {"network: sending", "deferred sending is not charged to the sender"};
constexpr Need queueing = {"network: queueing disciplines",
                           "work of queueing disciplines is not charged to the sender"};
constexpr Need connections = {"network: opening and closing",
                              "handshakes and short connections may stay unclaimed"};
constexpr Need timers = {"timers: whose they are", "the work of timers stays unclaimed"};
constexpr Need queueing_work = {"work queues: who queues", "the work of kworkers stays unclaimed"};
constexpr Need thread_work = {"kernel threads' queues: who queues",
                              "the work of some kernel threads stays unclaimed"};
constexpr Need dirtying = {"page cache: who makes files dirty",
                           "files that were written while pkprof did not watch stay unclaimed"};
constexpr Need sharing = {"page cache: who makes pages dirty",
                          "a file that several write to is charged to the first of them"};
constexpr Need flushing = {"page cache: which file is written back",
                           "writing back is charged to whoever set it off"};
constexpr Need journal = {"file systems' journals: who takes part",
                          "the work of ext4's journal stays unclaimed"};
constexpr Need submitting = {"disks: who submits", "the ends of disk requests stay unclaimed"};
constexpr Need sending_on = {"disks: who has bios sent on",
                             "the work of the threads of mapped disks (dm, md) stays unclaimed"};
constexpr Need completing = {"disks: completed requests",
                             "the ends of disk requests stay unclaimed"};
constexpr Need reclaiming = {"memory: who makes kswapd run", "the work of kswapd stays unclaimed"};
constexpr Need compacting = {"memory: who makes kcompactd run",
                             "the work of kcompactd stays unclaimed"};
constexpr Need interrupts = {
    "interrupts: exact time",
    "the time of hard interrupts is charged to whatever was interrupted, and what sampling takes "
    "is not known"};
constexpr Need all_calls = {"counting calls in softirqs", "calls in softirqs stay unclaimed"};
constexpr Need socket_calls = {"counting calls in softirqs: receiving sockets",
                               "calls in softirqs for packets go by the packets' addresses alone"};
constexpr Need drop_calls = {"counting calls in softirqs: drops",
                             "calls in softirqs for dropped packets count as expired"};
constexpr Need all_time = {"measuring all of the time", "pkprof stat cannot measure"};
constexpr Need sleepers = {"interrupts: whose timers", "timers' interrupts are the kernel's"};
constexpr Need calls = {"interrupts: who has other CPUs call functions",
                        "function calls between CPUs are the kernel's"};
constexpr Need reschedules = {"interrupts: who has other CPUs look for tasks",
                              "reschedule interrupts are the kernel's"};
constexpr Need huge_pages = {"memory: whose pages khugepaged joins",
                             "the work of khugepaged stays unclaimed"};
constexpr Need killing = {"memory: who makes the kernel kill",
                          "the work of the oom reaper stays unclaimed"};
constexpr Need messages = {"clients: Unix sockets",
                           "interrupts by which Unix sockets wake senders are the server's own"};
constexpr Need acceptors = {"clients: who accepts a connection",
                            "where several threads accept connections at one socket, what one does "
                            "before the first message may count as its server's own"};
constexpr Need wakers = {"clients: who wakes a thread for its work",
                         "time of threads that others give work to counts as a server's own"};
constexpr Need waits = {"waits: how long", "what threads wait for is not known"};
constexpr Need wait_disks = {"waits: who is ahead at a disk",
                             "waits for disks are for whoever's request ended them"};
constexpr Need wait_ends = {
    "waits: who ends them",
    "who ends a wait is not known, nor when: waits for a CPU are part of it"};
constexpr Need wait_stacks = {"waits: the waiting thread's stack",
                              "what a thread waited for is not known"};
constexpr Need disk_usage = {"resources: disks", "bytes and times of disks are not known"};
constexpr Need net_usage = {"resources: networks", "bytes of networks are not known"};
constexpr Need net_again = {"resources: what is sent again", "what TCP sends again is not known"};
constexpr Need net_drops = {"resources: what is dropped", "dropped packets are not known"};
constexpr Need memory_usage = {"resources: memory", "who takes memory is not known"};
constexpr Need reclaim_usage = {"resources: memory that is reclaimed",
                                "because of whom memory is reclaimed is not known"};
constexpr Need lock_usage = {"resources: the kernel's locks",
                             "waiting for locks of the kernel is not known"};
constexpr Need names = {"processes: that name themselves",
                        "a process that names itself may be shown by the name that it had before"};
constexpr Need coming_back = {
    "CPUs: going offline and coming back",
    "a CPU that goes offline is not sampled any more, and taken for idle"};

// Programs on one tracepoint run in the order in which they are attached, which is that of this
// table. Those of calls need what the others have noted, so they come last. A hook that is alone
// with its need has that in its own line: {"pk_program", {"sources: of what", "what is lost"}, …}.
constexpr Hook hooks[] = {
    {"pk_net_comes",
     net_usage,
     "netif_receive_skb",
     1,
     false,
     0,
     HookGroup::usage,
     {},
     PK_USAGE_NET},
    {"pk_netif_receive_skb", packets, "netif_receive_skb", 1, false, 0, HookGroup::work,
     PK_REST_PACKETS},
    {"pk_napi_gro_receive", drivers, "napi_gro_receive_entry", 1, false, 0, HookGroup::work},
    {"pk_sk_data_ready", sockets, "sk_data_ready", 1, false, 0, HookGroup::work},
    {"pk_sock_def_readable", sockets, "sock_def_readable", 0, true, 1, HookGroup::work},
    {"pk_sock_recv_length", takers, "sock_recv_length", 3, false, 0, HookGroup::work,
     PK_REST_TAKING},
    {"pk_sock_recvmsg", takers, "sock_recvmsg", 0, true, 1, HookGroup::work},
    {"pk_tcp_probe", segments, "tcp_probe", 2, false, 0, HookGroup::work},
    {"pk_tcp_rcv_space_adjust", splices, "tcp_rcv_space_adjust", 1, false, 0, HookGroup::work},
    {"pk_kfree_skb_rx", drops, "kfree_skb", 4, false, 0, HookGroup::work},
    {"pk_kfree_skb", drops, "kfree_skb", 1, false, 1, HookGroup::work},
    {"pk_net_dev_queue", sending, "net_dev_queue", 1, false, 0, HookGroup::work, PK_REST_SENDING},
    {"pk_qdisc_dequeue", queueing, "qdisc_dequeue", 4, false, 0, HookGroup::work, PK_REST_SENDING},
    {"pk_inet_sock_set_state", connections, "inet_sock_set_state", 3, false, 0, HookGroup::work},
    {"pk_timer_expire", timers, "timer_expire_entry", 1, false, 0, HookGroup::work},
    {"pk_hrtimer_expire", timers, "hrtimer_expire_entry", 1, false, 0, HookGroup::work},
    {"pk_timer_start", timers, "timer_start", 1, false, 0, HookGroup::work},
    {"pk_workqueue_queue_work", queueing_work, "workqueue_queue_work", 3, false, 0,
     HookGroup::lasting},
    {"pk_kthread_queue_work", thread_work, "sched_kthread_work_queue_work", 2, false, 0,
     HookGroup::lasting},
    {"pk_inode_dirty", dirtying, "writeback_dirty_inode_enqueue", 1, false, 0, HookGroup::lasting},
    {"pk_folio_dirty", sharing, "writeback_dirty_folio", 2, false, 0, HookGroup::work},
    {"pk_inode_written", flushing, "writeback_single_inode_start", 1, false, 0, HookGroup::lasting},
    {"pk_flush_done", flushing, "writeback_pages_written", 1, false, 0, HookGroup::lasting},
    {"pk_journal_handle", journal, "jbd2_handle_start", 2, false, 0, HookGroup::work},
    {"pk_block_bio_queue", submitting, "block_bio_queue", 1, false, 0, HookGroup::disks},
    {"pk_block_split", sending_on, "block_split", 2, false, 0, HookGroup::disks},
    {"pk_block_bio_remap", sending_on, "block_bio_remap", 3, false, 0, HookGroup::disks},
    {"pk_block_rq_issue", submitting, "block_rq_issue", 1, false, 0, HookGroup::disks},
    {"pk_block_rq_complete", completing, "block_rq_complete", 3, false, 0, HookGroup::disks},
    {"pk_kswapd_woken", reclaiming, "mm_vmscan_wakeup_kswapd", 1, false, 0, HookGroup::lasting},
    {"pk_kcompactd_woken", compacting, "mm_compaction_wakeup_kcompactd", 1, false, 0,
     HookGroup::lasting},
    {"pk_khugepaged_scan", huge_pages, "mm_khugepaged_scan_pmd", 1, false, 0, HookGroup::lasting},
    {"pk_khugepaged_scan", huge_pages, "mm_khugepaged_scan_file", 1, false, 0, HookGroup::lasting},
    {"pk_oom_victim", killing, "mark_victim", 1, false, 0, HookGroup::lasting},
    {"pk_task_rename", names, "task_rename", 2, false, 0, HookGroup::lasting},
    {"pk_cpu_moves", coming_back, "cpuhp_enter", 4, false, 0, HookGroup::lasting},
    {"pk_irq_entry", interrupts, "irq_handler_entry", 2, false, 0, HookGroup::interrupts},
    {"pk_irq_exit", interrupts, "irq_handler_exit", 1, false, 0, HookGroup::interrupts},
    {"pk_local_timer_entry", interrupts, "local_timer_entry", 1, false, 0, HookGroup::interrupts},
    {"pk_vector_exit", interrupts, "local_timer_exit", 1, false, 0, HookGroup::interrupts},
    {"pk_call_entry", interrupts, "call_function_entry", 1, false, 0, HookGroup::interrupts},
    {"pk_vector_exit", interrupts, "call_function_exit", 1, false, 0, HookGroup::interrupts},
    {"pk_call_entry", interrupts, "call_function_single_entry", 1, false, 0, HookGroup::interrupts},
    {"pk_vector_exit", interrupts, "call_function_single_exit", 1, false, 0, HookGroup::interrupts},
    {"pk_irq_work_entry", interrupts, "irq_work_entry", 1, false, 0, HookGroup::interrupts},
    {"pk_vector_exit", interrupts, "irq_work_exit", 1, false, 0, HookGroup::interrupts},
    {"pk_reschedule_entry", interrupts, "reschedule_entry", 1, false, 0, HookGroup::interrupts},
    {"pk_vector_exit", interrupts, "reschedule_exit", 1, false, 0, HookGroup::interrupts},
    {"pk_hrtimer_interrupt", sleepers, "hrtimer_expire_entry", 1, false, 0, HookGroup::interrupts},
    {"pk_hrtimer_start", sleepers, "hrtimer_start", 1, false, 0, HookGroup::interrupts},
    {"pk_csd_queue", calls, "csd_queue_cpu", 4, false, 0, HookGroup::interrupts},
    {"pk_csd_entry", calls, "csd_function_entry", 2, false, 0, HookGroup::interrupts},
    {"pk_csd_exit", calls, "csd_function_exit", 2, false, 0, HookGroup::interrupts},
    {"pk_call_many", calls, "smp_call_function_many_cond", 0, true, 1, HookGroup::interrupts},
    {"pk_call_one", calls, "smp_call_function_single", 0, true, 1, HookGroup::interrupts},
    {"pk_call_later", calls, "smp_call_function_single_async", 0, true, 1, HookGroup::interrupts},
    {"pk_call_wake", calls, "__smp_call_single_queue", 0, true, 1, HookGroup::interrupts},
    {"pk_ipi_send", reschedules, "ipi_send_cpu", 3, false, 0, HookGroup::interrupts},
    {"pk_send_reschedule", reschedules, "native_smp_send_reschedule", 0, true, 1,
     HookGroup::interrupts},
    {"pk_sched_switch", all_time, "sched_switch", 3, false, 0, HookGroup::measure},
    {"pk_softirq_entry", all_time, "softirq_entry", 1, false, 0, HookGroup::measure},
    {"pk_softirq_exit", all_time, "softirq_exit", 1, false, 0, HookGroup::measure},
    {"pk_client_arrives", messages, "skb_copy_datagram_iovec", 1, false, 0, HookGroup::clients,
     PK_REST_ARRIVALS},
    {"pk_client_accepts", acceptors, "inet_accept", 0, true, 0, HookGroup::clients},
    {"pk_client_accepts_unix", acceptors, "unix_accept", 0, true, 0, HookGroup::clients},
    {"pk_client_wakes", wakers, "sched_waking", 1, false, 0, HookGroup::clients},
    {"pk_client_forks", wakers, "sched_process_fork", 2, false, 0, HookGroup::clients},
    {"pk_wait_switch", waits, "sched_switch", 4, false, 0, HookGroup::waits},
    {"pk_wait_ends", wait_ends, "sched_waking", 1, false, 0, HookGroup::waits},
    {"pk_wait_disk", wait_disks, "block_rq_complete", 3, false, 0, HookGroup::waits},
    {"pk_wait_over", wait_stacks, "sched_exit_tp", 1, false, 0, HookGroup::waits},
    {"pk_wait_over_by_function", wait_stacks, "schedule", 0, true, 1, HookGroup::waits},
    {"pk_net_goes", net_usage, "net_dev_queue", 1, false, 0, HookGroup::usage, {}, PK_USAGE_NET},
    {"pk_net_goes_again",
     net_again,
     "tcp_retransmit_skb",
     2,
     false,
     0,
     HookGroup::usage,
     {},
     PK_USAGE_NET},
    {"pk_net_drops_rx", net_drops, "kfree_skb", 4, false, 0, HookGroup::usage, {}, PK_USAGE_NET},
    {"pk_net_drops", net_drops, "kfree_skb", 3, false, 1, HookGroup::usage, {}, PK_USAGE_NET},
    {"pk_disk_begins",
     disk_usage,
     "block_rq_issue",
     1,
     false,
     0,
     HookGroup::usage,
     {},
     PK_USAGE_DISK},
    {"pk_disk_ends",
     disk_usage,
     "block_rq_complete",
     3,
     false,
     0,
     HookGroup::usage,
     {},
     PK_USAGE_DISK},
    {"pk_memory_taken",
     memory_usage,
     "mm_page_alloc",
     2,
     false,
     0,
     HookGroup::usage,
     {},
     PK_USAGE_MEMORY},
    {"pk_memory_reclaimed",
     reclaim_usage,
     "mm_vmscan_lru_shrink_inactive",
     3,
     false,
     0,
     HookGroup::usage,
     {},
     PK_USAGE_MEMORY},
    {"pk_lock_wanted",
     lock_usage,
     "contention_begin",
     2,
     false,
     0,
     HookGroup::usage,
     {},
     PK_USAGE_LOCK},
    {"pk_lock_had", lock_usage, "contention_end", 1, false, 0, HookGroup::usage, {}, PK_USAGE_LOCK},
    {"pk_calls_softirq_entry", all_calls, "softirq_entry", 1, false, 0, HookGroup::calls},
    {"pk_calls_softirq_exit", all_calls, "softirq_exit", 1, false, 0, HookGroup::calls},
    {"pk_calls_packet", all_calls, "netif_receive_skb", 1, false, 0, HookGroup::calls},
    {"pk_calls_sk_data_ready", socket_calls, "sk_data_ready", 1, false, 0, HookGroup::calls},
    {"pk_calls_sock_def_readable", socket_calls, "sock_def_readable", 0, true, 1, HookGroup::calls},
    {"pk_calls_tcp_probe", all_calls, "tcp_probe", 2, false, 0, HookGroup::calls},
    {"pk_calls_set_state", all_calls, "inet_sock_set_state", 3, false, 0, HookGroup::calls},
    {"pk_calls_dev_queue", all_calls, "net_dev_queue", 1, false, 0, HookGroup::calls},
    {"pk_calls_dequeue", all_calls, "qdisc_dequeue", 4, false, 0, HookGroup::calls},
    {"pk_calls_drop_rx", drop_calls, "kfree_skb", 4, false, 0, HookGroup::calls},
    {"pk_calls_drop", drop_calls, "kfree_skb", 1, false, 1, HookGroup::calls},
    {"pk_calls_timer", all_calls, "timer_expire_entry", 1, false, 0, HookGroup::calls},
    {"pk_calls_hrtimer", all_calls, "hrtimer_expire_entry", 1, false, 0, HookGroup::calls},
    {"pk_calls_request", all_calls, "block_rq_complete", 3, false, 0, HookGroup::calls},
};

std::string_view name_of(const Need& need) {
  return need.name;
}

}  // namespace

bool is_for_clocks(const Hook& hook) {
  return name_of(hook.need) == coming_back.name || name_of(hook.need) == names.name;
}

std::span<const Need> all_needs() {
  static const std::vector<Need> needs = [] {
    std::vector<Need> all;
    for (const Hook& hook : hooks)
      if (std::ranges::find(all, name_of(hook.need), name_of) == all.end())
        all.push_back(hook.need);
    return all;
  }();
  return needs;
}
std::span<const Hook> all_hooks() {
  return hooks;
}

bool hook_exists(const Hook& hook, const KernelFacts& facts) {
  if (hook.function) return facts.has_function(hook.where);
  return facts.tracepoint_args(hook.where) >= hook.min_args;
}

}  // namespace pkprof
