/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Whom calls in softirqs are for: what hooks say of it; see settle.bpf.c. */
#ifndef PKPROF_SETTLE_BPF_H
#define PKPROF_SETTLE_BPF_H

#include "core/state.bpf.h"

/* In a softirq, and calls are counted: hooks are to say whom it is for. */
static __always_inline bool pk_calls_wanted(struct pk_cpu *c)
{
	return config.calls && c->calls.vec;
}

/*
 * For the hooks, in a softirq: what waited on this CPU was for this party, and so is what comes
 * until another is named.
 */
int pk_calls_are_for(struct pk_cpu *c, __u64 party, __u32 how);

/* A packet is received; it turned out to be for this socket; it is sent on; it is thrown away. */
int pk_calls_of_packet(struct pk_cpu *c, __u64 skb);
int pk_calls_of_socket(struct pk_cpu *c, __u64 sk);
int pk_calls_of_sending(struct pk_cpu *c, __u64 skb, __u64 sk);
int pk_calls_of_drop(struct pk_cpu *c, __u64 skb, __u64 rx_sk);

/* The number of the party, or nobody. */
static __always_inline int pk_calls_are_for_party(struct pk_cpu *c, __u64 party, __u32 basis)
{
	if (party)
		return pk_calls_are_for(c, party, PK_CALL_HOW(basis, PK_UNTRACKED));
	return pk_calls_are_for(c, PK_UNCLAIMED + PK_UNTRACKED,
				PK_CALL_HOW(PK_BASIS_PROVISIONAL, 0));
}

/* What waits is over, and nobody was named: by what is known of it. */
int pk_calls_end(struct pk_cpu *c);

#endif
