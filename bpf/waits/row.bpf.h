/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Rows of waits: what is kept of one is counted, with the stack of the thread that waited. */
#ifndef PKPROF_WAIT_ROW_BPF_H
#define PKPROF_WAIT_ROW_BPF_H

#include "process/served.bpf.h"
#include "waits/waiter.bpf.h"
#include "who/count.bpf.h"

enum { SYS_FUTEX_NUMBER = 202, FUTEX_COMMAND = 0x7f }; /* arch/x86/entry/syscalls/syscall_64.tbl */

static __always_inline void pk_begin_wait_row(struct pk_key *key, struct task_struct *task, __u64 label)
{
	struct pt_regs___kernel *regs = (void *)bpf_task_pt_regs(task);

	key->served = label;
	key->kind = PK_WAIT;
	key->basis = PK_BASIS_OWN;
	key->exec_id = task->self_exec_id;
	pk_current_syscall(task, key);
	if (key->syscall == SYS_FUTEX_NUMBER && !key->compat)
		key->futex = 1 + (regs->si & FUTEX_COMMAND);
}

/* The address of the futex that a thread is about, 0: it is in no such call. */
static __always_inline __u64 pk_futex_of(struct task_struct *task)
{
	struct pt_regs___kernel *regs = (void *)bpf_task_pt_regs(task);

	return regs->orig_ax == SYS_FUTEX_NUMBER && !(task->thread_info.status & TS_COMPAT) ? regs->di : 0;
}

static __noinline __u64 pk_waiter_kernel_stack(struct pk_cpu *c, void *ctx, struct pk_stack *buf)
{
	long size = bpf_get_stack(ctx, buf->ip, sizeof(buf->ip), 0);

	if (size <= 0)
		return 0;
	buf->depth = (__u64)size / sizeof(__u64);
	return pk_keep_user_stack(c, buf);
}

/* `ctx`: of a program that runs in the thread's own context; NULL: it is not known where it waited. */
static __noinline int pk_tell_waits(struct pk_cpu *c, struct pk_waiter *w, struct task_struct *task,
				    __u64 label, void *ctx)
{
	struct pk_wait_scratch *s = pk_wait_memory(c);
	struct pk_key *key = pk_fresh_key();

	if (!s)
		return 0;
	pk_begin_wait_row(key, task, label);
	if (ctx) {
		key->kstack = pk_waiter_kernel_stack(c, ctx, &s->scratch.stack);
		key->ustack = pk_user_stack(c, ctx, &s->scratch.stack);
	}
	if (w->blocked_ns) {
		key->waker = w->waker;
		key->wait_part = PK_WAIT_BLOCKED;
		pk_count(c, key, w->blocked_ns, w->blocked);
	}
	if (w->ready_ns) {
		key->ran_on = w->ahead;
		key->wait_part = PK_WAIT_READY;
		pk_count(c, key, w->ready_ns, w->queued);
	}
	w->blocked_ns = 0;
	w->ready_ns = 0;
	return 0;
}

#endif
