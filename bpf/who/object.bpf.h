/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The numbers of network objects.
 *
 * A TCP connection is known by its two ends and its network namespace, not by the address of a
 * structure: the request socket of a handshake, the socket, the time-wait socket and the packets
 * of one connection then all have the same number, and work passes from one to the next by
 * itself. Every other socket is known by its address and its inode.
 */
#ifndef PKPROF_OBJECT_BPF_H
#define PKPROF_OBJECT_BPF_H

#include <bpf/bpf_endian.h>

#include "core/state.bpf.h"

/* Seeds that keep the kinds of objects apart. */
enum { PK_SALT_TCP = 0x7463, PK_SALT_SOCK = 0x736b, PK_SALT_UDP_PORT = 0x7564, PK_SALT_FRAGMENT = 0x6672 };

/*
 * The low bits of a number are the object's slot, and are made from what a hook has at hand with
 * one load: the pair of ports for TCP, the address for all else. So a consumer need not compute
 * the number to see that nothing is on account.
 */
static __always_inline __u32 pk_slot_of(__u32 v)
{
	return (v * 0x9e3779b1U) >> 20;
}

static __always_inline __u64 pk_number(__u64 hash, __u32 slot)
{
	return (hash & ~(__u64)(PK_SLOTS - 1)) | slot | PK_OBJECT;
}

/* As sock_common has them: remote port in network order first, then local port in host order. */
static __always_inline __u32 pk_portpair(__be16 rport, __u16 lport)
{
	return (__u32)lport << 16 | rport;
}

/*
 * A connection that was reset has given its port back (skc_num is 0) before it is closed, but
 * inet_sport stays. Both are 0 before connect() has chosen one.
 */
static __always_inline __u32 pk_sock_portpair(__u64 skp, __u32 portpair)
{
	struct inet_sock *inet = (void *)skp;

	if (likely(portpair >> 16))
		return portpair;
	return portpair | (__u32)bpf_ntohs(BPF_CORE_READ(inet, inet_sport)) << 16;
}

/* local and remote: IPv4 addresses, or folded IPv6 ones. */
static __always_inline __u64 pk_tcp_object(__u64 net, __u64 local, __u64 remote, __u32 portpair)
{
	__u64 h = mix(config.seed ^ PK_SALT_TCP, net);

	h = mix(h, local);
	h = mix(h, remote);
	return pk_number(mix(h, portpair), pk_slot_of(portpair));
}

static __always_inline __u64 pk_fold_v6(const __be32 *a)
{
	/* A v4-mapped address is the IPv4 address: packets of such a socket are IPv4 packets. */
	if (a[0] == 0 && a[1] == 0 && a[2] == bpf_htonl(0xffff))
		return a[3];
	return ((__u64)a[0] << 32 | a[1]) * 3 + ((__u64)a[2] << 32 | a[3]);
}

static __always_inline __u64 pk_address_object(__u64 sk)
{
	return pk_number(mix(config.seed ^ PK_SALT_SOCK, sk), pk_slot_of(sk >> 6));
}

/* A UDP port of a namespace, for packets whose socket no hook names. */
static __always_inline __u64 pk_udp_port_object(__u64 net, __u16 lport)
{
	return mix(mix(config.seed ^ PK_SALT_UDP_PORT, net), lport) | PK_OBJECT;
}

/*
 * The number of a socket. `skp` may be any address: it is read with care. Sockets of the request
 * and time-wait kinds have only the common part, and are TCP's.
 */
__u64 pk_sock_object(__u64 skp);

/* Sockets that listen on a port of TCP, whatever their address. */
static __always_inline __u64 pk_listener_object(__u64 net, __u16 lport)
{
	return pk_tcp_object(net, 0, 0, pk_portpair(0, lport));
}

static __always_inline bool pk_sock_listens(__u64 skp)
{
	struct sock *sk = (void *)skp;

	return BPF_CORE_READ(sk, __sk_common.skc_state) == TCP_LISTEN &&
	       BPF_CORE_READ(sk, __sk_common.skc_family) != AF_PACKET;
}

/* The kernel's own sockets (resets, ICMP answers, tunnels) have no user behind them. */
static __always_inline bool pk_sock_of_kernel(__u64 skp)
{
	struct sock *sk = (void *)skp;
	__u8 state = BPF_CORE_READ(sk, __sk_common.skc_state);

	if (state == TCP_NEW_SYN_RECV || state == TCP_TIME_WAIT)
		return false;
	return BPF_CORE_READ_BITFIELD_PROBED(sk, __sk_common.skc_net_refcnt) == 0;
}

/*
 * Reads whom a received packet is addressed to. `at_data`: the network header is at skb->data
 * (at netif_receive_skb), else where skb->network_header says (later).
 */
int pk_parse_packet(__u64 skbp, __u32 at_data, struct pk_packet_info *info);

/* Is a packet with these addresses for this socket? A socket of UDP: as far as port and address say. */
int pk_is_addressed_to(struct pk_packet_info *info, __u64 skp);

/*
 * Whether no other socket of UDP may have the same port and address, so that what is addressed to them
 * is this one's.
 */
static __always_inline bool pk_sock_is_alone(__u64 skp)
{
	struct sock *sk = (void *)skp;

	return !BPF_CORE_READ_BITFIELD_PROBED(sk, __sk_common.skc_reuse) &&
	       !BPF_CORE_READ_BITFIELD_PROBED(sk, __sk_common.skc_reuseport) &&
	       !BPF_CORE_READ(sk, __sk_common.skc_bound_dev_if);
}

/*
 * The number of a packet with an account of its own, which it carries from one CPU to another or
 * through a bridge. Buffers' addresses come round again at once, so what the packet is addressed
 * to is part of it.
 */
static __always_inline __u64 pk_packet_object(__u64 skb, struct pk_packet_info *info)
{
	__u64 object = pk_address_object(skb);

	return pk_number(mix(object, info->ends), object & (PK_SLOTS - 1));
}

#endif
