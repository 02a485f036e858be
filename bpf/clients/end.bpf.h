/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The ends of connections: which one asks, and by what number both are known; see client.bpf.h. */
#ifndef PKPROF_END_BPF_H
#define PKPROF_END_BPF_H

#include "clients/client.bpf.h"
#include "who/object.bpf.h"

enum { PK_SALT_FLOW = 0x666c };

/* Addresses of the machine itself mean another socket in each network namespace. */
static __always_inline bool pk_is_loopback(__u64 address)
{
	return (address & 0xff) == 127 || address == bpf_htonl(1) /* ::1, folded */;
}

static __always_inline bool pk_is_v4_mapped(const __be32 *a)
{
	return a[0] == 0 && a[1] == 0 && a[2] == bpf_htonl(0xffff);
}

static __always_inline __u64 pk_flow_number(__u64 net, __u64 active, __u64 passive, __u32 ports)
{
	__u64 h = config.seed ^ PK_SALT_FLOW;

	if (pk_is_loopback(passive))
		h = mix(h, net);
	return mix(mix(mix(h, active), passive), ports) | 1;
}

/* Of a connection of TCP, the same at both ends. */
static __always_inline __u64 pk_tcp_flow(struct sock *sk, bool active)
{
	__u64 net = pk_plain(this_cpu(), sk->__sk_common.skc_net.net), local, remote;
	__u16 lport = sk->__sk_common.skc_num, rport = bpf_ntohs(sk->__sk_common.skc_dport);
	struct in6_addr l6, r6;

	if (sk->__sk_common.skc_family == AF_INET) {
		local = sk->__sk_common.skc_rcv_saddr;
		remote = sk->__sk_common.skc_daddr;
	} else {
		l6 = sk->__sk_common.skc_v6_rcv_saddr;
		r6 = sk->__sk_common.skc_v6_daddr;
		local = pk_fold_v6(l6.in6_u.u6_addr32);
		remote = pk_fold_v6(r6.in6_u.u6_addr32);
	}
	if (active)
		return pk_flow_number(net, local, remote, (__u32)lport << 16 | rport);
	return pk_flow_number(net, remote, local, (__u32)rport << 16 | lport);
}

/* A port that connect() has chosen is not to be shared by those that are bound to it. */
static __always_inline bool pk_has_connected(struct sock *sk)
{
	struct inet_bind_bucket *port =
		BPF_CORE_READ((struct inet_connection_sock *)sk, icsk_bind_hash);

	return port && BPF_CORE_READ(port, fastreuse) < 0;
}

static __always_inline bool pk_is_tcp(struct sock *sk)
{
	return sk->sk_protocol == IPPROTO_TCP && sk->__sk_common.skc_family != AF_UNIX;
}

/* Which end of its connection a socket is. What has no such ends is told by what it does first. */
static __always_inline __u8 pk_role_of(struct sock *sk, bool takes)
{
	__u16 family = sk->__sk_common.skc_family;
	__u8 by_what_it_does = takes ? PK_ROLE_PASSIVE : PK_ROLE_ACTIVE;
	struct unix_sock *own, *other;

	if (family == AF_INET || family == AF_INET6) {
		if (pk_is_tcp(sk))
			return pk_has_connected(sk) ? PK_ROLE_ACTIVE : PK_ROLE_PASSIVE;
		return BPF_CORE_READ_BITFIELD_PROBED(sk, sk_userlocks) & SOCK_BINDPORT_LOCK ?
			       PK_ROLE_PASSIVE :
			       PK_ROLE_ACTIVE;
	}
	if (family != AF_UNIX)
		return by_what_it_does;
	own = (void *)sk;
	other = (void *)BPF_CORE_READ(own, peer);
	if (sk->sk_type == SOCK_DGRAM && !other)
		return BPF_CORE_READ(own, addr) ? PK_ROLE_PASSIVE : PK_ROLE_ACTIVE;
	if (!other || !BPF_CORE_READ(own, addr) == !BPF_CORE_READ(other, addr))
		return by_what_it_does;
	return BPF_CORE_READ(own, addr) ? PK_ROLE_PASSIVE : PK_ROLE_ACTIVE;
}

