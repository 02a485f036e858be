/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Who is at the other end of a packet: an address and, where it is on this machine, the socket that is
 * there. On loopback both ends' addresses and ports name a socket of TCP. A packet that comes from
 * another network namespace still has its sender's socket; which one is at the other end of a
 * connection is noted then, for what is sent the other way. Nothing is concluded from addresses that
 * are alike: two namespaces may have the same.
 */
#ifndef PKPROF_PEER_BPF_H
#define PKPROF_PEER_BPF_H

#include "process/served.bpf.h"
#include "who/object.bpf.h"

struct peers_map {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1); /* PK_PEERS where it is wanted */
	__type(key, __u64);
	__type(value, struct pk_peer);
};

struct peers_map peers SEC(".maps");

enum {
	PK_SALT_PEER = 0x7065,
	PK_LOOPBACK = 1, /* its number in each namespace: LOOPBACK_IFINDEX of include/net/net_namespace.h */
	PK_PEER_ENDS = PK_PEERS / 2, /* that are told apart until user space reads the tables */
};

/* A packet's network header, so far as it says who its ends are. */
struct pk_net_header {
	__be32 word[10];
};
enum { PK_V4_WORDS = 5, PK_V4_SOURCE = 3, PK_V4_DEST = 4, PK_V6_SOURCE = 2, PK_V6_DEST = 6 };

/*
 * The other end's socket, of a packet of TCP that stays in its namespace: it is known by both ends'
 * addresses and ports. 0: it is no such packet, or a fragment.
 */
static __noinline __u64 pk_far_end(__u64 header, __u32 protocol, __u32 sent, __u64 net)
{
	struct pk_net_header h = {};
	__u8 *bytes = (void *)h.word, l4;
	__u64 source, dest, length = sizeof(h);
	__be16 ports[2] = {};

	if (protocol == bpf_htons(ETH_P_IP)) {
		if (bpf_probe_read_kernel(h.word, PK_V4_WORDS * 4, (void *)header))
			return 0;
		source = h.word[PK_V4_SOURCE];
		dest = h.word[PK_V4_DEST];
		l4 = h.word[1] & bpf_htonl(0x3fff) ? 0 : bytes[9];
		length = (bytes[0] & 15) * 4;
	} else {
		if (protocol != bpf_htons(ETH_P_IPV6) || bpf_probe_read_kernel(h.word, sizeof(h), (void *)header))
			return 0;
		source = pk_fold_v6(h.word + PK_V6_SOURCE);
		dest = pk_fold_v6(h.word + PK_V6_DEST);
		l4 = bytes[6];
	}
	if (l4 != IPPROTO_TCP || bpf_probe_read_kernel(ports, sizeof(ports), (void *)header + length))
		return 0;
	if (sent)
		return pk_tcp_object(net, dest, source, pk_portpair(ports[0], bpf_ntohs(ports[1])));
	return pk_tcp_object(net, source, dest, pk_portpair(ports[1], bpf_ntohs(ports[0])));
}

/*
 * Connections between network namespaces of this machine: the other end's socket, by this one's. That
 * is its number with what tells it from any other that ever had that.
 */
struct other_ends_map {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1); /* PK_PEERS where it is wanted */
	__type(key, __u64);
	__type(value, __u64);
};

struct other_ends_map other_ends SEC(".maps");

/* 0: no process has it. */
static __always_inline __u64 pk_this_end(__u64 skp, __u64 object)
{
	struct socket *socket = BPF_CORE_READ((struct sock *)skp, sk_socket);

	if (!socket)
		return 0;
	return mix(mix(object, skp), BPF_CORE_READ((struct socket_alloc *)socket, vfs_inode.i_ino));
}

static __always_inline bool pk_is_inet(__u64 skp)
{
	__u16 family = BPF_CORE_READ((struct sock *)skp, __sk_common.skc_family);

	return (family == AF_INET || family == AF_INET6) && !pk_sock_of_kernel(skp);
}

/*
 * Whose socket sent a packet that comes: one from another namespace, through a veth pair and what is
 * of that layer, has it up to here. `to`: of TCP, the socket that it is for. 0: it is not known.
 */
static __noinline __u64 pk_sender_end(__u64 skp, __u64 to)
{
	__u64 object, end;
	__u8 state;

	if (!skp || !pk_is_inet(skp))
		return 0;
	object = pk_sock_object(skp);
	state = BPF_CORE_READ((struct sock *)skp, __sk_common.skc_state);
	/* What a bridge hands on is for a socket of another namespace: nobody holds one here. */
	if (!to || state == TCP_NEW_SYN_RECV || state == TCP_TIME_WAIT || state == TCP_LISTEN ||
	    !bpf_map_lookup_elem(&owners, &to))
		return object;
	end = pk_this_end(skp, object);
	if (end)
		bpf_map_update_elem(&other_ends, &end, &to, BPF_ANY);
	return object;
}

