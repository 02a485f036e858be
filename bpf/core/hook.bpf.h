/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What every hook does. Each has a fast path of a few instructions, since it runs for every packet
 * on the machine, and a slow path for when the sampler waits for it or work is on account.
 */
#ifndef PKPROF_HOOK_BPF_H
#define PKPROF_HOOK_BPF_H

#include "core/state.bpf.h"

/* The start of each hook: this CPU's state. Runs are counted, since the cost is printed. */
static __always_inline struct pk_cpu *pk_hook(enum pk_hook_group group)
{
	struct pk_cpu *c = this_cpu();

	c->hot.runs[group]++;
	return c;
}

/*
 * A slow path on the CPU's account begins, and ends: a sample that falls between is of pkprof's own
 * work. In a softirq it may have interrupted one of a process's, in its middle: then it keeps off.
 */
static __always_inline bool pk_enter(struct pk_cpu *c)
{
	if (unlikely(c->hot.busy))
		return false;
	c->hot.busy = 1;
	barrier();
	return true;
}

static __always_inline void pk_leave(struct pk_cpu *c)
{
	barrier();
	c->hot.busy = 0;
}

#endif
