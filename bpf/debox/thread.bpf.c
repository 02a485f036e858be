// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Which threads are of interest: those that user space names, and where it asked for that, what
 * they begin.
 */
#include "debox/state.bpf.h"

#include <bpf/bpf_tracing.h>

enum { DB_TAKEN = 0xffffffff }; /* no thread's number: nobody finds what is not filled yet */

/* Of a thread whose program does not read them. */
static __always_inline __u32 db_own_traces(void)
{
	return db_config.tracing ? DB_OWN_TRACES : 0;
}

/* From now on its stack is not known, or of no interest (DB_NO_STACK). */
static __always_inline void db_forget_stack(struct db_thread *t, __u32 now)
{
	__u32 was = __sync_lock_test_and_set(&t->stack, now);

	if (was && was != DB_NO_STACK)
		__sync_fetch_and_add(&db_stacks[(was - 1) & (DB_STACKS - 1)], -1);
	__sync_fetch_and_add(&db_stacks_unknown, (now ? 0 : 1) - (was ? 0 : 1));
}

/* A place for the thread: its own, or a free one, which db_publish() makes its own. */
static __noinline struct db_thread *db_make_room(__u32 tid)
{
	__u32 first = (tid & (DB_SETS - 1)) * DB_WAYS;
	struct db_thread *t = db_find(tid);

	if (t) {
		db_forget_stack(t, 0);
		return t;
	}
	for (__u32 i = 0; i < DB_WAYS; i++) {
		__u32 at = (first + i) & (DB_SETS * DB_WAYS - 1);

		if (__sync_val_compare_and_swap(&db_tids[at], 0, DB_TAKEN))
			continue;
		t = &db_threads[at];
		*t = (struct db_thread){ .slot = at, .base = at, .stride = 1, .stack = DB_NO_STACK };
		db_forget_stack(t, 0);
		return t;
	}
	return 0;
}

static __always_inline void db_publish(struct db_thread *t, __u32 tid)
{
	t->tid = tid;
	asm volatile("" ::: "memory");
	*(volatile __u32 *)&db_tids[t->slot & (DB_SETS * DB_WAYS - 1)] = tid;
}

static __always_inline void db_forget(struct db_thread *t)
{
	db_forget_stack(t, DB_NO_STACK);
	*(volatile __u32 *)&db_tids[t->slot & (DB_SETS * DB_WAYS - 1)] = 0;
}

/* Its records become our own: no program reads them or marks its calls. */
static __always_inline void db_keep_records(struct db_thread *t)
{
	t->area = 0;
	t->base = t->slot;
	t->mask = 0;
	t->stride = 1;
	t->touched = 0;
	t->traces = db_own_traces();
}

static __always_inline void db_count_others(__u32 pid, __s64 change)
{
	struct db_thread *first = db_find(pid);

	if (first)
		__sync_fetch_and_add(&first->others, change);
}

/* A thread of interest begins another, or another process. Its records are nobody's but ours. */
SEC("?tp_btf/sched_process_fork")
int BPF_PROG(db_fork, struct task_struct *parent, struct task_struct *child)
{
	struct db_thread *t = db_find(parent->pid), *new;
	struct db_cpu *c;

	if (child->tgid != child->pid)
		db_count_others(child->tgid, 1);
	if (likely(!t) || !t->begets)
		return 0;
	new = db_make_room(child->pid);
	if (!new) {
		c = db_this_cpu();
		if (c)
			c->stats.threads_full++;
		return 0;
	}
	new->pid = child->tgid;
	new->wants = t->begets;
	new->begets = t->begets;
	db_keep_records(new);
	db_publish(new, child->pid);
	return 0;
}

/* A thread that is not its process's first has that one's number once it executes a program. */
SEC("?tp_btf/sched_process_exec")
int BPF_PROG(db_exec, struct task_struct *task, int old)
{
	struct db_thread *t = db_find(old), *new;
	__u32 wants;

	if (likely(!t)) {
		t = db_find(task->pid);
		if (likely(!t))
			return 0;
	}
	/* Its memory is another: nobody marks there, nobody reads. */
	wants = t->area ? t->begets : t->wants;
	if (!wants) {
		db_forget(t);
		new = db_find(task->pid);
		if (new)
			db_forget(new);
		return 0;
	}
	new = db_make_room(task->pid);
	if (new) {
		__u32 slot = new->slot;

		if (new != t) {
			*new = *t;
			new->stack = 0;
		}
		new->slot = slot;
		new->wants = wants;
		new->busy = 0;
		db_keep_records(new);
		db_publish(new, task->pid);
	}
	if (new != t)
		db_forget(t);
	return 0;
}

SEC("?tp_btf/sched_process_exit")
int BPF_PROG(db_exit_thread, struct task_struct *task)
{
	struct db_thread *t = db_find(task->pid);

	if (task->tgid != task->pid)
		db_count_others(task->tgid, -1);
	if (unlikely(t != 0))
		db_forget(t);
	return 0;
}

/* Run by user space: this thread is of interest, and how. */
SEC("?syscall")
int db_watch(struct db_watched *w)
{
	struct db_watched who = *w;
	struct db_thread *t = who.known ? db_find(who.tid) : db_make_room(who.tid);

	if (!t || (who.known && t->area != who.was))
		return !who.known;
	*(volatile __u64 *)&t->mm = 0;
	t->pid = who.pid;
	t->wants = who.wants;
	t->begets = who.begets;
	t->area = who.area;
	t->base = who.base;
	t->mask = who.mask;
	t->stride = who.stride;
	t->mark = who.mark;
	t->traces = who.traces;
	t->busy = 0;
	if (!who.known)
		t->others = who.others;
	t->sequence = 0;
	t->touched = 0;
	if (!t->area)
		db_keep_records(t);
	t->call = 0;
	t->restart = 0;
	t->off_ns = 0;
	db_publish(t, who.tid);
	return 0;
}

SEC("?syscall")
int db_unwatch(struct db_watched *w)
{
	struct db_thread *t = db_find(w->tid);

	if (t && t->area == w->was)
		db_forget(t);
	return 0;
}

/* What a hook costs before it does anything; see core/empty.bpf.c. */
SEC("?tp_btf/task_rename")
int db_empty(void *ctx)
{
	return 0;
}
