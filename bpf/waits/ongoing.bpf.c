// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Waits that go on as counting ends: asked of each thread then, and counted up to that moment. */
#include "core/hook.bpf.h"
#include "waits/row.bpf.h"
#include "waits/waiter.bpf.h"
#include "waits/waker.bpf.h"

struct bpf_iter__task {
	struct task_struct *task;
} __attribute__((preserve_access_index));

/* It has been off the CPU for good, and waits to be reaped: no time of its life. */
static __always_inline bool pk_has_died(struct pk_cpu *c, struct task_struct *task)
{
	struct pk_waiter *w;

	if (!task->exit_state)
		return false;
	w = pk_find_waiter(c, pk_thread_number(task), false);
	return !w || w->window != window;
}

SEC("?iter/task")
int pk_iter_waits(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct pk_cpu *c = this_cpu();
	struct pk_wait_scratch *s;
	struct pk_waiter *w;
	__u64 now = bpf_ktime_get_ns(), ns;
	struct pk_key *key;
	__u32 waits = 0;
	long size;

	if (!task || !started || task->flags & PF_KTHREAD || task->on_cpu || pk_has_died(c, task))
		return 0;
	w = pk_waiter_of(c, task, true);
	s = pk_wait_memory(c);
	if (!w || !s || !w->since)
		return 0;
	if (w->blocked_ns || w->ready_ns)
		pk_tell_waits(c, w, task, pk_label_of(task), NULL);
	ns = now - (w->ready ? w->ready : w->since);
	if ((__s64)ns <= 0)
		return 0;
	ns = pk_take_part(c, w, ns, &waits);
	if (!ns)
		return 0;
	key = pk_fresh_key();
	pk_begin_wait_row(key, task, pk_label_of(task));
	size = bpf_get_task_stack(task, s->scratch.stack.ip, sizeof(s->scratch.stack.ip), 0);
	if (size > 0) {
		s->scratch.stack.depth = (__u64)size / sizeof(__u64);
		key->kstack = pk_keep_user_stack(c, &s->scratch.stack);
	}
	key->wait_part = w->ready ? PK_WAIT_READY : PK_WAIT_ONGOING;
	if (!w->ready && key->futex) {
		pk_begin_waker(&s->waker, task); /* which lock it is, at least */
		key->waker = pk_keep_waker(&s->waker);
	}
	pk_count(c, key, ns, waits);
	if (w->ready)
		w->ready = now;
	w->since = now;
	return 0;
}