static __always_inline bool pk_is_unix_stream(struct sock *sk)
{
	return sk->__sk_common.skc_family == AF_UNIX && sk->sk_type != SOCK_DGRAM;
}

static __always_inline bool pk_is_unix_datagram(struct sock *sk)
{
	return sk->__sk_common.skc_family == AF_UNIX && sk->sk_type == SOCK_DGRAM;
}

/* The number of the connection between two Unix sockets: that of the active one. */
static __always_inline __u64 pk_unix_flow(__u64 skp, __u8 role)
{
	if (role == PK_ROLE_PASSIVE)
		skp = (__u64)BPF_CORE_READ((struct unix_sock *)skp, peer);
	return pk_sock_object(skp);
}

/* What is looked up once of each end: by itself, for the verifier's sake. */
static __noinline struct pk_end *pk_begin_end(struct pk_end *end, struct sock *sk, bool takes)
{
	__u8 role;

	if (!end)
		return NULL;
	role = pk_role_of(sk, takes);
	if (takes && pk_is_unix_datagram(sk) && pk_noted_message(pk_sock_object(pk_plain(this_cpu(), sk))))
		role = PK_ROLE_ACTIVE; /* it has asked someone who had no peer */
	if (pk_is_tcp(sk))
		end->flow = pk_tcp_flow(sk, pk_has_connected(sk));
	else if (pk_is_unix_stream(sk))
		end->flow = pk_unix_flow(pk_plain(this_cpu(), sk), role);
	end->role = role;
	return end;
}

static __always_inline struct pk_end *pk_tcp_end_at(__u32 place)
{
	place &= PK_ENDS - 1;
	if (!config.clients) /* and there is no map */
		return NULL;
	return bpf_map_lookup_elem(&tcp_ends, &place);
}

/*
 * By which an end of TCP's is known. A connection that was reset has no port of its own any more, but
 * has all else.
 */
static __always_inline __u64 pk_tcp_end_number(struct sock *sk)
{
	return (__u64)sk->__sk_common.skc_hash << 32 ^ (__u64)sk->__sk_common.skc_daddr << 16 ^
	       sk->__sk_common.skc_dport ^ 1ULL << 63;
}

/* A place near, for this end. Where all are taken, the first goes: it begins anew. */
static __noinline struct pk_end *pk_place_of_tcp_end(__u64 number)
{
	struct pk_end *end, *free = NULL;
	__u32 i, first = number >> 32;

	for (i = 0; i < PK_NEAR; i++) {
		end = pk_tcp_end_at(first + i);
		if (!end)
			return NULL;
		if (end->number == number)
			return end;
		if (!free && !end->number)
			free = end;
	}
	end = free ? free : pk_tcp_end_at(first);
	if (!end)
		return NULL;
	end->role = PK_ROLE_UNKNOWN;
	end->window = 0;
	end->remote = 0;
	end->taken = 0;
	end->number = number;
	return end;
}

static __always_inline struct pk_end *pk_tcp_end_of(struct sock *sk)
{
	__u64 number = pk_tcp_end_number(sk);
	struct pk_end *end = pk_tcp_end_at(number >> 32);

	return likely(end && end->number == number) ? end : pk_place_of_tcp_end(number);
}

static __always_inline struct pk_end *pk_end_of(struct sock *sk, bool takes)
{
	struct pk_end *end = pk_is_tcp(sk) ? pk_tcp_end_of(sk) :
			     bpf_sk_storage_get(&ends, sk, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!end)
		return NULL;
	if (unlikely(end->window != window)) { /* messages have come and gone unseen since */
		end->window = window;
		end->client = 0;
		end->question = 0;
		end->next = 0;
	}
	if (likely(end->role))
		return end;
	return pk_begin_end(end, sk, takes);
}

#endif
