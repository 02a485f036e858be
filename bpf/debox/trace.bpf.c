// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Of entries and exits of functions, where the kernel lets them be attached to: then everyone on the
 * machine who calls one of them pays for a look whether the thread is of interest. Elsewhere of
 * samples of the thread's stack while it runs.
 *
 * What interrupts do in the middle of a call is not the call's, nor what our own hooks call.
 */
#include "debox/place.bpf.h"
#include "debox/record.bpf.h"
#include "debox/trace.bpf.h"

#include <linux/bpf_perf_event.h>
#include <linux/ptrace.h>

#include <bpf/bpf_tracing.h>

/* The thread, if it is in a call whose functions are of interest; the record of that. */
static __always_inline struct debox_record *db_traced(struct db_cpu **c, struct db_thread **t)
{
	struct task_struct *task = bpf_get_current_task_btf();

	*t = db_find(task->pid);
	if (likely(!*t) || !((*t)->wants & DB_TRACE) || (*t)->busy)
		return 0;
	*c = db_this_cpu();
	if (!*c)
		return 0;
	return db_record_of_now(*c, *t);
}

static __always_inline bool db_in_interrupt(struct db_cpu *c)
{
	return db_preempt_count(c, bpf_get_current_task_btf()) & (HARDIRQ_MASK | SOFTIRQ_OFFSET);
}

/* What the thread is in, of this call. */
static __always_inline struct db_open *db_open_of(struct db_thread *t)
{
	__u32 slot = t->slot;
	struct db_open *open = bpf_map_lookup_elem(&db_opens, &slot);

	if (open && open->sequence != t->sequence) {
		open->sequence = t->sequence;
		open->depth = 0;
	}
	return open;
}

/* An entry of the trace, counted from 1; 0: there is none. */
static __always_inline struct debox_trace *db_trace_at(struct db_thread *t, __u64 entry)
{
	struct debox_trace_piece *piece;
	__u32 within;

	if (--entry >= t->traces)
		return 0;
	piece = db_piece(t, entry / DEBOX_TRACES);
	if (!piece)
		return 0;
	within = entry % DEBOX_TRACES;
	forget_value(within);
	return within < DEBOX_TRACES ? &piece->trace[within] : 0;
}

/* One function deeper. */
static __noinline int db_enters(struct db_cpu *c, struct db_thread *t, struct debox_record *r,
				struct db_open *open, __u64 function)
{
	struct debox_trace *to;
	__u64 entry = 0;
	__u32 depth;

	if (!c || !t || !r || !open)
		return 0;
	depth = open->depth;
	if (r->traces < t->traces)
		entry = r->traces + 1;
	to = entry ? db_trace_at(t, entry) : 0;
	if (to) {
		r->traces = entry;
		to->function = db_place(c, function);
		to->depth = depth;
		to->begin_ns = c->now;
		to->wall_ns = 0;
	} else {
		entry = 0;
		r->traces_left_out++;
	}
	open->depth = depth + 1;
	forget_value(depth);
	if (depth < DB_OPEN) {
		open->at[depth].function = function;
		open->at[depth].entry = entry;
	}
	return 0;
}

static __always_inline int db_begins(__u64 function)
{
	struct db_thread *t;
	struct db_cpu *c;
	struct debox_record *r = db_traced(&c, &t);

	if (likely(!r))
		return 0;
	t->busy++;
	if (!db_in_interrupt(c)) {
		c->now = bpf_ktime_get_ns();
		db_enters(c, t, r, db_open_of(t), function);
	}
	t->busy--;
	return 0;
}

/* The innermost that is open of this function is left. Those that were entered in it were left
 * unseen; one that was entered before the call, or unseen, is not there. */
static __noinline int db_leaves(struct db_thread *t, __u64 function)
{
	__u64 now = bpf_ktime_get_ns();
	struct debox_trace *to;
	struct db_open *open;
	__u32 depth;

	if (!t)
		return 0;
	open = db_open_of(t);
	if (!open || !open->depth)
		return 0;
	depth = open->depth - 1;
	if (depth >= DB_OPEN) { /* deeper than is kept: how deep is known, what not */
		open->depth = depth;
		return 0;
	}
	for (__u32 i = 0; i < DB_OPEN; i++) {
		forget_value(depth);
		if (depth >= DB_OPEN)
			return 0;
		if (likely(open->at[depth].function == function)) {
			open->depth = depth;
			to = db_trace_at(t, open->at[depth].entry);
			if (to)
				to->wall_ns = now - to->begin_ns;
			return 0;
		}
		depth--;
	}
	return 0;
}

