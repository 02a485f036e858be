/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What is used of disks, networks and memory, and how long the kernel's locks are waited for
 * (pkprof --resource disk,net,memory,lock). Charged as CPU time is: by the same labels, notes, votes
 * and accounts.
 */
#ifndef PKPROF_USAGE_BPF_H
#define PKPROF_USAGE_BPF_H

#include "core/run.bpf.h"
#include "core/strata.bpf.h"
#include "process/served.bpf.h"
#include "who/count.bpf.h"
#include "who/party.bpf.h"

/* The BPF stack is short. By pk_level(). */
struct usage_scratch_map {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, PK_LEVELS);
	__type(key, __u32);
	__type(value, struct pk_scratch);
};

extern struct usage_scratch_map usage_scratch SEC(".maps");

/*
 * Used by a party. `where`: of a disk or an interface PK_DEVICE(), of memory the kernel stack. `peer`: of a
 * packet; 0 else.
 */
static __always_inline int pk_used_with(struct pk_cpu *c, __u8 usage, __u64 where, __u64 peer, __u64 amount,
					__u32 times, __u64 party, __u32 basis)
{
	struct pk_charge charge = {
		.ran_on = peer,
		.kstack = where,
		.ns = amount,
		.samples = times,
		.kind = PK_USAGE,
		.vec = usage,
		.reason = PK_UNTRACKED,
	};

	return pk_charge_party(c, &charge, party, basis);
}

static __always_inline int pk_used_by(struct pk_cpu *c, __u8 usage, __u64 where, __u64 amount, __u32 times,
				      __u64 party, __u32 basis)
{
	return pk_used_with(c, usage, where, 0, amount, times, party, basis);
}

/* The current kernel stack's number. It begins with `lock`, if that is not 0. */
static __noinline __u64 pk_usage_stack(struct pk_cpu *c, void *ctx, struct pk_stack *buf, __u64 lock)
{
	long size;

	if (!c || !buf)
		return 0;
	buf->ip[0] = lock;
	if (lock)
		size = bpf_get_stack(ctx, buf->ip + 1, sizeof(buf->ip) - sizeof(__u64), 0);
	else
		size = bpf_get_stack(ctx, buf->ip, sizeof(buf->ip), 0);
	if (size <= 0)
		return 0;
	buf->depth = (__u64)size / sizeof(__u64) + !!lock;
	return pk_keep_user_stack(c, buf);
}

static __always_inline struct pk_stack *pk_usage_memory(struct pk_cpu *c)
{
	__u32 level = pk_level(c);
	struct pk_scratch *s = bpf_map_lookup_elem(&usage_scratch, &level);

	return s ? &s->stack : NULL;
}

/* In an interrupt or a thread of the kernel: what the current task is says nothing of whom it is for. */
static __always_inline bool pk_is_elsewhere(struct pk_cpu *c)
{
	struct task_struct *task = bpf_get_current_task_btf();

	return pk_in_interrupt(c) || !task->pid || task->flags & PF_KTHREAD;
}

/* What is used, and of a lock which kind it is. */
#define PK_HOW(usage, lock) ((usage) | (lock) << 8)
#define PK_HOW_USAGE(how) ((how) & 0xff)
#define PK_HOW_LOCK(how) ((how) >> 8)

/*
 * Used by the current thread, in its own context: with its stacks. `ctx` is the program's. `whose`: of a
 * lock, who held it.
 */
static __noinline int pk_used_here(void *ctx, __u32 how, __u64 whose, __u64 amount, __u32 times)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct pk_cpu *c = this_cpu();
	struct pk_stack *stack = pk_usage_memory(c);
	struct pk_key *key = pk_fresh_key();

	if (!stack)
		return 0;
	key->served = pk_current_label(c, task);
	key->ran_on = whose;
	key->kind = PK_USAGE;
	key->usage = PK_HOW_USAGE(how);
	key->lock = PK_HOW_LOCK(how);
	key->basis = PK_BASIS_OWN;
	key->exec_id = task->self_exec_id;
	pk_current_syscall(task, key);
	key->kstack = pk_usage_stack(c, ctx, stack,
				     key->usage == PK_LOCK_WAITED ? c->usage.lock[pk_level(c)].lock : 0);
	key->ustack = pk_user_stack(c, ctx, stack);
	return pk_count(c, key, amount, times);
}

#endif
