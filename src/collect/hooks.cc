// SPDX-License-Identifier: Apache-2.0
#include "collect/hooks.h"

namespace pkprof {
namespace {

constexpr const char* packets = "network: packets";
constexpr const char* drivers = "network: hand-over by drivers";
constexpr const char* sockets = "network: receiving sockets";
constexpr const char* takers = "network: who takes the data";
constexpr const char* segments = "network: TCP segments";
constexpr const char* splices = "network: spliced TCP data";
constexpr const char* drops = "network: drops";
constexpr const char* sending = "network: sending";
constexpr const char* queueing = "network: queueing disciplines";
constexpr const char* connections = "network: opening and closing";
constexpr const char* timers = "timers: whose they are";
constexpr const char* queueing_work = "work queues: who queues";
constexpr const char* thread_work = "kernel threads' queues: who queues";
constexpr const char* dirtying = "page cache: who makes files dirty";
constexpr const char* sharing = "page cache: who makes pages dirty";
constexpr const char* flushing = "page cache: which file is written back";
constexpr const char* journal = "file systems' journals: who takes part";
constexpr const char* submitting = "disks: who submits";
constexpr const char* completing = "disks: completed requests";
constexpr const char* reclaiming = "memory: who makes kswapd run";
constexpr const char* compacting = "memory: who makes kcompactd run";
constexpr const char* huge_pages = "memory: whose pages khugepaged joins";

constexpr Need needs[] = {
    {packets, "network softirq time cannot be charged to receivers"},
    {drivers, "with packet steering, a driver's polling stays unclaimed"},
    {sockets, "only packets of TCP connections and UDP ports find their process"},
    {takers, "work is charged to a socket's holder, without its call path"},
    {segments, "TCP work is charged by the packets' addresses alone"},
    {splices, "work for spliced data is charged to the socket's holder"},
    {drops, "dropped packets count as expired"},
    {sending, "deferred sending is not charged to the sender"},
    {queueing, "work of queueing disciplines is not charged to the sender"},
    {connections, "handshakes and short connections may stay unclaimed"},
    {timers, "the work of timers stays unclaimed"},
    {queueing_work, "the work of kworkers stays unclaimed"},
    {thread_work, "the work of some kernel threads stays unclaimed"},
    {dirtying, "files that were written in a pause of the hooks stay unclaimed"},
    {sharing, "a file that several write to is charged to the first of them"},
    {flushing, "writing back is charged to whoever set it off"},
    {journal, "the work of ext4's journal stays unclaimed"},
    {submitting, "the ends of disk requests stay unclaimed"},
    {completing, "the ends of disk requests stay unclaimed"},
    {reclaiming, "the work of kswapd stays unclaimed"},
    {compacting, "the work of kcompactd stays unclaimed"},
    {huge_pages, "the work of khugepaged stays unclaimed"},
};

constexpr Hook hooks[] = {
    {"pk_netif_receive_skb", packets, "netif_receive_skb", 1, false, false, false},
    {"pk_napi_gro_receive", drivers, "napi_gro_receive_entry", 1, false, false, false},
    {"pk_sk_data_ready", sockets, "sk_data_ready", 1, false, false, false},
    {"pk_sock_def_readable", sockets, "sock_def_readable", 0, true, false, false},
    {"pk_sock_recv_length", takers, "sock_recv_length", 3, false, false, false},
    {"pk_sock_recvmsg", takers, "sock_recvmsg", 0, true, false, false},
    {"pk_tcp_probe", segments, "tcp_probe", 2, false, false, false},
    {"pk_tcp_rcv_space_adjust", splices, "tcp_rcv_space_adjust", 1, false, false, false},
    {"pk_kfree_skb_rx", drops, "kfree_skb", 4, false, false, false},
    {"pk_kfree_skb", drops, "kfree_skb", 1, false, false, false},
    {"pk_net_dev_queue", sending, "net_dev_queue", 1, false, false, false},
    {"pk_qdisc_dequeue", queueing, "qdisc_dequeue", 4, false, false, false},
    {"pk_inet_sock_set_state", connections, "inet_sock_set_state", 3, false, false, true},
    {"pk_timer_expire", timers, "timer_expire_entry", 1, false, true, false},
    {"pk_hrtimer_expire", timers, "hrtimer_expire_entry", 1, false, true, false},
    {"pk_timer_start", timers, "timer_start", 1, false, true, false},
    {"pk_workqueue_queue_work", queueing_work, "workqueue_queue_work", 3, false, false, true},
    {"pk_kthread_queue_work", thread_work, "sched_kthread_work_queue_work", 2, false, false, true},
    {"pk_inode_dirty", dirtying, "writeback_dirty_inode_enqueue", 1, false, false, true},
    {"pk_folio_dirty", sharing, "writeback_dirty_folio", 2, false, false, false},
    {"pk_inode_written", flushing, "writeback_single_inode_start", 1, false, false, true},
    {"pk_journal_handle", journal, "jbd2_handle_start", 2, false, false, true},
    {"pk_block_bio_queue", submitting, "block_bio_queue", 1, false, true, true},
    {"pk_block_rq_issue", submitting, "block_rq_issue", 1, false, true, true},
    {"pk_block_rq_complete", completing, "block_rq_complete", 1, false, false, true},
    {"pk_kswapd_woken", reclaiming, "mm_vmscan_wakeup_kswapd", 1, false, false, true},
    {"pk_kcompactd_woken", compacting, "mm_compaction_wakeup_kcompactd", 1, false, false, true},
    {"pk_khugepaged_scan", huge_pages, "mm_khugepaged_scan_pmd", 1, false, false, true},
};

}  // namespace

std::span<const Need> all_needs() {
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
