// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The network's hooks on the way in: a packet, the socket it turns out to be for, its end.
 */
#include "net/receive.bpf.h"

#include "clients/accept.bpf.h"
#include "core/hook.bpf.h"
#include "net/cpu_account.bpf.h"
#include "who/socket.bpf.h"

#include <bpf/bpf_tracing.h>

/* A driver hands over a packet: what the CPU did up to here was for this one. */
static __noinline int pk_handover_slow(struct pk_cpu *c, __u64 skb)
{
	struct pk_packet_info *info = pk_info(c);
	__u64 object;

	if (!c || !pk_enter(c))
		return 0;
	if (!pk_same_run(c)) {
		pk_net_close(c);
	} else if (c->hot.armed == PK_PHASE_BEFORE || c->hot.armed == PK_PHASE_ENTRY) {
		object = pk_handed_over(skb, info);
		if (!info->waits)
			c->stats.needed_packets++;
		if (info->waits || !(c->sampler.resting & PK_REST_PACKETS)) {
			c->wait.charge.vec = PK_VEC_NET_RX;
			c->wait.charge.reason = info->reason;
			pk_net_settle(c, object);
		}
	}
	pk_leave(c);
	return 0;
}

SEC("?tp_btf/napi_gro_receive_entry")
int BPF_PROG(pk_napi_gro_receive, struct sk_buff *skb)
{
	struct pk_cpu *c = pk_hook(PK_HOOKS_WORK);

	/* For telling another CPU of it (PK_AT_STEER): this packet, not one that was sent. */
	c->hot.tx_sk = 0;
	c->hot.skb = (__u64)skb;
	c->hot.dev = (__u64)skb->dev;
	if (likely(!c->hot.armed))
		return 0;
	return pk_handover_slow(c, pk_plain(c, skb));
}

/* The packet brought an account along from another CPU, or from its driver. */
static __always_inline void pk_carry(struct pk_cpu *c, __u64 skb, __u64 object,
				     struct pk_packet_info *info)
{
	if (!c->hot.armed) {
		c->wait.charge.samples = 0;
		c->wait.charge.vec = PK_VEC_NET_RX;
		c->wait.task = bpf_get_current_task();
		c->wait.runs = pk_serving_softirq(c) == 1 ? pk_softirq_runs(c, PK_VEC_NET_RX) :
						       PK_RUNS_UNKNOWN;
		c->wait.receivers = 0;
		c->wait.tap = 0;
		pk_net_at_packet(c, skb, info);
		c->hot.armed = PK_PHASE_PACKET;
	}
	c->wait.carried = object;
}

static __noinline int pk_receive_slow(struct pk_cpu *c, __u64 skb)
{
	struct pk_packet_info *info = pk_info(c);
	__u64 object;

	if (!c || !pk_enter(c))
		return 0;
	pk_parse_packet(skb, true, info);
	if (!c->hot.armed) {
		/* only the packet's own account, below */
	} else if (!pk_same_run(c)) {
		pk_net_close(c);
	} else if (c->hot.armed == PK_PHASE_BEFORE || c->hot.armed == PK_PHASE_ENTRY) {
		c->wait.charge.vec = PK_VEC_NET_RX;
		if (c->wait.runs != PK_RUNS_UNKNOWN)
			c->wait.runs = pk_softirq_runs(c, PK_VEC_NET_RX);
		pk_net_at_packet(c, skb, info);
		c->hot.armed = PK_PHASE_PACKET;
	} else if (c->hot.armed == PK_PHASE_PACKET) {
		/* The same again: decapsulated, or up from a bridge; or the next fragment. */
		if (c->wait.packet == skb || (c->wait.datagram && c->wait.datagram == info->datagram))
			pk_net_at_packet(c, skb, info);
		else
			pk_net_close(c); /* that packet is done */
	}
	object = pk_packet_object(skb, info);
	if (pk_on_account(object))
		pk_carry(c, skb, object, info);
	pk_leave(c);
	return 0;
}

SEC("?tp_btf/netif_receive_skb")
int BPF_PROG(pk_netif_receive_skb, struct sk_buff *skb)
{
	struct pk_cpu *c = pk_hook(PK_HOOKS_WORK);
	__u64 plain;

	c->hot.sk = 0;
	c->hot.sent = 0;
	c->hot.skb = (__u64)skb;
	c->hot.dev = (__u64)skb->dev;
	c->hot.from = (__u64)skb->sk;
	plain = *(volatile __u64 *)&c->hot.skb;
	if (likely(!c->hot.armed && !slot_tags[pk_slot_of(plain >> 6) & (PK_SLOTS - 1)]))
		return 0;
	return pk_receive_slow(c, plain);
}

/* One of several. There is room for a few: of more, each is among them with the same chance. */
static __always_inline void pk_net_receiver(struct pk_cpu *c, __u64 object)
{
	__u32 n = c->wait.receivers++, at = n;

	if (n >= PK_RECEIVERS)
		at = bpf_get_prandom_u32() % (n + 1);
	if (at < PK_RECEIVERS)
		c->wait.sockets[at & (PK_RECEIVERS - 1)] = object;
}