static __always_inline int db_ends(__u64 function)
{
	struct db_thread *t;
	struct db_cpu *c;

	if (likely(!db_traced(&c, &t)))
		return 0;
	t->busy++;
	if (!db_in_interrupt(c))
		db_leaves(t, function);
	t->busy--;
	return 0;
}

SEC("?kprobe.multi")
int db_function_begins(struct pt_regs *ctx)
{
	return db_begins(bpf_get_func_ip(ctx));
}

SEC("?kretprobe.multi")
int db_function_ends(struct pt_regs *ctx)
{
	return db_ends(bpf_get_func_ip(ctx));
}

/* Loaded once for each function; the one named here is just to load it the first time. */
SEC("?fentry/bpf_fentry_test1")
int db_function_begins_alone(void *ctx)
{
	return db_begins(bpf_get_func_ip(ctx));
}

SEC("?fexit/bpf_fentry_test1")
int db_function_ends_alone(void *ctx)
{
	return db_ends(bpf_get_func_ip(ctx));
}

static long db_halve(__u32 i, struct db_loop *l)
{
	struct db_search *s = &l->c->search;
	__u32 middle = s->from + (s->end - s->from) / 2;
	__u64 *start;

	if (s->end - s->from <= 1)
		return 1;
	start = bpf_map_lookup_elem(&db_functions, &middle);
	if (!start)
		return 1;
	if ((*start | DB_WANTED) <= s->ip)
		s->from = middle;
	else
		s->end = middle;
	return 0;
}

/* Where the function begins that has this address in it; 0: it is not wanted. */
static __noinline __u64 db_function_of(struct db_cpu *c, __u64 ip)
{
	struct db_loop l = { .c = c };
	__u64 *start;
	__u32 at;

	if (!c)
		return 0;
	c->search = (struct db_search){ .ip = ip, .end = db_config.functions };
	bpf_loop(24, db_halve, &l, 0);
	at = c->search.from;
	start = bpf_map_lookup_elem(&db_functions, &at);
	return start && *start & DB_WANTED && *start <= ip ? *start : 0;
}

/* A frame of the sample, from the outermost: the same as before, or entered since. */
static long db_follow(__u32 i, struct db_loop *l)
{
	struct db_cpu *c = l->c;
	struct db_thread *t = l->t;
	struct debox_record *r;
	struct debox_trace *to;
	struct db_open *open;
	__u32 frame = c->frames.depth, depth;
	__u64 function;

	if (i >= frame)
		return 1;
	frame -= i + 1;
	forget_value(frame);
	if (frame >= DB_OPEN)
		return 1;
	/* What returns behind a call that never does is in the function before. */
	function = db_function_of(c, c->function[frame] - (frame ? 1 : 0));
	if (!function)
		return 0;
	open = db_open_of(t);
	r = db_record(t);
	if (!open || !r)
		return 1;
	depth = c->frames.inside;
	if (depth >= DB_OPEN)
		return 1;
	forget_value(depth);
	if (depth < open->depth && depth < DB_OPEN && open->at[depth].function != function)
		open->depth = depth;
	if (depth >= open->depth)
		db_enters(c, t, r, open, function);
	forget_value(depth);
	if (depth < DB_OPEN) {
		to = db_trace_at(t, open->at[depth].entry);
		if (to)
			to->wall_ns += db_config.sample_ns;
	}
	c->frames.inside = depth + 1;
	return 0;
}

SEC("?perf_event")
int db_trace_sample(struct bpf_perf_event_data *ctx)
{
	struct db_loop l = {};
	struct debox_record *r = db_traced(&l.c, &l.t);
	struct db_open *open;
	long size;

	if (!r || db_preempt_count(l.c, bpf_get_current_task_btf()) & SOFTIRQ_OFFSET)
		return 0;
	size = bpf_get_stack(ctx, l.c->function, sizeof(l.c->function), 0);
	if (size <= 0)
		return 0; /* in the program itself */
	r->flags |= DEBOX_SAMPLED;
	l.c->now = bpf_ktime_get_ns();
	l.c->frames.depth = (__u64)size / sizeof(__u64);
	l.c->frames.inside = 0; /* how deep it is, of what is wanted */
	bpf_loop(DB_OPEN, db_follow, &l, 0);
	open = db_open_of(l.t);
	if (open && open->depth > l.c->frames.inside)
		open->depth = l.c->frames.inside;
	return 0;
}
