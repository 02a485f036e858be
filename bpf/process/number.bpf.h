/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Numbers of processes and threads, as they are called where pkprof runs. Inside a PID namespace
 * (a container) /proc, the perf events and the user know them by its numbers, not by the kernel's
 * own. What runs outside it has no number there: it keeps the kernel's, with PK_OUTSIDE.
 */
#ifndef PKPROF_NUMBER_BPF_H
#define PKPROF_NUMBER_BPF_H

#include "core/state.bpf.h"

#define PK_NESTED 16 /* namespaces in one another; the kernel allows 32 */

static __noinline __u32 pk_number_inside(struct pid *pid, __u32 number)
{
	__u64 numbers = (__u64)pid + bpf_core_field_offset(struct pid, numbers);
	__u32 i, level = BPF_CORE_READ(pid, level);

	for (i = 0; pid && i < PK_NESTED && i <= level; i++) {
		struct upid *at = (void *)(numbers + i * bpf_core_type_size(struct upid));

		if (BPF_CORE_READ(at, ns, ns.inum) == config.pid_namespace)
			return BPF_CORE_READ(at, nr);
	}
	return PK_OUTSIDE | number;
}

/* Of a thread that is known to be one; see below for any other. */
static __always_inline __u32 pk_tid(struct task_struct *task)
{
	if (likely(!config.pid_namespace))
		return task->pid;
	return pk_number_inside(BPF_CORE_READ(task, thread_pid), task->pid);
}

static __always_inline __u32 pk_tgid(struct task_struct *task)
{
	if (likely(!config.pid_namespace))
		return task->tgid;
	return pk_number_inside(BPF_CORE_READ(task, group_leader, thread_pid), task->tgid);
}

/* The same of a task that may be gone. */
static __always_inline __u32 pk_tid_of(struct task_struct *task)
{
	__u32 number = BPF_CORE_READ(task, pid);

	if (likely(!config.pid_namespace))
		return number;
	return pk_number_inside(BPF_CORE_READ(task, thread_pid), number);
}

static __always_inline __u32 pk_tgid_of(struct task_struct *task)
{
	__u32 number = BPF_CORE_READ(task, tgid);

	if (likely(!config.pid_namespace))
		return number;
	return pk_number_inside(BPF_CORE_READ(task, group_leader, thread_pid), number);
}

#endif
