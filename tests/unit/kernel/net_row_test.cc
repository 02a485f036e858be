// SPDX-License-Identifier: Apache-2.0
// Where in the network's work a sample fell, by stacks as Linux 6.18 has them: those in receiving
// were recorded, the others are put together from its sources.
#include <linux/types.h>

#include "pkprof/net_row.h"

#include <gtest/gtest.h>

#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "probe/functions.h"

namespace pkprof {
namespace {

// "handle_softirqs;net_rx_action;…", the leaf last.
std::vector<std::string> frames_of(const std::string& stack) {
  std::vector<std::string> frames;
  std::istringstream in(stack);
  for (std::string frame; std::getline(in, frame, ';');) frames.push_back(frame);
  return frames;
}

// As the sampler reads it (bpf/stack/place.bpf.h), from what pkprof knows of functions by name.
pk_net_seen seen_at(const std::string& stack) {
  std::map<std::string, uint64_t> addresses;
  std::string kallsyms;
  for (const std::string& frame : frames_of(stack)) {
    if (addresses.contains(frame)) continue;
    const uint64_t address = 0xffffffff81000000 + 0x1000 * addresses.size();
    addresses[frame] = address;
    std::ostringstream line;
    line << std::hex << address << " T " << frame << "\n";
    kallsyms += line.str();
  }
  kallsyms += "fffffffff0000000 T last\n";
  const auto symbols = KernelSymbols::parse(kallsyms);
  const KnownFunctions known = find_functions(*symbols);
  pk_net_seen seen{};
  seen.vec = PK_VEC_NONE;
  for (const auto& [name, address] : addresses) {
    for (const pk_function& f : known.entries) {
      if (f.start != address) continue;
      if (f.class_ == PK_FN_ACTION)
        seen.vec = static_cast<uint8_t>(f.arg);
      else
        seen.at |= 1U << f.class_;
      if (f.class_ == PK_FN_ACTION && f.arg == PK_VEC_NET_TX) seen.at |= PK_AT_QDISC;
    }
  }
  return seen;
}

constexpr const char* in_receiving =
    "handle_softirqs;net_rx_action;__napi_poll;process_backlog;__netif_receive_skb_one_core;"
    "ip_local_deliver_finish;ip_protocol_deliver_rcu;tcp_v4_rcv;tcp_v4_do_rcv;tcp_rcv_established;"
    "tcp_ack";
constexpr const char* in_answering =
    "handle_softirqs;net_rx_action;__napi_poll;process_backlog;__netif_receive_skb_one_core;"
    "ip_local_deliver_finish;ip_protocol_deliver_rcu;tcp_v4_rcv;tcp_v4_do_rcv;tcp_rcv_established;"
    "__tcp_push_pending_frames;tcp_write_xmit;__tcp_transmit_skb;__ip_queue_xmit;ip_output;"
    "ip_finish_output2;__dev_queue_xmit;dev_hard_start_xmit";
constexpr const char* before_packets =
    "handle_softirqs;net_rx_action;__napi_poll;process_backlog;_raw_spin_unlock_irq";
constexpr const char* in_retransmitting =
    "handle_softirqs;run_timer_softirq;call_timer_fn;tcp_write_timer;tcp_write_timer_handler;"
    "tcp_retransmit_timer;__tcp_retransmit_skb;__dev_queue_xmit";
constexpr const char* in_a_queue = "handle_softirqs;net_tx_action;__qdisc_run;dequeue_skb";
constexpr const char* on_its_way_out =
    "handle_softirqs;net_tx_action;__qdisc_run;sch_direct_xmit;dev_hard_start_xmit;veth_xmit";
constexpr const char* in_steering =
    "handle_softirqs;net_rx_action;net_rps_send_ipi;smp_call_function_single_async";
constexpr const char* in_taking_over =
    "handle_softirqs;net_rx_action;__napi_poll;veth_poll;veth_xdp_rcv;napi_gro_receive;"
    "dev_gro_receive";
constexpr const char* in_tasklets = "handle_softirqs;tasklet_action;tasklet_action_common";
constexpr const char* in_hrtimers = "handle_softirqs;hrtimer_run_softirq;__hrtimer_run_queues";
constexpr const char* in_the_loop = "handle_softirqs";

struct ExpectedRow {
  const char* stack;
  bool sent;      // the packet that was sent last has a socket
  bool received;  // a driver has handed over a packet
  pk_net_row row;
  pk_net_row while_sending_rests;
};

TEST(NetRow, IsTheOneOfTheTable) {
  const std::vector<ExpectedRow> rows = {
      {in_receiving, true, true, PK_NET_PACKET, PK_NET_PACKET},
      {in_answering, true, true, PK_NET_PACKET, PK_NET_PACKET},
      {before_packets, false, false, PK_NET_OUTSIDE, PK_NET_OUTSIDE},
      {in_retransmitting, true, true, PK_NET_TIMER, PK_NET_TIMER},
      {in_a_queue, true, true, PK_NET_SEND, PK_NET_UNWATCHED},
      {on_its_way_out, true, false, PK_NET_TRANSMIT, PK_NET_UNWATCHED},
      {on_its_way_out, false, true, PK_NET_FORWARDED, PK_NET_UNWATCHED},
      {in_steering, true, true, PK_NET_STEER_SENT, PK_NET_UNWATCHED},
      {in_steering, false, true, PK_NET_STEER_PASSED, PK_NET_UNWATCHED},
      {in_steering, false, false, PK_NET_OUTSIDE, PK_NET_UNWATCHED},
      {in_taking_over, false, true, PK_NET_HANDOVER, PK_NET_HANDOVER},
      {in_taking_over, true, true, PK_NET_OUTSIDE, PK_NET_OUTSIDE},
      {in_tasklets, true, false, PK_NET_TASKLETS, PK_NET_UNWATCHED},
      {in_hrtimers, true, false, PK_NET_HRTIMERS, PK_NET_UNWATCHED},
      {in_the_loop, true, true, PK_NET_LOOP, PK_NET_LOOP},
  };
  for (const ExpectedRow& row : rows) {
    pk_net_seen seen = seen_at(row.stack);
    seen.sent = row.sent;
    seen.received = row.received;
    EXPECT_EQ(pk_net_row_of(&seen), row.row) << row.stack;
    seen.resting = PK_REST_PACKETS | PK_REST_TAKING;
    EXPECT_EQ(pk_net_row_of(&seen), row.row) << row.stack;
    seen.resting = PK_REST_SENDING;
    EXPECT_EQ(pk_net_row_of(&seen), row.while_sending_rests) << row.stack;
  }
}

// What a task's own sending raised is the task's, also while no hook says what it sent.
TEST(NetRow, AtTheEndOfATasksSendingSteeringIsItsOwn) {
  pk_net_seen seen = seen_at(in_steering);
  seen.inline_send = true;
  EXPECT_FALSE(pk_net_needs_sending(&seen));
  seen.resting = PK_REST_SENDING;
  EXPECT_EQ(pk_net_row_of(&seen), PK_NET_STEER_OWN);
}

}  // namespace
}  // namespace pkprof
