// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The network's hooks on the way out: a packet goes to a queue, and leaves it. */
#include "clients/message.bpf.h"
#include "core/hook.bpf.h"
#include "net/cpu_account.bpf.h"
#include "net/take.bpf.h"
#include "who/socket.bpf.h"

#include <bpf/bpf_tracing.h>

/*
 * While a received packet is at hand this socket sends. One that the packet is not addressed to has its
 * turn after it, in another softirq of the same run: its socket was in a process's hands, and put the
 * packet aside.
 */
static __always_inline void pk_settle_sending(struct pk_cpu *c, __u64 object)
{
	if (c->wait.waits && object != *(volatile __u64 *)&c->wait.object)
		pk_net_close(c);
	else
		pk_net_settle(c, object);
}

static __noinline int pk_queue_slow(struct pk_cpu *c, __u64 skb, __u64 sk)
{
	struct pk_packet_info *info = pk_info(c);

	if (!c || !pk_enter(c))
		return 0;
	if (!pk_same_run(c)) {
		pk_net_close(c);
		goto out;
	}
	if (sk && pk_sock_of_kernel(sk))
		goto out;
	switch (c->hot.armed) {
	case PK_PHASE_PACKET:
		if (sk) {
			pk_settle_sending(c, pk_net_socket(c, sk));
		} else if (skb == c->wait.packet) {
			/* Its receiver may be on this machine: then it brings the account there. */
			pk_parse_packet(skb, false, info);
			c->wait.charge.reason = PK_FORWARDED;
			c->stats.needed_packets++;
			pk_net_settle(c, pk_packet_object(skb, info));
		}
		break;
	case PK_PHASE_TRANSMIT:
	case PK_PHASE_ENTRY:
		if (sk) {
			pk_net_settle(c, pk_net_socket(c, sk));
		} else if (c->hot.armed == PK_PHASE_TRANSMIT) {
			pk_charge_nobody(c, &c->wait.charge, PK_FORWARDED);
			c->hot.armed = PK_PHASE_NONE;
		}
		break;
	}
out:
	pk_leave(c);
	return 0;
}

SEC("?tp_btf/net_dev_queue")
int BPF_PROG(pk_net_dev_queue, struct sk_buff *skb)
{
	struct pk_cpu *c = pk_hook(PK_HOOKS_WORK);
	struct sock *sk = skb->sk;

	c->hot.tx_sk = (__u64)sk;
	c->hot.sent = 1;
	if (config.clients && sk)
		pk_client_queues(c, sk, skb);
	if (unlikely(c->hot.armed))
		return pk_queue_slow(c, pk_plain(c, skb), *(volatile __u64 *)&c->hot.tx_sk);
	/* A process that sends takes what was done for its socket: acknowledgements, windows. */
	if (!sk || likely(!pk_may_have_account(c, sk)))
		return 0;
	/* A kernel thread may be a network device's, at work on others' packets. */
	if (bpf_get_current_task_btf()->flags & PF_KTHREAD ||
	    (sk->sk_protocol == IPPROTO_TCP && !pk_is_used(sk)))
		return 0;
	return pk_socket_taken(c, ctx, sk);
}

SEC("?tp_btf/qdisc_dequeue")
int BPF_PROG(pk_qdisc_dequeue, void *qdisc, void *txq, int packets, struct sk_buff *skb)
{
	struct pk_cpu *c = pk_hook(PK_HOOKS_WORK);

	if (!skb)
		return 0;
	c->hot.tx_sk = (__u64)skb->sk;
	c->hot.sent = 1;
	if (likely(!c->hot.armed))
		return 0;
	return pk_queue_slow(c, pk_plain(c, skb), *(volatile __u64 *)&c->hot.tx_sk);
}
