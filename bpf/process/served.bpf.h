/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Served-process tracking (the paper's svdproc): who the current task is, as a label, and what
 * it called the kernel for. In its own context the current process is the one that is served.
 */
#ifndef PKPROF_SERVED_BPF_H
#define PKPROF_SERVED_BPF_H

#include "core/state.bpf.h"
#include "process/file_name.bpf.h"
#include "process/label.bpf.h"

/* What is to be told of a task: the name that it has now, and the one that it was first met by. */
static __always_inline void pk_fill_label(struct task_struct *task, __u64 label,
					  struct pk_label *info, bool with_program)
{
	struct task_struct *leader = BPF_CORE_READ(task, group_leader);
	struct pk_label *before;

	info->start_boottime = BPF_CORE_READ(leader, start_boottime);
	info->pid = pk_tgid(task);
	info->tid = pk_tid(task);
	info->parent = pk_tgid_of(BPF_CORE_READ(leader, real_parent));
	info->cgroup = BPF_CORE_READ(leader, cgroups, dfl_cgrp, kn, id);
	info->uid = BPF_CORE_READ(leader, cred, uid.val);
	info->flags = task->flags & PF_KTHREAD ? PK_LABEL_KTHREAD : 0;
	info->seen = bpf_ktime_get_ns();
	info->exec_id = task->self_exec_id;
	BPF_CORE_READ_STR_INTO(&info->comm, leader, comm);
	BPF_CORE_READ_STR_INTO(&info->thread_comm, task, comm);
	info->program = with_program ? pk_current_program() : PK_FILE_NONE;
	__builtin_memcpy(info->first_comm, info->comm, PK_COMM_LEN);
	before = bpf_map_lookup_elem(&labels, &label);
	if (before && before->exec_id == info->exec_id)
		__builtin_memcpy(info->first_comm, before->first_comm, PK_COMM_LEN);
}

/*
 * Tells user space of the current process or thread, if this CPU did not do so lately. `info` is
 * where that is put together. A program that is loaded for each function that it counts has no
 * loops with bodies of their own, as finding the path of what the process runs has: Linux 6.1 asks
 * for type information with those.
 */
static __always_inline void pk_tell_label(struct pk_cpu *c, struct task_struct *task, __u64 label,
					  struct pk_label *info, bool with_program)
{
	__u32 place = (label * 0x9e3779b97f4a7c15ULL >> 32) & (PK_FRESH_LABELS - 1);
	struct pk_fresh_label *fresh = &c->sampler.fresh[place];

	if (likely(fresh->label == label && fresh->epoch == epoch &&
		   fresh->exec_id == (__u32)task->self_exec_id))
		return;
	fresh->label = label;
	fresh->epoch = epoch;
	fresh->exec_id = task->self_exec_id;
	pk_fill_label(task, label, info, with_program);
	if (bpf_map_update_elem(&labels, &label, info, BPF_ANY))
		c->stats.labels_full++;
}

/* The label of the current process or thread, told to user space. The idle task is PK_IDLE. */
static __always_inline __u64 pk_current_label(struct pk_cpu *c, struct task_struct *task)
{
	struct pk_cpu *me = this_cpu(); /* 6.1 takes a map's memory as a value, and no argument's */
	__u64 label;

	if (task->pid == 0)
		return PK_IDLE;
	label = pk_label_of(task);
	pk_tell_label(c, task, label, &me->scratch.who[pk_level(me)], true);
	return label;
}

/*
 * The system call the current task is in; PK_NO_SYSCALL when it came into the kernel another way
 * (the entry code sets orig_ax to -1 there, arch/x86/entry/entry_64.S).
 */
static __always_inline void pk_current_syscall(struct task_struct *task, struct pk_key *key)
{
	struct pt_regs___kernel *regs = (void *)bpf_task_pt_regs(task);
	long nr = regs->orig_ax;

	key->syscall = nr >= 0 && nr < PK_NO_SYSCALL ? nr : PK_NO_SYSCALL;
	key->compat = (task->thread_info.status & TS_COMPAT) != 0;
}

#endif
