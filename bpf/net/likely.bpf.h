/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Which socket a sample is most likely for, where neither its stack nor a hook says. */
#ifndef PKPROF_NET_LIKELY_BPF_H
#define PKPROF_NET_LIKELY_BPF_H

#include "net/cpu_account.bpf.h"
#include "who/socket.bpf.h"

/*
 * Was this TCP socket's sending ever deferred to a softirq? Its node in the list of such sockets
 * then does not point to itself any more.
 */
static __always_inline bool pk_was_deferred(__u64 skp)
{
	struct sock *sk = (void *)skp;
	__u64 node = skp + bpf_core_field_offset(struct tcp_sock, tsq_node);
	__u8 state = BPF_CORE_READ(sk, __sk_common.skc_state);

	if (state == TCP_NEW_SYN_RECV || state == TCP_TIME_WAIT ||
	    BPF_CORE_READ(sk, sk_type) != SOCK_STREAM ||
	    BPF_CORE_READ(sk, sk_protocol) != IPPROTO_TCP)
		return false;
	return (__u64)BPF_CORE_READ((struct tcp_sock *)skp, tsq_node.next) != node;
}

/*
 * Sending deferred to a softirq sends nothing if its process holds the socket just then, or the
 * window is closed. Most likely it was for the socket of one of the packets that this CPU received
 * or sent last: a buffer of its was freed here, and that is what put it on the list. Failing
 * that, for the one that last did send so.
 */
static __noinline __u64 pk_deferred_sender(struct pk_cpu *c)
{
	if (!c)
		return 0;
	if (c->hot.from && pk_was_deferred(c->hot.from))
		return pk_sock_object(c->hot.from);
	if (c->hot.tx_sk && pk_was_deferred(c->hot.tx_sk))
		return pk_sock_object(c->hot.tx_sk);
	if (c->hot.sk && pk_was_deferred(c->hot.sk))
		return pk_sock_object(c->hot.sk);
	return c->sender;
}

/* For what the packet received last was: its socket, or else as its headers say. */
static __noinline int pk_as_last_received(struct pk_cpu *c)
{
	struct pk_packet_info *info;

	if (!c)
		return 0;
	c->wait.guess = 0;
	if (c->hot.sk && !pk_sock_listens(c->hot.sk)) {
		c->wait.object = pk_net_socket(c, c->hot.sk);
		c->wait.waits = 1;
		return 0;
	}
	info = pk_info(c);
	pk_parse_packet(c->hot.skb, false, info);
	c->wait.object = info->object;
	c->wait.listener = info->listener;
	c->wait.waits = info->waits;
	return 0;
}

/*
 * The sockets that samples have met by the port of UDP that their packets were addressed to. Several
 * may share a port; that one has it alone is believed if only that one is met, again and again.
 */
enum {
	PK_PORTS = 64,
	PK_ALONE = 8, /* met so often */
	PK_NOT_ALONE = -256, /* from here on if another was met */
};

static struct {
	__u64 object;
	__u64 sk;
	__s64 met;
} ports[PK_PORTS] = {};

static __always_inline bool pk_has_port_alone(__u64 object, __u64 sk)
{
	__u32 at = object >> 8 & (PK_PORTS - 1);
	__s64 met = 0;

	if (pk_sock_is_alone(sk))
		return true;
	if (ports[at].object == object) {
		met = ports[at].met;
		if (ports[at].sk != sk)
			met = PK_NOT_ALONE;
	}
	ports[at].object = object;
	ports[at].sk = sk;
	ports[at].met = met + (met < PK_ALONE);
	return met >= PK_ALONE;
}

#endif
