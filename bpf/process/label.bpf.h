/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Labels of processes and threads: a number with when it began. */
#ifndef PKPROF_LABEL_BPF_H
#define PKPROF_LABEL_BPF_H

#include "core/state.bpf.h"
#include "process/number.bpf.h"

/*
 * When the task's process began. Its leader's pointer is read as a number: for each pointer that
 * leads to a pointer, newer verifiers search all of the kernel's types three times, which takes them
 * a millisecond or two a program.
 */
static __always_inline __u64 pk_process_start(struct task_struct *task)
{
	if (likely(task->pid == task->tgid))
		return task->start_boottime;
	return BPF_CORE_READ(task, group_leader, start_boottime);
}

/*
 * The process, whichever of its threads it is. Without threads that is the label of any of them;
 * with threads it is what work is charged to that may be for any of them.
 */
static __always_inline __u64 pk_process_of(struct task_struct *task)
{
	__u64 any = config.threads ? PK_ANY_THREAD : 0;

	return any | (__u64)pk_tgid(task) << 32 | (__u32)(pk_process_start(task) >> 20);
}

static __always_inline __u64 pk_label_of(struct task_struct *task)
{
	if (config.threads)
		return (__u64)pk_tid(task) << 32 | (__u32)(task->start_boottime >> 20);
	return (__u64)pk_tgid(task) << 32 | (__u32)(pk_process_start(task) >> 20);
}

/* The same of any task, given as a number; 0 for none. */
static __always_inline __u64 pk_label_of_task(__u64 taskp)
{
	struct task_struct *task = (void *)taskp;

	if (!task)
		return 0;
	if (config.threads)
		return (__u64)pk_tid_of(task) << 32 |
		       (__u32)(BPF_CORE_READ(task, start_boottime) >> 20);
	return (__u64)pk_tgid_of(task) << 32 |
	       (__u32)(BPF_CORE_READ(task, group_leader, start_boottime) >> 20);
}

/*
 * The label of a task that waits with what it waits for on its stack, at `at`, as told by what is
 * there. By now it may run on another CPU and have left that part of its stack, and then anything
 * may be there: so does it lead to a task whose stack it is? 0 if not. KERNEL for the kernel's own
 * threads.
 */
static __always_inline __u64 pk_label_of_waiter(__u64 at, __u64 taskp)
{
	struct task_struct *task = (void *)taskp;
	__u64 stack = (__u64)BPF_CORE_READ(task, stack);

	if (!stack || at < stack || at >= stack + 32768)
		return 0;
	if (BPF_CORE_READ(task, flags) & PF_KTHREAD)
		return PK_KERNEL;
	return pk_label_of_task(taskp);
}

/* pk_process_of() of any task, given as a number; 0 for none. */
static __always_inline __u64 pk_process_of_task(__u64 taskp)
{
	struct task_struct *task = (void *)taskp;
	__u64 any = config.threads ? PK_ANY_THREAD : 0;

	if (!task)
		return 0;
	return any | (__u64)pk_tgid_of(task) << 32 |
	       (__u32)(BPF_CORE_READ(task, group_leader, start_boottime) >> 20);
}

#endif
