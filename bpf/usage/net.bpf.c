// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Networks: packets as devices send and receive them. Of those that come, one that is kept is put on its
 * own account, as a sample in the middle of it would be: whoever takes what it brings is charged. One that
 * is sent is its sender's. Bytes and packets are kept apart, each in proportion: both add up to all.
 */
#include "core/hook.bpf.h"
#include "net/cpu_account.bpf.h"
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
	kept->packets = pk_stands_for(&of->packets.at, &of->packets.pace, 1, 1);
	kept->bytes = pk_stands_for(&of->bytes.at, &of->bytes.pace, length, 1);
	return unlikely(kept->packets | kept->bytes);
}

struct peers_map {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1); /* PK_PEERS where it is wanted */
	__type(key, __u64);
	__type(value, struct pk_peer);
};

struct peers_map peers SEC(".maps");

enum { PK_SALT_PEER = 0x7065, PK_V4_SOURCE = 12, PK_V4_DEST = 16, PK_V6_SOURCE = 8, PK_V6_DEST = 24 };

/* The number of whoever is at the other end of a packet whose network header begins here; 0: not known. */
static __noinline __u64 pk_peer_of(__u64 header, __u32 protocol, __u32 sent)
{
	struct pk_peer peer = {};
	__u64 number;

	if (protocol == bpf_htons(ETH_P_IP)) {
		peer.family = AF_INET;
		if (bpf_probe_read_kernel(peer.address, 4, (void *)header + (sent ? PK_V4_DEST : PK_V4_SOURCE)))
			return 0;
	} else if (protocol == bpf_htons(ETH_P_IPV6)) {
		peer.family = AF_INET6;
		if (bpf_probe_read_kernel(peer.address, 16, (void *)header + (sent ? PK_V6_DEST : PK_V6_SOURCE)))
			return 0;
	} else {
		return 0;
	}
	number = mix(mix(config.seed ^ PK_SALT_PEER, (__u64)peer.address[0] << 32 | peer.address[1]),
		     (__u64)peer.address[2] << 32 | peer.address[3]) | 1;
	if (!bpf_map_lookup_elem(&peers, &number))
		bpf_map_update_elem(&peers, &number, &peer, BPF_ANY);
	return number;
}

static __always_inline __u64 pk_network_header(struct sk_buff *skb)
{
	return (__u64)skb->head + skb->network_header;
}

static __always_inline __u64 pk_interface_of(struct sk_buff *skb)
{
	struct net_device *dev = skb->dev;

	return dev ? (__u32)dev->ifindex : 0;
}

static __noinline int pk_net_came(struct pk_cpu *c, __u64 skb, __u64 interface, __u64 peer,
				  struct pk_packets *kept)
{
	struct pk_packet_info *info = pk_info(c);
	struct pk_charge charge = {
		.ran_on = peer,
		.kstack = interface,
		.kind = PK_USAGE,
		.vec = PK_NET_RECEIVED,
	};

	if (!c || !info || !kept)
		return 0;
	charge.ns = kept->bytes;
	charge.samples = kept->packets;
	pk_parse_packet(skb, true, info);
	charge.reason = info->reason;
	return pk_hash(c, pk_packet_object(skb, info), &charge);
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
	return pk_net_came(c, pk_plain(c, skb), pk_interface_of(skb),
			   pk_peer_of((__u64)skb->data, skb->protocol, false), &kept);
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

	if (!started || !pk_keeps_packet(&c->usage.sent, skb->len, &kept))
		return 0;
	peer = pk_peer_of(pk_network_header(skb), skb->protocol, true);
	if (sk && !pk_in_interrupt(c) && !(bpf_get_current_task_btf()->flags & PF_KTHREAD))
		return pk_used_with(c, PK_NET_SENT, pk_interface_of(skb), peer, kept.bytes, kept.packets,
				    pk_current_label(c, bpf_get_current_task_btf()), PK_BASIS_OWN);
	return pk_net_used(c, PK_NET_SENT, pk_plain(c, sk), PK_FORWARDED, pk_interface_of(skb), peer,
			   kept.bytes, kept.packets);
}

SEC("?tp_btf/tcp_retransmit_skb")
int BPF_PROG(pk_net_goes_again, struct sock *sk, struct sk_buff *skb)
{
	struct pk_cpu *c = pk_hook(PK_HOOKS_USAGE);

	if (!started)
		return 0;
	return pk_net_used(c, PK_NET_RESENT, pk_plain(c, sk), PK_EXPIRED, 0, 0, skb->len, 1);
}

static __always_inline int pk_net_lost(struct pk_cpu *c, struct sk_buff *skb, int reason, void *sk)
{
	struct pk_packets kept;

	if (!started || !skb->dev || reason == pk_drop_reason_none() ||
	    !pk_keeps_packet(&c->usage.dropped, skb->len, &kept))
		return 0;
	return pk_net_used(c, PK_NET_DROPPED, pk_plain(c, sk), PK_DROPPED, pk_interface_of(skb), 0,
			   kept.bytes, kept.packets);
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
