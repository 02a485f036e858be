/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Writing to the tables: counts and stacks. Each call either finds room or adds to a counter
 * that the report shows; CPU time that finds none is added up as lost, so that the ledger still
 * sums.
 */
#ifndef PKPROF_COUNT_BPF_H
#define PKPROF_COUNT_BPF_H

#include "core/state.bpf.h"
#include "process/mapping.bpf.h"
#include "user/unwind.bpf.h"

/* Where a key is put together: the BPF stack is short, and 6.1 takes no key from a caller's. */
static __always_inline struct pk_key *pk_fresh_key(void)
{
	struct pk_cpu *me = this_cpu();
	struct pk_key *key = &me->scratch.row[pk_level(me)];

	*key = (struct pk_key){ .syscall = PK_NO_SYSCALL };
	return key;
}

/* Adds to one row of the counts. `key` may be pk_fresh_key()'s. */
int pk_count(struct pk_cpu *c, struct pk_key *key, __u64 ns, __u32 samples);

/* Stores a stack whose number is `id` unless it is there. Returns the number, 0 if it has no room. */
static __always_inline __u64 pk_store_stack(struct pk_cpu *c, __u64 id, struct pk_stack *stack)
{
	__u32 zero = 0;
	void *table = bpf_map_lookup_elem(&stacks, &zero);
	long err;

	if (table) {
		if (bpf_map_lookup_elem(table, &id))
			return id;
		err = bpf_map_update_elem(table, &id, stack, BPF_NOEXIST);
		if (!err)
			__sync_fetch_and_add(&stored_stacks, 1);
		if (!err || err == -17 /* EEXIST */)
			return id;
	}
	c->stats.stacks_full++;
	return 0;
}

/* The number of a stack: a seeded hash of its frames, so that it needs no table to be found. */
struct pk_hash_loop {
	struct pk_stack *stack;
	__u64 hash;
};

static long pk_hash_frame(__u32 i, struct pk_hash_loop *l)
{
	if (i >= PK_MAX_DEPTH)
		return 1;
	l->hash = mix(l->hash, l->stack->ip[i]);
	return 0;
}

static __always_inline __u64 pk_number_stack(struct pk_stack *stack)
{
	struct pk_hash_loop l = { .stack = stack, .hash = config.seed + stack->depth };

	/* The upper half is how it ended. A mask, since an inlined loop counts to all 64 bits. */
	bpf_loop(stack->depth & 0xff, pk_hash_frame, &l, 0);
	return l.hash ? l.hash : 1;
}

/* By itself: in Linux 6.1 calls that are in each other have 512 bytes of stack together. */
static __noinline __u64 pk_keep_user_stack(struct pk_cpu *c, struct pk_stack *buf)
{
	if (!c || !buf)
		return 0;
	return pk_store_stack(c, pk_number_stack(buf) & ~PK_STACK_UNFINISHED, buf);
}

/* The user stack of the current task; 0 if it has none. `ctx` is the program's. */
static __always_inline __u64 pk_user_stack(struct pk_cpu *c, void *ctx, struct pk_stack *buf)
{
	__u64 number = pk_unwind_user(c, buf);

	if (number & PK_STACK_UNFINISHED)
		return number;
	if (number == PK_NO_USER_STACK)
		return 0;
	if (!number) {
		long len = bpf_get_stack(ctx, buf->ip, sizeof(buf->ip), BPF_F_USER_STACK);

		if (len <= 0) {
			/* A process on its way out has no user side any more. */
			if (!(bpf_get_current_task_btf()->flags & PF_EXITING))
				c->stats.no_ustack++;
			return 0;
		}
		buf->depth = (__u64)len / 8;
		pk_tell_mappings(c, buf);
	}
	return pk_keep_user_stack(c, buf);
}

#endif
