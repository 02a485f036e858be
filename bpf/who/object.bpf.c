// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The numbers of sockets and of packets' addressees; see object.bpf.h. */
#include "who/object.bpf.h"

/*
 * A socket known by its address, and by its inode's number: addresses come round again at once,
 * and the owner of the last socket there is not the owner of the next.
 */
static __always_inline __u64 pk_socket_object(__u64 skp)
{
	__u64 object = pk_address_object(skp);
	struct sock *sk = (void *)skp;
	struct socket *socket = BPF_CORE_READ(sk, sk_socket);
	__u64 inode = 0;

	if (socket)
		inode = BPF_CORE_READ((struct socket_alloc *)socket, vfs_inode.i_ino);
	return pk_number(mix(object, inode), object & (PK_SLOTS - 1));
}

__u64 pk_sock_object(__u64 skp)
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
		return pk_socket_object(skp);
	state = BPF_CORE_READ(sk, __sk_common.skc_state);
	if (state != TCP_NEW_SYN_RECV && state != TCP_TIME_WAIT)
		protocol = BPF_CORE_READ(sk, sk_protocol);
	if (protocol != IPPROTO_TCP)
		return pk_socket_object(skp);

	net = (__u64)BPF_CORE_READ(sk, __sk_common.skc_net.net);
	portpair = pk_sock_portpair(skp, BPF_CORE_READ(sk, __sk_common.skc_portpair));
	if (state == TCP_LISTEN)
		return pk_listener_object(net, portpair >> 16);
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

int pk_is_addressed_to(struct pk_packet_info *info, __u64 skp)
{
	struct sock *sk = (void *)skp;
	struct in6_addr l6;
	__u64 local, net;
	__u16 family;

	if (!info || !info->object || !skp)
		return 0;
	family = BPF_CORE_READ(sk, __sk_common.skc_family);
	if (family != AF_INET && family != AF_INET6)
		return 0;
	if (info->waits) /* TCP: its number is its address */
		return pk_sock_object(skp) == info->object;
	if (BPF_CORE_READ(sk, sk_protocol) != IPPROTO_UDP)
		return 0;
	net = (__u64)BPF_CORE_READ(sk, __sk_common.skc_net.net);
	if (pk_udp_port_object(net, BPF_CORE_READ(sk, __sk_common.skc_num)) != info->object)
		return 0;
	if (family == AF_INET) {
		local = BPF_CORE_READ(sk, __sk_common.skc_rcv_saddr);
	} else {
		BPF_CORE_READ_INTO(&l6, sk, __sk_common.skc_v6_rcv_saddr);
		local = pk_fold_v6(l6.in6_u.u6_addr32);
	}
	return !local || local == info->local;
}

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

struct pk_fragment {
	__u8 protocol;
	__u8 reserved;
	__be16 offset;
	__be32 id;
};

/*
 * The network namespace that a packet is in. On its way up a protocol uses the device's place for
 * other things, or clears it; then it is the device that the CPU's last packet came by.
 */
static __always_inline __u64 pk_packet_net(struct sk_buff *skb)
{
	struct net_device *dev = BPF_CORE_READ(skb, dev);

	if ((__s64)dev >= 0)
		dev = (void *)this_cpu()->hot.dev;
	return dev ? (__u64)BPF_CORE_READ(dev, nd_net.net) : 0;
}

int pk_parse_packet(__u64 skbp, __u32 at_data, struct pk_packet_info *info)
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
	info->datagram = 0;
	info->ends = 0;
	info->listener = 0;
	info->local = 0;
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
	net = pk_packet_net(skb);

	if (protocol == ETH_P_IP) {
		struct pk_ipv4 ip;

		if (bpf_probe_read_kernel(&ip, sizeof(ip), nh))
			return 0;
		l4 = ip.protocol;
		local = ip.dest;
		remote = ip.source;
		if (ip.frag & bpf_htons(0x3fff)) /* more to come, or not the first */
			info->datagram = mix(mix(config.seed ^ PK_SALT_FRAGMENT, local),
						remote << 16 | ip.id);
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
		if (l4 == IPPROTO_FRAGMENT) {
			struct pk_fragment f;

			if (bpf_probe_read_kernel(&f, sizeof(f), th))
				return 0;
			info->datagram = mix(mix(config.seed ^ PK_SALT_FRAGMENT, local),
						remote << 32 ^ f.id);
			if (f.offset & bpf_htons(0xfff8))
				return 0;
			l4 = f.protocol;
			th += sizeof(f);
		}
	} else {
		info->reason = protocol == ETH_P_ARP ? PK_ARP : PK_PROTOCOL;
		return 0;
	}
	info->ends = mix(mix(config.seed, local), remote);
	info->local = local;
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
	info->ends = mix(info->ends, (__u32)ports.source << 16 | ports.dest);
	info->waits = l4 == IPPROTO_TCP;
	if (l4 == IPPROTO_TCP) {
		info->object = pk_tcp_object(net, local, remote,
					     pk_portpair(ports.source, bpf_ntohs(ports.dest)));
		info->listener = pk_listener_object(net, bpf_ntohs(ports.dest));
	} else {
		info->object = pk_udp_port_object(net, bpf_ntohs(ports.dest));
	}
	return 0;
}

