/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * For what do threads wait? (pkprof --resource wait)
 *
 * A thread that leaves the CPU notes when. Its waker sees how long it was blocked, and notes who it is;
 * when the thread comes back, how long it was ready. Waits of a period and more are all kept. Of the
 * shorter ones a thread's time off the CPU is cut into periods, and the wait that one random moment of
 * each falls in stands for the period. So what is kept adds up to all of it, within a period for each
 * thread, and no rhythm of the thread's favours one wait over another.
 *
 * Stacks are taken for what is kept alone: the waker's as it wakes, the waiter's when it runs again, in
 * its own context.
 */
#ifndef PKPROF_WAITER_BPF_H
#define PKPROF_WAITER_BPF_H

#include "core/state.bpf.h"
#include "core/strata.bpf.h"
#include "process/label.bpf.h"

/* A thread, and the wait that it is in. A line or two of the cache. */
struct pk_waiter {
	__u64 thread; /* which one: its number and its start; 0: the place is free */
	__u64 since;  /* off the CPU since then; 0: it is on one */
	__u64 ready;  /* woken then; 0: not yet */
	struct pk_stratum off_cpu; /* its time off the CPU, ns */
	__u64 woken_by; /* the thread that woke it last, as .thread; 0: an interrupt did, */
	__u64 woken_label; /* its label, */
	__u64 woken_at;    /* and when */
	__u32 window; /* of the hooks, in which this was noted */
	__u32 fresh;  /* it has not run yet */
	/* Kept, and to be told as it runs. */
	__u64 blocked_ns;
	__u64 ready_ns;
	__u64 waker;   /* number of the pk_waker */
	__u64 ahead;   /* who had the CPU */
	__u32 blocked; /* how many waits that stands for */
	__u32 queued;
};

struct waiters_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* PK_WAITERS and PK_WAITERS_NEAR, where it is wanted */
	__type(key, __u32);
	__type(value, struct pk_waiter);
};

/* By number. What was told lately is there; user space asks for what rows name. */
struct wakers_map {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1); /* PK_KEPT_WAKERS */
	__type(key, __u64);
	__type(value, struct pk_waker);
};

/* Who had a CPU, from when on. */
struct pk_turn {
	__u64 since;
	__u64 who; /* label, or PK_IDLE */
};

struct pk_turns {
	__u32 next; /* number of the next turn, of which the low bits are the place */
	__u32 pad;
	struct pk_turn turn[PK_RAN];
};

struct turns_map {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct pk_turns);
};

/* The BPF stack is short. By pk_level(). */
struct pk_wait_scratch {
	struct pk_waker waker;
	struct pk_scratch scratch;
};

struct wait_scratch_map {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, PK_LEVELS);
	__type(key, __u32);
	__type(value, struct pk_wait_scratch);
};

extern struct waiters_map waiters SEC(".maps");
extern struct wakers_map wakers SEC(".maps");
extern struct turns_map turns SEC(".maps");
extern struct wait_scratch_map wait_scratch SEC(".maps");

static __always_inline __u64 pk_thread_number(struct task_struct *task)
{
	return (__u64)task->pid << 32 | (__u32)(task->start_boottime >> 20);
}

static __always_inline struct pk_wait_scratch *pk_wait_memory(struct pk_cpu *c)
{
	__u32 level = pk_level(c);

	return bpf_map_lookup_elem(&wait_scratch, &level);
}

static __always_inline struct pk_waiter *pk_waiter_at(__u32 place)
{
	return bpf_map_lookup_elem(&waiters, &place);
}

static __always_inline struct pk_waiter *pk_take_place(struct pk_waiter *w, __u64 thread)
{
	if (__sync_val_compare_and_swap(&w->thread, 0, thread) != 0)
		return NULL;
	w->since = 0;
	w->ready = 0;
	w->off_cpu.period = 0;
	w->off_cpu.rest = 0;
	w->woken_by = 0;
	w->woken_at = 0;
	w->window = 0;
	w->fresh = 0;
	w->blocked_ns = 0;
	w->ready_ns = 0;
	return w;
}

/* Not at the first of the places where it may be. */
static __noinline struct pk_waiter *pk_search_waiter(struct pk_cpu *c, __u64 thread, __u32 wanted)
{
	__u32 first = (thread >> 32) & (PK_WAITERS - 1), i;
	struct pk_waiter *w;

	for (i = 0; i < PK_WAITERS_NEAR; i++) {
		w = pk_waiter_at(first + i);
		if (!w)
			return NULL;
		if (w->thread == thread)
			return w;
		if (w->thread >> 32 == thread >> 32) /* of one that is gone, whose number this is now */
			w->thread = 0;
	}
	for (i = 0; wanted && i < PK_WAITERS_NEAR; i++) {
		w = pk_waiter_at(first + i);
		if (!w)
			return NULL;
		if (!w->thread && pk_take_place(w, thread))
			return w;
	}
	if (wanted)
		c->stats.waiters_full++;
	return NULL;
}

/* The thread's place; NULL: it has none, and gets none unless that is `wanted`. */
static __always_inline struct pk_waiter *pk_find_waiter(struct pk_cpu *c, __u64 thread, bool wanted)
{
	struct pk_waiter *w = pk_waiter_at((thread >> 32) & (PK_WAITERS - 1));

	if (likely(w && w->thread == thread))
		return w;
	return pk_search_waiter(c, thread, wanted);
}

/*
 * What is known of a thread in this window. Of one that was off the CPU as counting began: it has been
 * since then, or since it was begun itself.
 */
static __always_inline struct pk_waiter *pk_waiter_of(struct pk_cpu *c, struct task_struct *task,
						      bool off_cpu)
{
	struct pk_waiter *w = pk_find_waiter(c, pk_thread_number(task), true);
	__u64 begun;

	if (!w || likely(w->window == window))
		return w;
	w->window = window;
	w->since = 0;
	w->ready = 0;
	w->blocked_ns = 0;
	w->ready_ns = 0;
	w->fresh = 0;
	if (!off_cpu)
		return w;
	begun = task->start_time;
	w->since = started;
	if (begun > w->since) { /* it is ready from the beginning */
		w->since = begun;
		w->ready = begun;
		w->fresh = 1;
	}
	return w;
}

enum { PK_YOUNG_PERIODS = 4 };

/*
 * A thread that has not been off the CPU for some periods shares those of the CPU. Each of thousands of
 * threads that hardly live would leave one unfinished, and the sum be wrong by as many.
 */
static __always_inline struct pk_stratum *pk_stratum_of(struct pk_cpu *c, struct pk_waiter *w, __u64 ns)
{
	__u64 period = c->waits.pace.period;

	if (likely(w->off_cpu.period))
		return &w->off_cpu;
	if (w->off_cpu.rest >= PK_YOUNG_PERIODS * (period ? period : PK_WAIT_PERIOD))
		return &w->off_cpu; /* begins its own */
	w->off_cpu.rest += ns;
	return &c->waits.young;
}

/*
 * How much time a part of a wait that took `ns` stands for; 0: it is not kept. `*waits`: for how many
 * such, about.
 */
static __always_inline __u64 pk_take_part(struct pk_cpu *c, struct pk_waiter *w, __u64 ns, __u32 *waits)
{
	__u64 stands_for = pk_stands_for(pk_stratum_of(c, w, ns), &c->waits.pace, ns, PK_WAIT_PERIOD,
					 PK_KEPT_EACH_SECOND);

	if (unlikely(stands_for))
		*waits = pk_times(stands_for, ns);
	return stands_for;
}

#endif
