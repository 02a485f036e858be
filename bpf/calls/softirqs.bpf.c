// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Where softirqs begin and end, and whom calls in them are for that are not the network's: those of
 * timers and of disks' requests. Timers and requests are as the hooks in sources/ have just noted
 * them, which are attached before these, and run before them (src/probe/hooks.cc).
 */
#include "calls/settle.bpf.h"

#include "core/hook.bpf.h"
#include "sources/timer.bpf.h"
#include "who/object.bpf.h"
#include "who/party.bpf.h"
#include "who/socket.bpf.h"

#include <bpf/bpf_tracing.h>

SEC("?raw_tp/softirq_entry")
int pk_calls_softirq_entry(struct bpf_raw_tracepoint_args *ctx)
{
	struct pk_cpu *c = pk_hook(PK_HOOKS_CALLS);
	__u32 cpu = bpf_get_smp_processor_id(), vec = ctx->args[0];
	struct pk_waiting_calls *p = bpf_map_lookup_elem(&waiting_calls, &cpu);

	if (!p)
		return 0;
	p->start = 0;
	p->end = 0;
	p->next = PK_NO_CALL;
	p->packet = 0;
	c->calls.how = PK_CALL_HOW(PK_BASIS_OWN, 0);
	switch (vec) {
	case PK_VEC_TIMER: /* looking for timers that are due */
	case PK_VEC_HRTIMER:
	case PK_VEC_SCHED:
		c->calls.party = PK_KERNEL;
		break;
	case PK_VEC_RCU:
		c->calls.party = pk_rcu_object();
		c->calls.how = PK_CALL_HOW(PK_BASIS_VOTED, PK_UNTRACKED);
		break;
	case PK_VEC_HI:
		c->calls.party = PK_UNCLAIMED + PK_UNTRACKED;
		c->calls.how = PK_CALL_HOW(PK_BASIS_PROVISIONAL, 0);
		break;
	default:
		c->calls.party = 0;
	}
	c->calls.vec = 1 + vec;
	return 0;
}

SEC("?raw_tp/softirq_exit")
int pk_calls_softirq_exit(void *ctx)
{
	struct pk_cpu *c = pk_hook(PK_HOOKS_CALLS);

	if (!c->calls.vec)
		return 0;
	pk_calls_end(c);
	c->calls.vec = 0;
	c->calls.party = 0;
	return 0;
}

/* Calls in the functions of timers, of either kind, are for whom the timers are. */
static __noinline int pk_calls_of_timer(struct pk_cpu *c, __u8 vec)
{
	__u32 basis = PK_BASIS_QUEUER;
	__u64 socket, party;

	if (!c)
		return 0;
	socket = pk_socket_expiring(c, vec);
	if (socket)
		return pk_calls_are_for(c, socket, PK_CALL_HOW(PK_BASIS_OWNER, PK_EXPIRED));
	if (vec == PK_VEC_HRTIMER)
		party = pk_timer_noted(c->hot.hrtimer, c->timer.hrtimer_expires);
	else
		party = pk_timer_party(c, &basis);
	return pk_calls_are_for_party(c, party, basis);
}

SEC("?tp_btf/timer_expire_entry")
int BPF_PROG(pk_calls_timer)
{
	struct pk_cpu *c = pk_hook(PK_HOOKS_CALLS);

	return c->calls.vec == 1 + PK_VEC_TIMER ? pk_calls_of_timer(c, PK_VEC_TIMER) : 0;
}

SEC("?tp_btf/hrtimer_expire_entry")
int BPF_PROG(pk_calls_hrtimer, struct hrtimer *timer)
{
	struct pk_cpu *c = pk_hook(PK_HOOKS_CALLS);

	if (!timer->is_soft || c->calls.vec != 1 + PK_VEC_HRTIMER)
		return 0;
	return pk_calls_of_timer(c, PK_VEC_HRTIMER);
}

SEC("?tp_btf/block_rq_complete")
int BPF_PROG(pk_calls_request)
{
	struct pk_cpu *c = pk_hook(PK_HOOKS_CALLS);

	return c->calls.vec ? pk_calls_are_for_party(c, c->disk.done, PK_BASIS_SUBMITTER) : 0;
}
