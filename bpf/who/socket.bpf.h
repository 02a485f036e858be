/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The sockets that are charged, and those whose timer expires. */
#ifndef PKPROF_SOCKET_BPF_H
#define PKPROF_SOCKET_BPF_H

#include "core/compat.bpf.h"
#include "core/state.bpf.h"

/*
 * The number of a socket that is to be charged. A connection of TCP that no process has accepted, or
 * has any more, is for whoever listens there, failing all else.
 */
__u64 pk_net_socket(struct pk_cpu *c, __u64 sk);

/* The number of the socket whose timer this is, of either kind; 0: it is none's. */
__u64 pk_timer_socket(__u64 timer, __u64 function);

/* A sample in a timer's function: which socket's is it? 0: none's. */
static __always_inline __u64 pk_socket_expiring(struct pk_cpu *c, __u8 vec)
{
	/* Read as a number: a hook has just stored a pointer there. */
	__u64 timer = vec == PK_VEC_HRTIMER ? *(volatile __u64 *)&c->hot.hrtimer :
					      *(volatile __u64 *)&c->timer.expiring;

	if (!timer)
		return 0;
	return pk_timer_socket(timer, vec == PK_VEC_HRTIMER ? pk_hrtimer_function(timer) :
							      pk_timer_function(timer));
}

#endif
