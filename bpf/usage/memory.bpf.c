// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Memory: pages that are taken, in proportion to their bytes, and those that are freed for want of memory.
 * The kernel stack tells what pages are for.
 */
#include "core/hook.bpf.h"
#include "usage/usage.bpf.h"

#include <bpf/bpf_tracing.h>

struct page;

enum { PK_MEMORY_PERIOD = 64 << 10, PK_PAGE_SHIFT = 12 };

/* In an interrupt or a kernel thread: for whom that works. */
static __noinline int pk_memory_elsewhere(struct pk_cpu *c, void *ctx, __u64 bytes, __u32 times)
{
	struct pk_stack *stack = pk_usage_memory(c);
	__u64 party;

	if (!stack)
		return 0;
	party = pk_party_now(c);
	if (!party)
		party = pk_in_interrupt(c) ? pk_network_object() : PK_KERNEL;
	return pk_used_by(c, PK_MEMORY_TAKEN, pk_usage_stack(c, ctx, stack, 0), bytes, times, party,
			  PK_BASIS_SUBMITTER);
}

SEC("?tp_btf/mm_page_alloc")
int BPF_PROG(pk_memory_taken, struct page *page, unsigned int order)
{
	struct pk_cpu *c = pk_hook(PK_HOOKS_USAGE);
	__u64 bytes = 1ULL << (PK_PAGE_SHIFT + order), all;

	if (!started || !page)
		return 0;
	all = pk_stands_for(&c->usage.memory.at, &c->usage.memory.pace, bytes, PK_MEMORY_PERIOD,
			    PK_KEPT_EACH_SECOND);
	if (likely(!all))
		return 0;
	if (pk_is_elsewhere(c))
		return pk_memory_elsewhere(c, ctx, all, pk_times(all, bytes));
	return pk_used_here(ctx, PK_MEMORY_TAKEN, 0, all, pk_times(all, bytes));
}

SEC("?tp_btf/mm_vmscan_lru_shrink_inactive")
int BPF_PROG(pk_memory_reclaimed, int node, unsigned long scanned, unsigned long reclaimed)
{
	struct pk_cpu *c = pk_hook(PK_HOOKS_USAGE);
	__u64 bytes = (__u64)reclaimed << PK_PAGE_SHIFT;

	if (!started || !reclaimed)
		return 0;
	return pk_used_by(c, PK_MEMORY_RECLAIMED, 0, bytes, 1, pk_party_now(c), PK_BASIS_SUBMITTER);
}
