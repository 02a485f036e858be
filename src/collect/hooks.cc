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
constexpr const char* timers = "network: timers of sockets";

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
    {timers, "retransmission and pacing timers may stay unclaimed"},
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
    {"pk_timer_expire_exit", timers, "timer_expire_exit", 1, false, true, false},
    {"pk_hrtimer_expire_exit", timers, "hrtimer_expire_exit", 1, false, true, false},
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
