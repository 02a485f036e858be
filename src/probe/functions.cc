// SPDX-License-Identifier: Apache-2.0
#include "probe/functions.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

namespace pkprof {
namespace {

struct Known {
  const char* name;
  pk_function_class class_;
  uint32_t arg;
};

// Compilers split functions ("x.cold", "x.constprop.0", "x.isra.0"): every part counts.
// Names that changed stand side by side; a kernel has one of them.
constexpr Known known_functions[] = {
    {"handle_softirqs", PK_FN_SOFTIRQ, 0},  // in 6.12
    {"__do_softirq", PK_FN_SOFTIRQ, 0},
    {"do_syscall_64", PK_FN_SYSCALL, 0},
    {"napi_threaded_poll", PK_FN_NAPI_THREAD, 0},
    {"napi_threaded_poll_loop", PK_FN_NAPI_THREAD, 0},
    {"net_rx_action", PK_FN_ACTION, PK_VEC_NET_RX},
    {"net_tx_action", PK_FN_ACTION, PK_VEC_NET_TX},
    {"run_timer_softirq", PK_FN_ACTION, PK_VEC_TIMER},
    {"hrtimer_run_softirq", PK_FN_ACTION, PK_VEC_HRTIMER},
    {"tasklet_action", PK_FN_ACTION, PK_VEC_TASKLET},
    {"tasklet_hi_action", PK_FN_ACTION, PK_VEC_HI},
    {"workqueue_softirq_action", PK_FN_ACTION, PK_VEC_TASKLET},
    {"blk_done_softirq", PK_FN_ACTION, PK_VEC_BLOCK},
    {"irq_poll_softirq", PK_FN_ACTION, PK_VEC_IRQ_POLL},
    {"run_rebalance_domains", PK_FN_ACTION, PK_VEC_SCHED},
    {"sched_balance_softirq", PK_FN_ACTION, PK_VEC_SCHED},  // in 6.12
    {"rcu_core_si", PK_FN_ACTION, PK_VEC_RCU},
    // What a vector's function does last, it may jump to, and is not on the stack itself.
    {"rcu_core", PK_FN_ACTION, PK_VEC_RCU},
    {"tmigr_handle_remote", PK_FN_ACTION, PK_VEC_TIMER},
    {"rebalance_domains", PK_FN_ACTION, PK_VEC_SCHED},
    {"sched_balance_domains", PK_FN_ACTION, PK_VEC_SCHED},  // in 6.12
    {"blk_complete_reqs", PK_FN_ACTION, PK_VEC_BLOCK},
    {"_raw_spin_unlock_irqrestore", PK_FN_UNLOCK, 0},
    {"_raw_spin_unlock_irq", PK_FN_RUNNER, 0},
    {"tasklet_action_common", PK_FN_RUNNER, 0},
    {"bh_worker", PK_FN_RUNNER, 0},  // in 6.9
    {"process_one_work", PK_FN_RUNNER, 0},
    {"call_timer_fn", PK_FN_CALL_TIMER, 0},
    {"blk_update_request", PK_FN_COMPLETE, 0},
    {"__blk_mq_end_request", PK_FN_COMPLETE, 0},
    {"bio_endio", PK_FN_COMPLETE, 0},
    {"rcu_do_batch", PK_FN_RECLAIM, 0},
    {"kfree_rcu_work", PK_FN_RECLAIM, 0},
    {"srcu_invoke_callbacks", PK_FN_RECLAIM, 0},
    {"delayed_vfree_work", PK_FN_PUT_OFF, 0},
    {"free_work", PK_FN_PUT_OFF, 0},  // the same, before 6.3
    {"css_free_rwork_fn", PK_FN_PUT_OFF, 0},
    {"css_release_work_fn", PK_FN_PUT_OFF, 0},
    {"css_killed_work_fn", PK_FN_PUT_OFF, 0},
    {"destroy_super_work", PK_FN_PUT_OFF, 0},
    {"mmdrop_async_fn", PK_FN_PUT_OFF, 0},
    {"bpf_prog_free_deferred", PK_FN_PUT_OFF, 0},
    {"bpf_map_free_deferred", PK_FN_PUT_OFF, 0},
    {"__netif_receive_skb_core", PK_FN_RECEIVE, 0},
    {"__netif_receive_skb_one_core", PK_FN_RECEIVE, 0},
    {"__netif_receive_skb_list_core", PK_FN_RECEIVE, 1},
    {"packet_rcv", PK_FN_TAP, 0},
    {"packet_rcv_fanout", PK_FN_TAP, 0},
    {"packet_rcv_spkt", PK_FN_TAP, 0},
    {"tpacket_rcv", PK_FN_TAP, 0},
    {"udp_queue_rcv_skb", PK_FN_DELIVER, 0},
    {"udpv6_queue_rcv_skb", PK_FN_DELIVER, 0},
    {"udp_queue_rcv_one_skb", PK_FN_DELIVER, 0},
    {"udpv6_queue_rcv_one_skb", PK_FN_DELIVER, 0},
    {"sock_def_readable", PK_FN_NAMED, 0},
    {"tcp_rcv_established", PK_FN_NAMED, 0},
    {"bpf_trace_run1", PK_FN_HOOK, 0},  // by how many arguments the tracepoint has
    {"bpf_trace_run2", PK_FN_HOOK, 0},
    {"process_backlog", PK_FN_BACKLOG, 0},
    {"net_rps_send_ipi", PK_FN_STEER, 0},
    {"net_rps_action_and_irq_enable", PK_FN_STEER, 0},
    {"skb_defer_free_flush", PK_FN_FREE, 0},
    {"napi_gro_receive", PK_FN_HANDOVER, 0},
    {"gro_receive_skb", PK_FN_HANDOVER, 0},  // in 6.18
    {"raw_rcv", PK_FN_DELIVER, 0},
    {"rawv6_rcv", PK_FN_DELIVER, 0},
    {"__dev_queue_xmit", PK_FN_TRANSMIT, 0},
    {"sch_direct_xmit", PK_FN_TRANSMIT, 0},
    {"__qdisc_run", PK_FN_QDISC, 0},
    {"tcp_write_timer", PK_FN_TIMER, PK_TIMER_RETRANSMIT},
    {"tcp_delack_timer", PK_FN_TIMER, PK_TIMER_DELACK},
    {"tcp_keepalive_timer", PK_FN_TIMER, PK_TIMER_KEEPALIVE},
    {"tcp_pace_kick", PK_FN_TIMER, PK_TIMER_PACING},
    {"tcp_compressed_ack_kick", PK_FN_TIMER, PK_TIMER_COMPRESSED_ACK},
    {"reqsk_timer_handler", PK_FN_TIMER, PK_TIMER_REQUEST},
    {"tcp_tsq_handler", PK_FN_SEND, 0},
    {"tcp_tsq_workfn", PK_FN_SEND, 0},
    {"tcp_tasklet_func", PK_FN_SEND, 0},
};

struct Address {
  const char* name;
  pk_known which;
};

// Of two names for one thing that a kernel both has, the last is the one.
constexpr Address known_addresses[] = {
    {"process_timeout", PK_KNOWN_PROCESS_TIMEOUT},
    {"loop_rootcg_workfn", PK_KNOWN_LOOP_ROOT},
    {"loop_workfn", PK_KNOWN_LOOP},
    {"sched_ttwu_pending", PK_KNOWN_WAKE},
    {"kthread_worker_fn", PK_KNOWN_KTHREAD_WORKER},
    {"kjournald2", PK_KNOWN_JOURNAL},
    {"kswapd", PK_KNOWN_KSWAPD},
    {"kcompactd", PK_KNOWN_KCOMPACTD},
    {"khugepaged", PK_KNOWN_KHUGEPAGED},
    {"oom_reaper", PK_KNOWN_OOM_REAPER},
    {"rcu_nocb_cb_kthread", PK_KNOWN_RCU_OFFLOADED},
    {"hrtimer_wakeup", PK_KNOWN_WAKEUP},
    {"tick_nohz_handler", PK_KNOWN_TICK},  // in 6.9; before, what a clock without hrtimers calls
    {"tick_sched_timer", PK_KNOWN_TICK},
    {"perf_swevent_hrtimer", PK_KNOWN_PERF_CLOCK},
    {"sched_cfs_period_timer", PK_KNOWN_QUOTA},
    {"sched_cfs_slack_timer", PK_KNOWN_QUOTA_SLACK},
    {"dl_task_timer", PK_KNOWN_DEADLINE},
    {"hrtick", PK_KNOWN_SLICE},
    {"wq_barrier_func", PK_KNOWN_BARRIER},
    {"rps_trigger_softirq", PK_KNOWN_STEER},
    {"trigger_rx_softirq", PK_KNOWN_STEER_BACK},
    {"blk_mq_run_work_fn", PK_KNOWN_RUN_QUEUE},
    {"psi_avgs_work", PK_KNOWN_PRESSURE},
    {"return_to_handler", PK_KNOWN_RETURN_TRACED},
    {"__kretprobe_trampoline", PK_KNOWN_RETURN_PROBED},
    {"arch_rethook_trampoline", PK_KNOWN_RETURN_PROBED},
    {"_stext", PK_KNOWN_TEXT},
    {"_etext", PK_KNOWN_TEXT_END},
};

constexpr Address known_marks[] = {
    {"__start_orc_unwind_ip", PK_KNOWN_ORC_ADDRESSES},
    {"__start_orc_unwind", PK_KNOWN_ORC},
    {"__stop_orc_unwind", PK_KNOWN_ORC_END},
};

}  // namespace

KnownFunctions find_functions(const KernelSymbols& symbols) {
  KnownFunctions table;
  bool found[PK_FN_CLASSES] = {};
  std::unordered_map<std::string_view, const Known*> known;
  for (const Known& k : known_functions) known.emplace(k.name, &k);
  uint64_t addresses[std::size(known_addresses)] = {};
  std::unordered_map<std::string_view, size_t> named;  // their places there
  for (size_t i = 0; i < std::size(known_addresses); ++i) named.emplace(known_addresses[i].name, i);
  for (const KernelSymbol& s : symbols.all()) {
    if (const auto it = named.find(s.name); it != named.end()) addresses[it->second] = s.start;
    const auto it = known.find(s.name.substr(0, s.name.find('.')));
    if (it == known.end() || s.name.starts_with("__pfx_")) continue;
    table.entries.push_back({s.start, s.end, it->second->class_, it->second->arg});
    found[it->second->class_] = true;
    if (it->second->class_ == PK_FN_TIMER && s.name == it->first)
      table.timers[it->second->arg] = s.start;
  }
  for (size_t i = 0; i < std::size(known_addresses); ++i)
    if (addresses[i]) table.known[known_addresses[i].which] = addresses[i];
  for (const Address& mark : known_marks) table.known[mark.which] = symbols.mark(mark.name);
  std::sort(table.entries.begin(), table.entries.end(),
            [](const pk_function& a, const pk_function& b) { return a.start < b.start; });
  // Entry 0 stays below every address, so that the search always stands on an entry.
  table.entries.insert(table.entries.begin(), pk_function{});
  if (table.entries.size() > PK_FUNCTIONS) {
    table.missing.push_back(std::to_string(table.entries.size() - PK_FUNCTIONS) +
                            " functions that there is no room for");
    table.entries.resize(PK_FUNCTIONS);
  }
  if (!found[PK_FN_SOFTIRQ]) table.missing.emplace_back("the softirq loop");
  if (!found[PK_FN_RECEIVE]) table.missing.emplace_back("packet reception");
  if (!found[PK_FN_TRANSMIT]) table.missing.emplace_back("packet transmission");
  return table;
}

}  // namespace pkprof
