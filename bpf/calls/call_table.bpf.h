/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Counting calls (the paper's monitor; mcount): of each chosen function every call, with its caller,
 * and for whom.
 *
 * A call in a process's own context is the process's. One in asynchronous work is for whom that
 * work is, by the same hooks that settle samples. But a sample can wait on an account for who takes
 * the data, with its stack; calls are too many for that. They wait on their CPU, and only until a
 * hook names the object: they are counted under its number then, and user space finds its owner.
 *
 * What a CPU counts lies in a table of its own, so that most calls are a comparison and an addition;
 * an entry that makes room for another goes into the tables that samples are in. An entry is locked
 * while it is used. Who finds it locked has interrupted its user, or is user space emptying it, and
 * counts in the tables at once.
 *
 * Calls that counting itself makes are none.
 */
#ifndef PKPROF_CALL_TABLE_BPF_H
#define PKPROF_CALL_TABLE_BPF_H

#include "core/run.bpf.h"
#include "core/state.bpf.h"
#include "process/served.bpf.h"
#include "who/account.bpf.h"
#include "who/party.bpf.h"

enum pk_call_level { PK_IN_TASK, PK_IN_SOFTIRQ, PK_IN_INTERRUPT, PK_IN_NMI };

/* What interrupts what. The hook on a call adds no level of its own. */
static __always_inline __u32 pk_call_level(struct pk_cpu *c)
{
	__u32 count = 0;

	bpf_probe_read_kernel(&count, sizeof(count), (void *)(c->percpu + config.preempt_count));
	if (likely(!(count & (SOFTIRQ_OFFSET | HARDIRQ_MASK | NMI_MASK))))
		return PK_IN_TASK;
	return count & NMI_MASK ? PK_IN_NMI : count & HARDIRQ_MASK ? PK_IN_INTERRUPT : PK_IN_SOFTIRQ;
}

/* Adds calls to a row of the tables. */
static __noinline int pk_put_calls(struct pk_cpu *c, const struct pk_call *call)
{
	struct pk_count *v, fresh = { .samples = call->count };
	struct pk_key key = {
		.served = call->served,
		.function = call->function,
		.caller = call->caller,
		.syscall = PK_NO_SYSCALL,
		.kind = PK_CALLS,
		.vec = PK_VEC_NONE,
		.basis = PK_CALL_BASIS(call->how),
		.reason = PK_CALL_REASON(call->how),
	};
	__u32 zero = 0, limit = rows_with_stacks;
	void *table = bpf_map_lookup_elem(&counts, &zero);

	if (call->served & PK_OBJECT)
		key.served_kind = PK_SERVED_OBJECT;
	else if (PK_CALL_BASIS(call->how) == PK_BASIS_OWN && call->served >> 32)
		key.ran_on = call->served;
	if (call->how & PK_CALL_OF_THREAD)
		key.served = PK_KERNEL;
	if (table) {
		v = bpf_map_lookup_elem(table, &key);
		if (!v && unlikely(rows >= limit)) {
			/* Nearly full: the calls are kept, the callers are not. */
			key.caller = 0;
			__sync_fetch_and_add(&c->stats.calls_shortened, call->count);
			v = bpf_map_lookup_elem(table, &key);
		}
		/* The rest of the room is for samples. */
		if (!v && likely(rows < limit + limit / 8)) {
			if (!bpf_map_update_elem(table, &key, &fresh, BPF_NOEXIST)) {
				__sync_fetch_and_add(&rows, 1);
				return 0;
			}
			v = bpf_map_lookup_elem(table, &key); /* another CPU was first? */
		}
		if (v) {
			__sync_fetch_and_add(&v->samples, call->count);
			return 0;
		}
	}
	__sync_fetch_and_add(&c->stats.calls_lost, call->count);
	return 0;
}

static __always_inline bool pk_lock_call(struct pk_call *call)
{
	return !__sync_lock_test_and_set(&call->lock, 1);
}

static __always_inline void pk_unlock_call(struct pk_call *call)
{
	asm volatile("" ::: "memory");
	*(volatile __u32 *)&call->lock = 0;
}

/*
 * Counts one call on this CPU. Returns whether it is the first of its kind, as far as the CPU
 * remembers: then user space may not know the party yet.
 */
static __always_inline bool pk_add_call(struct pk_cpu *c, __u32 cpu, __u64 function, __u64 caller,
					__u64 served, __u32 how)
{
	struct pk_call out = { .function = function, .caller = caller, .served = served,
			       .how = how, .count = 1 };
	__u32 slot = ((__u32)function * 0x9e3779b1U ^ (__u32)caller * 0x85ebca6bU ^
		      (__u32)(served >> 32) * 0xc2b2ae35U) >> 20;
	__u32 index = cpu * PK_CALL_SLOTS + (slot & (PK_CALL_SLOTS - 1));
	struct pk_call *call = bpf_map_lookup_elem(&calls, &index);

	if (unlikely(!call || !pk_lock_call(call))) {
		pk_put_calls(c, &out);
		return true;
	}
	if (likely(call->function == function && call->caller == caller &&
		   call->served == served && call->how == how)) {
		call->count++;
		pk_unlock_call(call);
		return false;
	}
	out.function = call->function;
	out.caller = call->caller;
	out.served = call->served;
	out.how = call->how;
	out.count = call->count;
	call->function = function;
	call->caller = caller;
	call->served = served;
	call->how = how;
	call->count = 1;
	pk_unlock_call(call);
	if (out.count)
		pk_put_calls(c, &out);
	return true;
}

#endif
