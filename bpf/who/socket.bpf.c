// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The sockets that are charged; see socket.bpf.h. */
#include "who/socket.bpf.h"

#include "who/object.bpf.h"
#include "who/party.bpf.h"

__u64 pk_net_socket(struct pk_cpu *c, __u64 skp)
{
	struct sock *sk = (void *)skp;
	__u16 family = BPF_CORE_READ(sk, __sk_common.skc_family);
	__u8 state = BPF_CORE_READ(sk, __sk_common.skc_state);
	__u64 object = pk_sock_object(skp), net;
	__u32 ports;

	if (!c || (family != AF_INET && family != AF_INET6) || state == TCP_LISTEN)
		return object;
	if (state != TCP_NEW_SYN_RECV && state != TCP_TIME_WAIT &&
	    (BPF_CORE_READ(sk, sk_protocol) != IPPROTO_TCP || BPF_CORE_READ(sk, sk_socket)))
		return object;
	ports = pk_sock_portpair(skp, BPF_CORE_READ(sk, __sk_common.skc_portpair));
	net = (__u64)BPF_CORE_READ(sk, __sk_common.skc_net.net);
	pk_vote(c, object, pk_listener_object(net, ports >> 16), 1, PK_VOTE_FALLBACK);
	return object;
}

__u64 pk_timer_socket(__u64 timer, __u64 function)
{
	long offset;
	__u32 kind;

	if (!function)
		return 0;
	for (kind = 0; kind < PK_TIMERS; kind++)
		if (addresses.timer_function[kind] == function)
			break;
	if (kind == PK_TIMERS)
		return 0;
	offset = pk_timer_offset(kind);
	return offset >= 0 ? pk_net_socket(this_cpu(), timer - offset) : 0;
}
