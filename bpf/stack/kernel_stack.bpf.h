/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The kernel stack that a sample interrupted: as remembered, or as the kernel says.
 *
 * Nothing is guessed: where an address on the way is not remembered, and the kernel's tables do not
 * say how to leave it, the kernel is asked, and its answer is learned from. It is asked, too, for one
 * stack in PK_UNWIND_CHECK that would be known, so that what became wrong (a module that came in the
 * place of another) is found, counted, and learned anew.
 */
#ifndef PKPROF_KERNEL_STACK_BPF_H
#define PKPROF_KERNEL_STACK_BPF_H

#include "core/state.bpf.h"
#include "stack/unwind.bpf.h"
#include "stack/unwind_learn.bpf.h"

#include <linux/bpf_perf_event.h>

enum {
	PK_UNWIND_LESSONS = 16,	       /* one sample in so many is learned from, */
	PK_UNWIND_FIRST_LESSONS = 512, /* but for so many at first */
};

static long pk_unwind_compare(__u32 i, struct pk_unwind_loop *l)
{
	if (i >= PK_MAX_DEPTH)
		return 1;
	if (l->scratch->stack.ip[i] == l->scratch->check.ip[i])
		return 0;
	l->scratch->unwind.differs = 1;
	return 1;
}

/*
 * The kernel stack of what this sample interrupted, leaf first, in scratch->stack. Returns how many
 * frames it has; 0: it could not be taken.
 */
static __always_inline __u32 pk_kernel_stack(struct pk_cpu *c, struct bpf_perf_event_data *ctx,
					     struct pk_scratch *scratch)
{
	bool known, check = c->stats.samples % PK_UNWIND_CHECK == 0;
	__u64 ip = ctx->regs.rip, sp = ctx->regs.rsp, end, exact;
	struct pk_unwind_loop l = { .scratch = scratch };
	__u32 depth;
	long len;

	known = pk_unwind_known(scratch, ip, sp);
	if (!known && scratch->unwind.depth <= 1) {
		len = bpf_get_stack(ctx, scratch->stack.ip, 3 * sizeof(__u64), 0);
		if (len == 3 * sizeof(__u64)) {
			pk_unwind_learn_first(scratch, sp);
			known = pk_unwind_known(scratch, ip, sp);
		}
	}
	depth = scratch->unwind.depth;
	scratch->placed = known ? depth : 0;
	if (likely(known && !check))
		return depth;
	end = scratch->unwind.ip;
	exact = scratch->unwind.exact;
	c->stats.unwound++;
	if (known) {
		len = bpf_get_stack(ctx, scratch->check.ip, sizeof(scratch->check.ip), 0);
		if (len <= 0)
			return 0;
		scratch->unwind.differs = (__u64)len / 8 != depth;
		bpf_loop(depth, pk_unwind_compare, &l, 0);
		if (!scratch->unwind.differs)
			return depth;
		c->stats.unwound_wrong++;
		scratch->placed = 0;
	}
	len = bpf_get_stack(ctx, scratch->stack.ip, sizeof(scratch->stack.ip), 0);
	if (len <= 0)
		return 0;
	depth = (__u64)len / 8;
	/* That takes its time: often at first, then for one sample in so many at most. */
	if (pk_unwind_step(pk_unwind_find(end, exact)) == PK_UNWIND_VARIES ||
	    c->sampler.lessons > PK_UNWIND_FIRST_LESSONS + c->stats.samples / PK_UNWIND_LESSONS)
		return depth;
	c->sampler.lessons++;
	pk_unwind_learn_all(scratch, sp, depth, known);
	if (!known)
		pk_unwind_untaught(end, exact);
	return depth;
}

#endif
