/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The numbers of network objects.
 *
 * A TCP connection is known by its two ends and its network namespace, not by the address of a
 * structure: the request socket of a handshake, the socket, the time-wait socket and the packets
 * of one connection then all have the same number, and work passes from one to the next by
 * itself. Every other socket is known by its address.
 */
#ifndef PKPROF_OBJECT_BPF_H
#define PKPROF_OBJECT_BPF_H

#include <bpf/bpf_endian.h>

#include "state.bpf.h"

/* Seeds that keep the kinds of objects apart. */
enum { PK_SALT_TCP = 0x7463, PK_SALT_SOCK = 0x736b, PK_SALT_UDP_PORT = 0x7564 };

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
	return (hash & ~(__u64)(PK_SLOTS - 1)) | slot;
}

/* As sock_common has them: remote port in network order first, then local port in host order. */
static __always_inline __u32 pk_portpair(__be16 rport, __u16 lport)
{
	return (__u32)lport << 16 | rport;
}

/* local and remote: IPv4 addresses, or folded IPv6 ones. */
static __always_inline __u64 pk_tcp_object(__u64 net, __u64 local, __u64 remote, __u32 portpair)
{
	__u64 h = pk_mix(config.seed ^ PK_SALT_TCP, net);

	h = pk_mix(h, local);
	h = pk_mix(h, remote);
	return pk_number(pk_mix(h, portpair), pk_slot_of(portpair));
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
	return pk_number(pk_mix(config.seed ^ PK_SALT_SOCK, sk), pk_slot_of(sk >> 6));
}

/* A UDP port of a namespace, for packets whose socket no hook names. */
static __always_inline __u64 pk_udp_port_object(__u64 net, __u16 lport)
{
	return pk_mix(pk_mix(config.seed ^ PK_SALT_UDP_PORT, net), lport);
}

/*
 * The number of a socket. `skp` may be any address: it is read with care. Sockets of the request
 * and time-wait kinds have only the common part, and are TCP's.
 */
static __noinline __u64 pk_sock_object(__u64 skp)
{
	struct sock *sk = (void *)skp;
	struct in6_addr l6, r6;
	__u64 net, local, remote;
	__u16 family, protocol = IPPROTO_TCP;
	__u32 portpair;
	__u8 state;

	if (!skp)
		return 0;
	family = BPF_CORE_READ(sk, __sk_common.skc_family);
	if (family != AF_INET && family != AF_INET6)
		return pk_address_object(skp);
	state = BPF_CORE_READ(sk, __sk_common.skc_state);
	if (state != TCP_NEW_SYN_RECV && state != TCP_TIME_WAIT)
		protocol = BPF_CORE_READ(sk, sk_protocol);
	if (protocol != IPPROTO_TCP)
		return pk_address_object(skp);

	net = (__u64)BPF_CORE_READ(sk, __sk_common.skc_net.net);
	portpair = BPF_CORE_READ(sk, __sk_common.skc_portpair);
	if (state == TCP_LISTEN)
		return pk_tcp_object(net, 0, 0, portpair);
	if (family == AF_INET) {
		local = BPF_CORE_READ(sk, __sk_common.skc_rcv_saddr);
		remote = BPF_CORE_READ(sk, __sk_common.skc_daddr);
	} else {
		BPF_CORE_READ_INTO(&l6, sk, __sk_common.skc_v6_rcv_saddr);
		BPF_CORE_READ_INTO(&r6, sk, __sk_common.skc_v6_daddr);
		local = pk_fold_v6(l6.in6_u.u6_addr32);
		remote = pk_fold_v6(r6.in6_u.u6_addr32);
	}
	return pk_tcp_object(net, local, remote, portpair);
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

struct pk_packet_info {
	__u64 object; /* TCP connection or UDP port it is addressed to, 0 for none */
	__u8 waits;   /* a consumer will test for the object: it may stay on account */
	__u8 reason;  /* to give when nobody claims it */
	__u8 shared;  /* to a multicast or broadcast address: may have several receivers */
};

struct pk_ports {
	__be16 source;
	__be16 dest;
};

struct pk_ipv4 {
	__u8 vihl;
	__u8 tos;
	__be16 len;
	__be16 id;
	__be16 frag;
	__u8 ttl;
	__u8 protocol;
	__be16 sum;
	__be32 source;
	__be32 dest;
};

struct pk_ipv6 {
	__be32 flow;
	__be16 len;
	__u8 protocol;
	__u8 hops;
	__be32 source[4];
	__be32 dest[4];
};

/*
 * Reads whom a received packet is addressed to. `at_data`: the network header is at skb->data
 * (at netif_receive_skb), else where skb->network_header says (later).
 */
static __noinline int pk_parse_packet(__u64 skbp, bool at_data, struct pk_packet_info *info)
{
	struct sk_buff *skb = (void *)skbp;
	struct pk_ports ports = {};
	unsigned char *nh, *th;
	__u64 net, local, remote;
	__u16 protocol;
	__u8 l4, type = 0;

	if (!info)
		return 0;
	info->object = 0;
	info->shared = 0;
	info->waits = 0;
	info->reason = PK_EXPIRED;
	if (!skbp)
		return 0;
	if (at_data)
		nh = BPF_CORE_READ(skb, data);
	else
		nh = BPF_CORE_READ(skb, head) + BPF_CORE_READ(skb, network_header);
	bpf_probe_read_kernel(&type, 1,
			      (void *)skb + bpf_core_field_offset(struct sk_buff, __pkt_type_offset));
	type &= 7; /* the first three bits: skbuff.h, PKT_TYPE_MAX on little-endian machines */
	info->shared = type == PACKET_MULTICAST || type == PACKET_BROADCAST;
	protocol = bpf_ntohs(BPF_CORE_READ(skb, protocol));
	net = (__u64)BPF_CORE_READ(skb, dev, nd_net.net);

	if (protocol == ETH_P_IP) {
		struct pk_ipv4 ip;

		if (bpf_probe_read_kernel(&ip, sizeof(ip), nh))
			return 0;
		l4 = ip.protocol;
		local = ip.dest;
		remote = ip.source;
		if (ip.frag & bpf_htons(0x1fff))
			return 0; /* not the first fragment: no ports */
		th = nh + (ip.vihl & 15) * 4;
	} else if (protocol == ETH_P_IPV6) {
		struct pk_ipv6 ip;

		if (bpf_probe_read_kernel(&ip, sizeof(ip), nh))
			return 0;
		l4 = ip.protocol;
		local = pk_fold_v6(ip.dest);
		remote = pk_fold_v6(ip.source);
		th = nh + sizeof(ip);
	} else {
		info->reason = protocol == ETH_P_ARP ? PK_ARP : PK_PROTOCOL;
		return 0;
	}
	if (l4 == IPPROTO_ICMP || l4 == IPPROTO_ICMPV6) {
		info->reason = PK_ICMP;
		return 0;
	}
	if (l4 != IPPROTO_TCP && l4 != IPPROTO_UDP) {
		info->reason = PK_PROTOCOL;
		return 0;
	}
	if (bpf_probe_read_kernel(&ports, sizeof(ports), th))
		return 0;
	info->waits = l4 == IPPROTO_TCP;
	if (l4 == IPPROTO_TCP)
		info->object = pk_tcp_object(net, local, remote,
					     pk_portpair(ports.source, bpf_ntohs(ports.dest)));
	else
		info->object = pk_udp_port_object(net, bpf_ntohs(ports.dest));
	return 0;
}

#endif
