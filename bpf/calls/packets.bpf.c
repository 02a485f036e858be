// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Whom calls in the network's softirqs are for. The rules are those of samples
 * (net/cpu_account.bpf.h), but for what a sample reads off its stack:
 *
 *   in a packet                          the socket that a hook names; failing that, by its headers
 *   after it, before the next begins     the same
 *   before the first                     as for that one; if none comes, by votes
 *   a packet for several receivers       the first, up to where it is delivered to the next
 *
 * Each program stands beside one in net/, on the same tracepoint, and needs nothing of it.
 */
#include "calls/settle.bpf.h"

#include "core/hook.bpf.h"
#include "who/object.bpf.h"
#include "who/party.bpf.h"
#include "who/socket.bpf.h"

#include <bpf/bpf_tracing.h>

/* A packet is received. */
static __noinline int pk_calls_of_packet(struct pk_cpu *c, __u64 skb)
{
	struct pk_waiting_calls *p = pk_calls_waiting_here();
	struct pk_packet_info *info;
	__u32 next;

	if (!c || !p)
		return 0;
	info = pk_info(c);
	pk_parse_packet(skb, true, info);
	/* The same again: decapsulated, or up from a bridge; or the next fragment. */
	if (p->packet && p->packet != skb && !(p->datagram && p->datagram == info->datagram) &&
	    !c->calls.party) {
		next = p->next == PK_NO_CALL ? p->end : p->next;
		if (p->start < next)
			pk_calls_by_headers(c, next);
	}
	p->next = PK_NO_CALL;
	p->packet = skb;
	p->datagram = info->datagram;
	p->object = info->object;
	p->listener = info->waits ? info->listener : 0;
	p->reason = info->reason;
	p->shared = info->shared;
	c->calls.party = 0;
	return 0;
}

SEC("?tp_btf/netif_receive_skb")
int BPF_PROG(pk_calls_packet, struct sk_buff *skb)
{
	struct pk_cpu *c = pk_hook(PK_HOOKS_CALLS);

	return c->calls.vec ? pk_calls_of_packet(c, pk_plain(c, skb)) : 0;
}

/* It turned out to be for this socket. */
static __noinline int pk_calls_of_socket(struct pk_cpu *c, __u64 skp)
{
	struct pk_waiting_calls *p = pk_calls_waiting_here();
	__u64 object;

	if (!c || !p)
		return 0;
	/* A sniffer looks on. A handshake is for who will have the connection: by its headers. */
	if (BPF_CORE_READ((struct sock *)skp, __sk_common.skc_family) == AF_PACKET ||
	    pk_sock_listens(skp))
		return 0;
	object = pk_net_socket(c, skp);
	pk_vote(c, pk_network_object(), object, 1, PK_VOTE_FADES);
	return pk_calls_are_for(c, object, PK_CALL_HOW(PK_BASIS_OWNER, PK_EXPIRED));
}

static __always_inline int pk_calls_at_socket(struct sock *sk)
{
	struct pk_cpu *c = pk_hook(PK_HOOKS_CALLS);

	return c->calls.vec ? pk_calls_of_socket(c, pk_plain(c, sk)) : 0;
}

/* Of a tun device's own socket, see pk_data_ready() in net/receive.bpf.c. */
static __always_inline int pk_calls_data_ready(struct sock *sk)
{
	return sk->__sk_common.skc_family == AF_UNSPEC ? 0 : pk_calls_at_socket(sk);
}

SEC("?tp_btf/sk_data_ready")
int BPF_PROG(pk_calls_sk_data_ready, struct sock *sk)
{
	return pk_calls_data_ready(sk);
}

SEC("?fentry/sock_def_readable")
int BPF_PROG(pk_calls_sock_def_readable, struct sock *sk)
{
	return pk_calls_data_ready(sk);
}

SEC("?tp_btf/tcp_probe")
int BPF_PROG(pk_calls_tcp_probe, struct sock *sk)
{
	return pk_calls_at_socket(sk);
}

SEC("?tp_btf/inet_sock_set_state")
int BPF_PROG(pk_calls_set_state, struct sock *sk)
{
	return pk_calls_at_socket(sk);
}

/* It is sent on. */
static __noinline int pk_calls_of_sending(struct pk_cpu *c, __u64 skb, __u64 sk)
{
	struct pk_waiting_calls *p = pk_calls_waiting_here();

	if (!c || !p || c->calls.party)
		return 0;
	if (sk && !pk_sock_of_kernel(sk))
		return pk_calls_are_for(c, pk_net_socket(c, sk),
					PK_CALL_HOW(PK_BASIS_OWNER, PK_EXPIRED));
	if (!sk && p->packet == skb) {
		p->object = 0;
		p->reason = PK_FORWARDED;
	}
	return 0;
}

static __always_inline int pk_calls_at_sending(struct sk_buff *skb)
{
	struct pk_cpu *c = pk_hook(PK_HOOKS_CALLS);
	__u64 sk;

	if (!c->calls.vec)
		return 0;
	sk = pk_plain(c, skb->sk);
	return pk_calls_of_sending(c, pk_plain(c, skb), sk);
}

SEC("?tp_btf/net_dev_queue")
int BPF_PROG(pk_calls_dev_queue, struct sk_buff *skb)
{
	return pk_calls_at_sending(skb);
}

SEC("?tp_btf/qdisc_dequeue")
int BPF_PROG(pk_calls_dequeue, void *qdisc, void *txq, int packets, struct sk_buff *skb)
{
	return skb ? pk_calls_at_sending(skb) : 0;
}

/* It is thrown away. */
static __noinline int pk_calls_of_drop(struct pk_cpu *c, __u64 skb, __u64 rx_sk)
{
	struct pk_waiting_calls *p = pk_calls_waiting_here();

	if (!c || !p || c->calls.party || p->packet != skb)
		return 0;
	if (rx_sk) /* its buffer is full: still work for it */
		return pk_calls_are_for(c, pk_sock_object(rx_sk),
					PK_CALL_HOW(PK_BASIS_OWNER, PK_EXPIRED));
	/* The last segments of a connection end here too: its owner is known. */
	if (!p->object || !bpf_map_lookup_elem(&owners, &p->object)) {
		p->object = 0;
		if (p->reason == PK_EXPIRED)
			p->reason = PK_DROPPED;
	}
	return 0;
}

static __always_inline int pk_calls_at_drop(struct sk_buff *skb, void *rx_sk)
{
	struct pk_cpu *c = pk_hook(PK_HOOKS_CALLS);
	__u64 sk;

	if (!c->calls.vec)
		return 0;
	sk = pk_plain(c, rx_sk);
	return pk_calls_of_drop(c, pk_plain(c, skb), sk);
}

SEC("?tp_btf/kfree_skb")
int BPF_PROG(pk_calls_drop, struct sk_buff *skb)
{
	return pk_calls_at_drop(skb, NULL);
}

SEC("?tp_btf/kfree_skb")
int BPF_PROG(pk_calls_drop_rx, struct sk_buff *skb, void *location, int reason, struct sock *rx_sk)
{
	return pk_calls_at_drop(skb, rx_sk);
}
