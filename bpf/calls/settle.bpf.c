// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Calls in a softirq that wait on their CPU, and how they are settled; see settle.bpf.h. */
#include "calls/settle.bpf.h"

#include "calls/call_table.bpf.h"
#include "who/object.bpf.h"
#include "who/party.bpf.h"

struct pk_settling {
	struct pk_waiting_calls *p;
	__u32 cpu;
};

static long pk_settle_call(__u32 i, struct pk_settling *s)
{
	struct pk_waiting_calls *p = s->p;
	__u32 at = (p->start + i) & (PK_CALLS_PENDING - 1);

	pk_add_call(this_cpu(), s->cpu, p->call[at].function, p->call[at].caller, p->party, p->how);
	return 0;
}

/* Those up to `end`. */
static __noinline int pk_settle_calls(__u32 end)
{
	__u32 cpu = bpf_get_smp_processor_id() & (PK_MAX_CPUS - 1);
	struct pk_settling s = { .p = bpf_map_lookup_elem(&waiting_calls, &cpu), .cpu = cpu };
	struct pk_cpu *c = this_cpu();

	if (!s.p || s.p->start >= end)
		return 0;
	c->calls.busy[PK_IN_SOFTIRQ] = bpf_get_current_task();
	bpf_loop(end - s.p->start, pk_settle_call, &s, 0);
	c->calls.busy[PK_IN_SOFTIRQ] = 0;
	s.p->start = end;
	return 0;
}

int pk_calls_are_for(struct pk_cpu *c, __u64 party, __u32 how)
{
	struct pk_waiting_calls *p = pk_calls_waiting_here();

	if (!c || !p)
		return 0;
	if (!c->calls.party) {
		p->party = party;
		p->how = how;
		pk_settle_calls(p->end);
	}
	p->start = 0;
	p->end = 0;
	p->next = PK_NO_CALL;
	c->calls.how = how;
	c->calls.party = party;
	return 0;
}

int pk_calls_by_headers(struct pk_cpu *c, __u32 end)
{
	struct pk_waiting_calls *p = pk_calls_waiting_here();
	__u64 object;

	if (!c || !p)
		return 0;
	object = p->object;
	p->party = object ? object : PK_UNCLAIMED + p->reason;
	p->how = object ? PK_CALL_HOW(PK_BASIS_OWNER, p->reason) :
			  PK_CALL_HOW(PK_BASIS_PROVISIONAL, 0);
	if (object && p->listener)
		pk_vote(c, object, p->listener, 1, PK_VOTE_FALLBACK);
	return pk_settle_calls(end);
}

int pk_calls_end(struct pk_cpu *c)
{
	struct pk_waiting_calls *p = pk_calls_waiting_here();

	if (!c || !p || c->calls.party || p->start >= p->end)
		return 0;
	if (p->packet)
		return pk_calls_by_headers(c, p->end);
	p->how = PK_CALL_HOW(PK_BASIS_VOTED, PK_EXPIRED);
	switch (c->calls.vec - 1) {
	case PK_VEC_NET_RX:
		p->party = pk_network_object();
		break;
	case PK_VEC_NET_TX:
		p->party = pk_sending_object();
		break;
	case PK_VEC_BLOCK:
	case PK_VEC_IRQ_POLL:
		p->party = pk_disk_object();
		break;
	default:
		p->party = PK_UNCLAIMED + PK_UNTRACKED;
		p->how = PK_CALL_HOW(PK_BASIS_PROVISIONAL, 0);
	}
	return pk_settle_calls(p->end);
}
