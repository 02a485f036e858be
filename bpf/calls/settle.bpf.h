/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Whom calls in softirqs are for. They wait on their CPU until a hook names a party: that is what
 * packets.bpf.c and softirqs.bpf.c are for. Their programs are attached only where calls are counted,
 * and do nothing outside a softirq.
 */
#ifndef PKPROF_SETTLE_BPF_H
#define PKPROF_SETTLE_BPF_H

#include "core/state.bpf.h"

static __always_inline struct pk_waiting_calls *pk_calls_waiting_here(void)
{
	__u32 cpu = bpf_get_smp_processor_id() & (PK_MAX_CPUS - 1);

	return bpf_map_lookup_elem(&waiting_calls, &cpu);
}

/* What waited on this CPU was for this party, and so is what comes until another is named. */
int pk_calls_are_for(struct pk_cpu *c, __u64 party, __u32 how);

/* The same of a party that may be nobody. */
static __always_inline int pk_calls_are_for_party(struct pk_cpu *c, __u64 party, __u32 basis)
{
	if (party)
		return pk_calls_are_for(c, party, PK_CALL_HOW(basis, PK_UNTRACKED));
	return pk_calls_are_for(c, PK_UNCLAIMED + PK_UNTRACKED,
				PK_CALL_HOW(PK_BASIS_PROVISIONAL, 0));
}

/* The packet is over, and no hook named its socket: what waits, up to `end`, goes by its headers. */
int pk_calls_by_headers(struct pk_cpu *c, __u32 end);

/* The softirq is over, and nobody was named: what waits goes by what is known of the softirq. */
int pk_calls_end(struct pk_cpu *c);

#endif
