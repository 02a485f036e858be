// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Networks: packets as devices send and receive them. Of those that come, one that is kept is put on its
 * own account, as a sample in the middle of it would be: whoever takes what it brings is charged. One that
 * is sent is its sender's. Bytes and packets are kept apart, each in proportion: both add up to all.
 */
#include "core/hook.bpf.h"
#include "net/cpu_account.bpf.h"
#include "usage/peer.bpf.h"
#include "usage/usage.bpf.h"
#include "who/account.bpf.h"
#include "who/socket.bpf.h"

#include <bpf/bpf_tracing.h>

/* What a packet stands for. */
struct pk_packets {
	__u64 bytes;
	__u32 packets;
};

static __always_inline bool pk_keeps_packet(struct pk_cpu_packets *of, __u32 length, struct pk_packets *kept)
{
	kept->packets = pk_stands_for(&of->packets.at, &of->packets.pace, 1, 1, PK_PACKETS_EACH_SECOND);
	kept->bytes = pk_stands_for(&of->bytes.at, &of->bytes.pace, length, 1, PK_PACKETS_EACH_SECOND);
	return unlikely(kept->packets | kept->bytes);
}

static __always_inline __u64 pk_interface_of(struct sk_buff *skb)
{
	struct net_device *dev = skb->dev;

	return dev ? (__u32)dev->ifindex : 0;
}

static __noinline int pk_net_came(struct pk_cpu *c, __u64 skbp, __u64 interface, struct pk_packets *kept)
{
	struct pk_packet_info *info = pk_info(c);
	struct pk_charge charge = {
		.kstack = interface,
		.kind = PK_USAGE,
		.vec = PK_NET_RECEIVED,
	};

	if (!c || !info || !kept)
		return 0;
	charge.ns = kept->bytes;
	charge.samples = kept->packets;
	pk_parse_packet(skbp, true, info);
	charge.reason = info->reason;
	charge.ran_on = pk_peer_of_received(skbp, interface, info->waits ? info->object : 0);
	return pk_hash(c, pk_packet_object(skbp, info), &charge);
}

/* Before pk_netif_receive_skb, which looks whether there is an account. */
SEC("?tp_btf/netif_receive_skb")
int BPF_PROG(pk_net_comes, struct sk_buff *skb)
{
	struct pk_cpu *c = pk_hook(PK_HOOKS_USAGE);
	struct pk_packets kept;
	__u64 header;

	if (!started)
		return 0;
	header = (__u64)skb->data - (__u64)skb->head - skb->mac_header;
	if (!pk_keeps_packet(&c->usage.received, skb->len + (header < 256 ? header : 0), &kept))
		return 0;
	return pk_net_came(c, pk_plain(c, skb), pk_interface_of(skb), &kept);
}

/* By whoever owns the socket; 0: there is none, and `nobody` is why. */
static __always_inline int pk_net_used(struct pk_cpu *c, __u8 usage, __u64 sk, __u32 nobody, __u64 interface,
				       __u64 peer, __u64 bytes, __u32 packets)
{
	__u64 party = sk ? pk_net_socket(c, sk) : PK_UNCLAIMED + nobody;

	return pk_used_with(c, usage, interface, peer, bytes, packets, party, PK_BASIS_OWNER);
}

/* What a process sends in its own context is its own, whoever made the socket. */
SEC("?tp_btf/net_dev_queue")
int BPF_PROG(pk_net_goes, struct sk_buff *skb)
{
	struct pk_cpu *c = pk_hook(PK_HOOKS_USAGE);
	struct sock *sk = skb->sk;
	struct pk_packets kept;
	__u64 peer;
	bool own;

	if (!started || !pk_keeps_packet(&c->usage.sent, skb->len, &kept))
		return 0;
	own = sk && !pk_is_elsewhere(c);
	peer = pk_peer_of_sent(pk_plain(c, skb), pk_interface_of(skb), own);
	if (own)
		return pk_used_with(c, PK_NET_SENT, pk_interface_of(skb), peer, kept.bytes, kept.packets,
				    pk_current_label(c, bpf_get_current_task_btf()), PK_BASIS_OWN);
	return pk_net_used(c, PK_NET_SENT, pk_plain(c, sk), PK_FORWARDED, pk_interface_of(skb), peer,
			   kept.bytes, kept.packets);
}

SEC("?tp_btf/tcp_retransmit_skb")
int BPF_PROG(pk_net_goes_again, struct sock *sk, struct sk_buff *skb)
{
	struct pk_cpu *c = pk_hook(PK_HOOKS_USAGE);

	struct tcp_skb_cb *cb = (void *)skb + bpf_core_field_offset(struct sk_buff, cb);
	__u16 segments;

	if (!started)
		return 0;
	segments = BPF_CORE_READ(cb, tcp_gso_segs);
	return pk_net_used(c, PK_NET_RESENT, pk_plain(c, sk), PK_EXPIRED, 0,
			   pk_peer_of_socket(pk_plain(c, sk)), skb->len, segments ? segments : 1);
}

static __always_inline int pk_net_lost(struct pk_cpu *c, struct sk_buff *skb, int reason, void *sk)
{
	struct pk_packets kept;

	if (!started || !skb->dev || reason == pk_drop_reason_none() ||
	    !pk_keeps_packet(&c->usage.dropped, skb->len, &kept))
		return 0;
	return pk_net_used(c, PK_NET_DROPPED, pk_plain(c, sk), PK_DROPPED, pk_interface_of(skb),
			   sk ? pk_peer_of_socket(pk_plain(c, sk)) : 0, kept.bytes, kept.packets);
}

SEC("?tp_btf/kfree_skb")
int BPF_PROG(pk_net_drops_rx, struct sk_buff *skb, void *location, int reason, struct sock *rx_sk)
{
	return pk_net_lost(pk_hook(PK_HOOKS_USAGE), skb, reason, rx_sk);
}

SEC("?tp_btf/kfree_skb")
int BPF_PROG(pk_net_drops, struct sk_buff *skb, void *location, int reason)
{
	return pk_net_lost(pk_hook(PK_HOOKS_USAGE), skb, reason, skb->sk);
}
