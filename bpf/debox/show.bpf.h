/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Records of calls on their way to those who want to see them whole. */
#ifndef DEBOX_SHOW_BPF_H
#define DEBOX_SHOW_BPF_H

#include "debox/trace.bpf.h"

#define DB_USER_CS 0x33 /* arch/x86/include/asm/segment.h */

/* As much of the program's stack as there is: it ends with a page. */
static __always_inline void db_copy_stack(struct db_user_stack *to, struct pt_regs___kernel *regs)
{
	const __u64 page = 4096, pages = DB_TOP_BYTES / page;
	__u64 first = page - (regs->sp & (page - 1));

	to->ip = regs->cs == DB_USER_CS ? regs->ip : 0;
	to->sp = regs->sp;
	to->fp = regs->bp;
	to->bytes = 0;
#pragma unroll
	for (__u64 more = pages; more-- && !to->bytes;) {
		__u32 length = first + more * page;

		if (length > DB_TOP_BYTES)
			length = DB_TOP_BYTES;
		if (!bpf_probe_read_user(to->top, length, (void *)regs->sp))
			to->bytes = length;
	}
}

/* What there is of it to be shown is the same for all calls: the verifier leaves one of these. */
static __always_inline bool db_show_as(struct db_thread *t, struct debox_record *r,
				       struct pt_regs___kernel *regs, bool stack, bool trace)
{
	const __u64 trace_at = sizeof(*r) + (stack ? sizeof(struct db_user_stack) : 0);
	const __u64 bytes = trace_at + (trace ? DB_PIECES * sizeof(struct debox_trace_piece) : 0);
	void *to = bpf_ringbuf_reserve(&db_slow, bytes, 0);

	if (!to)
		return false;
	bpf_probe_read_kernel(to, sizeof(*r), r);
	if (stack)
		db_copy_stack(to + sizeof(*r), regs);
	for (__u32 i = 0; trace && i < DB_PIECES; i++) {
		struct debox_trace_piece *piece = db_piece(t, i);

		if (piece && r->traces > i * DEBOX_TRACES)
			bpf_probe_read_kernel(to + trace_at + i * sizeof(*piece), sizeof(*piece), piece);
	}
	bpf_ringbuf_submit(to, 0);
	return true;
}

/* For those who want to see it whole. */
static __always_inline void db_show(struct db_cpu *c, struct db_thread *t, struct debox_record *r,
				    struct pt_regs___kernel *regs, __u64 wall)
{
	bool shown;

	if (db_config.tracing)
		shown = db_config.stacks ? db_show_as(t, r, regs, true, true) :
					   db_show_as(t, r, regs, false, true);
	else
		shown = db_config.stacks ? db_show_as(t, r, regs, true, false) :
					   db_show_as(t, r, regs, false, false);
	if (shown)
		return;
	c->stats.records_lost++;
	if (c->stats.lost_longest_ns < wall)
		c->stats.lost_longest_ns = wall;
}

#endif