int pk_socket_slow(struct pk_cpu *c, __u64 sk)
{
	bool packet_socket;
	__u64 object;

	if (!c || !pk_enter(c))
		return 0;
	if (!pk_same_run(c)) {
		pk_net_close(c);
		goto out;
	}
	if (c->hot.armed == PK_PHASE_TRANSMIT)
		goto out;
	packet_socket = BPF_CORE_READ((struct sock *)sk, __sk_common.skc_family) == AF_PACKET;
	if (packet_socket && !c->wait.tap) {
		/* It looks on; what it looks at is for someone else, unless nobody has it. */
		if (!c->wait.object && c->wait.charge.reason == PK_PROTOCOL) {
			c->wait.object = pk_sock_object(sk);
			c->wait.waits = 1;
		}
		goto out;
	}
	/* A handshake is for who will have the connection, and its packets name that. */
	c->wait.charge.vec = PK_VEC_NET_RX;
	if (pk_sock_listens(sk) && c->wait.object) {
		pk_net_close(c);
		goto out;
	}
	object = pk_net_socket(c, sk);
	if (c->wait.shared && !packet_socket) {
		pk_net_receiver(c, object);
		goto out;
	}
	pk_net_settle(c, object);
out:
	pk_leave(c);
	return 0;
}

/*
 * A tun device has a socket of its own, and says of a packet that it is to be read there. That packet
 * is on its way out: the one at hand may be what it answers.
 */
static __always_inline int pk_data_ready(struct sock *sk)
{
	struct pk_cpu *c = pk_hook(PK_HOOKS_WORK);

	if (config.clients) {
		pk_message_comes(c, sk);
		pk_connection_may_come(c, sk);
	}
	return sk->__sk_common.skc_family == AF_UNSPEC ? 0 : pk_socket_found(c, sk);
}

SEC("?tp_btf/sk_data_ready")
int BPF_PROG(pk_sk_data_ready, struct sock *sk)
{
	return pk_data_ready(sk);
}

/* Before there was a tracepoint: the function that nearly every socket has as sk_data_ready. */
SEC("?fentry/sock_def_readable")
int BPF_PROG(pk_sock_def_readable, struct sock *sk)
{
	return pk_data_ready(sk);
}

/* Every segment of an established connection, pure acknowledgements too. */
SEC("?tp_btf/tcp_probe")
int BPF_PROG(pk_tcp_probe, struct sock *sk)
{
	return pk_socket_found(pk_hook(PK_HOOKS_WORK), sk);
}

static __noinline int pk_drop_slow(struct pk_cpu *c, __u64 skb, __u64 rx_sk)
{
	struct pk_key nobody = {
		.served = PK_UNCLAIMED + PK_DROPPED,
		.basis = PK_BASIS_PROVISIONAL,
		.syscall = PK_NO_SYSCALL,
	};
	struct pk_packet_info *info = pk_info(c);
	__u64 *owner, object;
	bool first;

	if (!c || !pk_enter(c))
		return 0;
	/* While no hook says which packet it is: one that got to a socket is the one that was waited for. */
	first = rx_sk && c->sampler.resting & PK_REST_PACKETS && !c->wait.packet &&
		(c->hot.armed == PK_PHASE_BEFORE || c->hot.armed == PK_PHASE_ENTRY ||
		 c->hot.armed == PK_PHASE_PACKET);
	if (!c->hot.armed || (c->wait.packet != skb && !first)) {
		/* Thrown away before it was processed: what it carried is for nobody. */
		pk_parse_packet(skb, false, info);
		object = pk_packet_object(skb, info);
		if (pk_on_account(object))
			pk_attribute(c, object, &nobody);
	} else if (!pk_same_run(c)) {
		pk_net_close(c);
	} else if (c->hot.armed == PK_PHASE_PACKET || first) {
		if (rx_sk) {
			/* Thrown away at a socket (its buffer is full): still work for it. */
			pk_net_settle(c, pk_sock_object(rx_sk));
		} else if (c->wait.receivers) {
			pk_net_close(c);
		} else {
			/* The last segments of a connection end here too: its owner is known. */
			owner = c->wait.object ? bpf_map_lookup_elem(&owners, &c->wait.object) : NULL;
			if (!owner) {
				c->wait.object = 0;
				if (c->wait.charge.reason == PK_EXPIRED)
					c->wait.charge.reason = PK_DROPPED;
			}
			pk_net_close(c);
		}
	}
	pk_leave(c);
	return 0;
}

static __always_inline int pk_packet_dropped(struct pk_cpu *c, struct sk_buff *skb, void *rx_sk)
{
	__u64 plain = pk_plain(c, skb);

	if (likely(!c->hot.armed && !slot_tags[pk_slot_of(plain >> 6) & (PK_SLOTS - 1)]))
		return 0;
	return pk_drop_slow(c, plain, pk_plain(c, rx_sk));
}

SEC("?tp_btf/kfree_skb")
int BPF_PROG(pk_kfree_skb, struct sk_buff *skb)
{
	return pk_packet_dropped(pk_hook(PK_HOOKS_WORK), skb, NULL);
}

SEC("?tp_btf/kfree_skb")
int BPF_PROG(pk_kfree_skb_rx, struct sk_buff *skb, void *location, int reason, struct sock *rx_sk)
{
	return pk_packet_dropped(pk_hook(PK_HOOKS_WORK), skb, rx_sk);
}
