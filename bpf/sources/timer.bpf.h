/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Timers; see timer.bpf.c. */
#ifndef PKPROF_TIMER_BPF_H
#define PKPROF_TIMER_BPF_H

#include "core/compat.bpf.h"
#include "stack/place.bpf.h"
#include "core/state.bpf.h"

/* The number of the socket whose timer this is, of either kind; 0: it is none's. */
__u64 pk_timer_socket(__u64 timer, __u64 function);

/* A sample in a timer's function: which socket's is it? 0: none's. */
static __always_inline __u64 pk_socket_expiring(struct pk_cpu *c, __u8 vec)
{
	/* Read as a number: a hook has just stored a pointer there. */
	__u64 timer = vec == PK_VEC_HRTIMER ? *(volatile __u64 *)&c->hrtimer :
					      *(volatile __u64 *)&c->expiring;

	if (!timer)
		return 0;
	return pk_timer_socket(timer, vec == PK_VEC_HRTIMER ? pk_hrtimer_function(timer) :
							      pk_timer_function(timer));
}

/* Whom the timer is for whose function was called last in the TIMER softirq; 0 if that is not known. */
__u64 pk_timer_party(struct pk_cpu *c, __u32 *basis);

/* A sample in the TIMER softirq that is not the network's. */
int pk_timer_sample(struct pk_cpu *c, struct pk_place *place, struct pk_charge *charge);

#endif