/* Who sends holds the socket: it is noted if nobody is yet. Returns the other end's; 0: it is not known. */
static __noinline __u64 pk_receiver_end(__u64 skp, __u32 own)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 object, end, owner, *to;

	if (!skp || !pk_is_inet(skp))
		return 0;
	object = pk_sock_object(skp);
	owner = pk_process_of(task);
	if (own)
		bpf_map_update_elem(&owners, &object, &owner, BPF_NOEXIST);
	end = pk_this_end(skp, object);
	to = end ? bpf_map_lookup_elem(&other_ends, &end) : NULL;
	return to ? *to : 0;
}

static __u32 ends_told; /* since user space read the tables, */
static __u32 ends_epoch; /* which was then */

/* Of many short connections the address is told. */
static __always_inline bool pk_may_tell_end(void)
{
	if (ends_epoch != epoch) {
		ends_epoch = epoch;
		ends_told = 0;
	}
	return __sync_fetch_and_add(&ends_told, 1) < PK_PEER_ENDS;
}

/* The number of an address and, if it is known, of the socket that is there. */
static __always_inline __u64 pk_number_peer(struct pk_peer *peer, __u64 end)
{
	__u64 number, with_end;

	number = mix(mix(config.seed ^ PK_SALT_PEER, (__u64)peer->address[0] << 32 | peer->address[1]),
		     (__u64)peer->address[2] << 32 | peer->address[3]) | 1;
	if (end) {
		with_end = mix(number, end) | 1;
		if (bpf_map_lookup_elem(&peers, &with_end))
			return with_end;
		if (pk_may_tell_end()) {
			number = with_end;
			peer->object = end;
		}
	}
	if (!bpf_map_lookup_elem(&peers, &number))
		bpf_map_update_elem(&peers, &number, peer, BPF_ANY);
	return number;
}

/*
 * The number of whoever is at the other end of a packet whose network header begins here, and whose
 * socket that is, if that is known; 0: not known.
 */
static __noinline __u64 pk_peer_of(__u64 header, __u32 protocol, __u32 sent, __u64 end)
{
	struct pk_peer peer = {};

	if (protocol == bpf_htons(ETH_P_IP)) {
		peer.family = AF_INET;
		if (bpf_probe_read_kernel(peer.address, 4,
					  (void *)header + 4 * (sent ? PK_V4_DEST : PK_V4_SOURCE)))
			return 0;
	} else if (protocol == bpf_htons(ETH_P_IPV6)) {
		peer.family = AF_INET6;
		if (bpf_probe_read_kernel(peer.address, 16,
					  (void *)header + 4 * (sent ? PK_V6_DEST : PK_V6_SOURCE)))
			return 0;
	} else {
		return 0;
	}
	return pk_number_peer(&peer, end);
}

/* The other end of a connected socket, as the socket has it; 0: it is not connected. */
static __noinline __u64 pk_peer_of_socket(__u64 skp)
{
	struct sock *sk = (void *)skp;
	__u16 family = BPF_CORE_READ(sk, __sk_common.skc_family);
	struct pk_peer peer = { .family = family };

	if (family == AF_INET)
		peer.address[0] = BPF_CORE_READ(sk, __sk_common.skc_daddr);
	else if (family == AF_INET6)
		BPF_CORE_READ_INTO(peer.address, sk, __sk_common.skc_v6_daddr.in6_u.u6_addr32);
	if (!(peer.address[0] | peer.address[1] | peer.address[2] | peer.address[3]))
		return 0;
	return pk_number_peer(&peer, pk_receiver_end(skp, false));
}

static __always_inline __u64 pk_net_of(struct sk_buff *skb)
{
	return (__u64)BPF_CORE_READ(skb, dev, nd_net.net);
}

/* `to`: of TCP, the socket that it is for. */
static __noinline __u64 pk_peer_of_received(__u64 skbp, __u64 interface, __u64 to)
{
	struct sk_buff *skb = (void *)skbp;
	__u64 header = (__u64)BPF_CORE_READ(skb, data), end;
	__u32 protocol = BPF_CORE_READ(skb, protocol);

	if (interface == PK_LOOPBACK)
		end = pk_far_end(header, protocol, false, pk_net_of(skb));
	else
		end = pk_sender_end((__u64)BPF_CORE_READ(skb, sk), to);
	return pk_peer_of(header, protocol, false, end);
}

/* `own`: the current process sends it. */
static __noinline __u64 pk_peer_of_sent(__u64 skbp, __u64 interface, __u32 own)
{
	struct sk_buff *skb = (void *)skbp;
	__u64 header = (__u64)BPF_CORE_READ(skb, head) + BPF_CORE_READ(skb, network_header), end;
	__u32 protocol = BPF_CORE_READ(skb, protocol);

	end = pk_receiver_end((__u64)BPF_CORE_READ(skb, sk), own);
	if (interface == PK_LOOPBACK)
		end = pk_far_end(header, protocol, true, pk_net_of(skb));
	return pk_peer_of(header, protocol, true, end);
}

#endif
