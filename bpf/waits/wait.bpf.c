// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Threads leave the CPU, are woken, and come back; see waiter.bpf.h. */
#include "waits/waiter.bpf.h"

#include "core/hook.bpf.h"
#include "core/run.bpf.h"
#include "process/served.bpf.h"
#include "waits/row.bpf.h"
#include "waits/waker.bpf.h"

#include <bpf/bpf_tracing.h>

struct waiters_map waiters SEC(".maps");
struct wakers_map wakers SEC(".maps");
struct turns_map turns SEC(".maps");
struct wait_scratch_map wait_scratch SEC(".maps");

static __always_inline void pk_note_turn(struct task_struct *next, __u64 now)
{
	__u32 zero = 0, at;
	struct pk_turns *t = bpf_map_lookup_elem(&turns, &zero);

	if (!t)
		return;
	at = t->next++ & (PK_RAN - 1);
	t->turn[at].since = now;
	t->turn[at].who = next->pid ? pk_label_of(next) : PK_IDLE;
}

struct pk_turn_loop {
	struct pk_turns *turns;
	__u64 moment;
	__u64 who;
};

/* Back from the newest turn but one: that is the one that begins. */
static long pk_look_at_turn(__u32 i, struct pk_turn_loop *l)
{
	struct pk_turn *turn = &l->turns->turn[(l->turns->next - 2 - i) & (PK_RAN - 1)];

	if (turn->since > l->moment)
		return 0;
	l->who = turn->since ? turn->who : 0;
	return 1;
}

/* Who had this CPU at some moment in the last `ns`; 0: that is not known. */
static __noinline __u64 pk_who_ran(__u64 now, __u64 ns)
{
	struct pk_turn_loop l = {};
	__u32 zero = 0;

	l.turns = bpf_map_lookup_elem(&turns, &zero);
	if (!l.turns)
		return 0;
	l.moment = now - pk_random_part(ns);
	bpf_loop(PK_RAN - 1, pk_look_at_turn, &l, 0);
	return l.who;
}

static __always_inline void pk_leaves(struct pk_cpu *c, struct task_struct *task, __u64 now,
				      bool ready, bool dead)
{
	struct pk_waiter *w = pk_waiter_of(c, task, false);

	if (!w)
		return;
	if (unlikely(w->blocked_ns || w->ready_ns)) /* where its stack could not be taken as it came */
		pk_tell_waits(c, w, task, pk_label_of(task), NULL);
	w->since = now;
	w->ready = ready ? now : 0;
	w->fresh = 0;
	if (unlikely(dead))
		w->thread = 0;
}

/*
 * As counting began it had been woken already. Or it was woken in an interrupt in the middle of another
 * wakeup, whose program does not run then: it was blocked, and nobody says up to when or by whom.
 */
static __noinline int pk_was_woken_unseen(struct pk_cpu *c, struct pk_waiter *w, __u64 now)
{
	if (w->since == started) {
		w->ready = w->since;
		return 0;
	}
	w->ready = now;
	w->blocked_ns = pk_take_part(c, w, now - w->since, &w->blocked);
	w->waker = 0;
	return 0;
}

static __always_inline void pk_comes(struct pk_cpu *c, struct task_struct *task, __u64 now)
{
	struct pk_waiter *w = pk_waiter_of(c, task, true);
	__u64 ns;

	if (!w || !w->since)
		return;
	if (unlikely(!w->ready))
		pk_was_woken_unseen(c, w, now);
	ns = now - w->ready;
	if ((__s64)ns > 0) {
		w->ready_ns = pk_take_part(c, w, ns, &w->queued);
		if (w->ready_ns)
			w->ahead = pk_who_ran(now, ns);
	}
	w->since = 0;
	w->ready = 0;
	if (likely(!w->blocked_ns && !w->ready_ns))
		return;
	if (unlikely(w->fresh)) { /* it has no stack yet */
		pk_tell_waits(c, w, task, pk_label_of(task), NULL);
		return;
	}
	c->waits.pending = 1;
}

SEC("?tp_btf/sched_switch")
int BPF_PROG(pk_wait_switch, bool preempt, struct task_struct *prev, struct task_struct *next,
	     unsigned int prev_state)
{
	struct pk_cpu *c = pk_hook(PK_HOOKS_WAITS);
	__u64 now = bpf_ktime_get_ns();

	if (!started)
		return 0;
	c->waits.pending = 0;
	if (prev->pid && !(prev->flags & PF_KTHREAD))
		pk_leaves(c, prev, now, preempt || !prev_state, prev_state & TASK_DEAD);
	pk_note_turn(next, now);
	if (next->pid && !(next->flags & PF_KTHREAD))
		pk_comes(c, next, now);
	return 0;
}

SEC("?tp_btf/sched_waking")
int BPF_PROG(pk_wait_ends, struct task_struct *woken)
{
	struct pk_cpu *c = pk_hook(PK_HOOKS_WAITS);
	struct pk_waiter *w;
	__u64 now, ns;

	if (!started || woken->flags & PF_KTHREAD)
		return 0;
	w = pk_waiter_of(c, woken, true);
	if (!w || !w->since || w->ready)
		return 0; /* it has not gone yet */
	now = bpf_ktime_get_ns();
	w->ready = now;
	pk_note_waking(c, w, now);
	ns = now - w->since;
	if ((__s64)ns <= 0)
		return 0;
	w->blocked_ns = pk_take_part(c, w, ns, &w->blocked);
	if (w->blocked_ns)
		w->waker = pk_note_waker(c, ctx, woken, w->since);
	return 0;
}

/* In the context of the task that has come, if it has waits to be told. */
static __always_inline int pk_tell_pending(void *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct pk_cpu *c = this_cpu();
	struct pk_waiter *w;

	c->waits.pending = 0;
	w = pk_find_waiter(c, pk_thread_number(task), false);
	if (w && (w->blocked_ns || w->ready_ns))
		pk_tell_waits(c, w, task, pk_current_label(c, task), ctx);
	return 0;
}

SEC("?tp_btf/sched_exit_tp")
int BPF_PROG(pk_wait_over, bool is_switch)
{
	struct pk_cpu *c = pk_hook(PK_HOOKS_WAITS);

	return likely(!c->waits.pending) ? 0 : pk_tell_pending(ctx);
}

/* Before there was a tracepoint. */
SEC("?fexit/schedule")
int BPF_PROG(pk_wait_over_by_function)
{
	struct pk_cpu *c = pk_hook(PK_HOOKS_WAITS);

	return likely(!c->waits.pending) ? 0 : pk_tell_pending(ctx);
}
