// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The network's hooks on timers of sockets. */
#include "hook.bpf.h"
#include "net.bpf.h"

#include <bpf/bpf_tracing.h>

/*
 * A timer's function returns. Is it a socket's, and the work that waits its own? The sampler's
 * clock is a timer, too, and so are many that nobody asked for: the function tells.
 */
static __noinline int pk_timer_slow(struct pk_cpu *c, __u64 timer, __u64 function)
{
	long offset;
	__u32 kind;

	if (!c || !function)
		return 0;
	for (kind = 0; kind < PK_TIMERS; kind++)
		if (config.timer_function[kind] == function)
			break;
	if (kind == PK_TIMERS)
		return 0;
	pk_enter(c);
	if (!pk_same_run(c)) {
		pk_net_close(c);
	} else if (c->armed != PK_PHASE_TIMER || c->timer == kind) {
		offset = pk_timer_offset(kind);
		if (c->charge.vec == PK_VEC_NONE)
			c->charge.vec = kind == PK_TIMER_PACING || kind == PK_TIMER_COMPRESSED_ACK ?
						PK_VEC_HRTIMER :
						PK_VEC_TIMER;
		if (offset >= 0)
			pk_net_settle(c, pk_sock_object(timer - offset));
		else
			pk_net_close(c);
	}
	pk_leave(c);
	return 0;
}

/* What a timer's end can settle: its own work, and what was armed before the vector was known. */
static __always_inline bool pk_waits_for_timer(struct pk_cpu *c)
{
	return c->armed == PK_PHASE_TIMER || c->armed == PK_PHASE_ENTRY ||
	       c->armed == PK_PHASE_TRANSMIT;
}

SEC("?tp_btf/timer_expire_exit")
int BPF_PROG(pk_timer_expire_exit, struct timer_list *timer)
{
	struct pk_cpu *c = pk_hook();
	__u64 plain;

	if (likely(!pk_waits_for_timer(c)))
		return 0;
	plain = pk_plain(c, timer);
	return pk_timer_slow(c, plain, pk_timer_function(plain));
}

SEC("?tp_btf/hrtimer_expire_exit")
int BPF_PROG(pk_hrtimer_expire_exit, struct hrtimer *timer)
{
	struct pk_cpu *c = pk_hook();
	__u64 plain;

	if (timer->is_soft)
		c->hrtimer = (__u64)timer;
	if (likely(!pk_waits_for_timer(c)))
		return 0;
	plain = pk_plain(c, timer);
	return pk_timer_slow(c, plain, pk_hrtimer_function(plain));
}
