/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Reading a kernel stack: which work is this?
 *
 * The source is read off the sampled stack instead of being noted at every entry and exit. User
 * space looks up the address ranges of a few functions before loading; walking from the leaf, the
 * first frame in the softirq loop ends the asynchronous part, and the frames passed before it say
 * how far the work has come. What lies beyond is the context that was interrupted, and not part
 * of this stack.
 */
#ifndef PKPROF_PLACE_BPF_H
#define PKPROF_PLACE_BPF_H

#include "core/state.bpf.h"

/* Frames beyond the softirq loop that are looked at: was it entered from sending? */
enum { PK_LOOK_BEYOND = 8 };

/* A program that is attached to a function's entry is called by its first bytes. */
enum { PK_ENTRY_BYTES = 16 };

/* At most so many of them are those of the interrupt at whose end softirqs run. */
enum { PK_INTERRUPT_FRAMES = 4 };

/*
 * The function that an address lies in, as an index; the table is sorted by start. Without a
 * branch: the verifier would follow each way through all seven. Kernel addresses, and the entries
 * that are not used, are in the upper half, where a difference's sign says which is larger.
 */
static __always_inline __u32 pk_find_function(__u64 ip)
{
	__u64 i = 0;

#pragma unroll
	for (__u32 step = PK_FUNCTIONS / 2; step; step /= 2) {
		__u64 at = i + step;
		__s64 past;

		forget_value(at); /* or the compiler, knowing its limit, leaves out the mask */
		past = ip - addresses.functions[at & (PK_FUNCTIONS - 1)].start;
		i += step & ~(past >> 63);
	}
	return i & (PK_FUNCTIONS - 1);
}

static __always_inline __u32 pk_function_class(__u64 ip)
{
	volatile struct pk_function *f = &addresses.functions[pk_find_function(ip)];

	return ip >= f->start && ip < f->end ? f->class_ : PK_FN_NONE;
}

/*
 * What the walk knows so far is in the scratch memory, not on the stack: Linux 6.1's verifier looks
 * at a loop's body once, and would take what is 0 on the stack then for 0 at every frame.
 */
struct pk_walk {
	struct pk_scratch *scratch;
};

static long pk_place_frame(__u32 i, struct pk_walk *walk)
{
	struct pk_place *p = &walk->scratch->place;
	volatile struct pk_function *f;
	__u32 class = PK_FN_NONE;
	__u64 ip;

	if (i >= PK_MAX_DEPTH)
		return 1;
	ip = walk->scratch->stack.ip[i];
	f = &addresses.functions[pk_find_function(ip)];
	if (ip >= f->start && ip < f->end)
		class = f->class_;
	if (p->async) {
		if (class == PK_FN_TRANSMIT)
			p->inline_send = 1;
		return ++p->beyond >= PK_LOOK_BEYOND;
	}
	p->hash = mix(p->hash, ip);
	p->depth = i + 1;
	if (class == PK_FN_NONE) {
		p->foreign = 1;
		return 0;
	}
	if (class == PK_FN_ACTION) {
		p->vec = f->arg;
		if (f->arg == PK_VEC_NET_TX)
			p->at |= PK_AT_QDISC;
		return 0;
	}
	if (class == PK_FN_NAMED && (!i || p->at & PK_AT_HOOK || ip < f->start + PK_ENTRY_BYTES))
		return 0; /* the hook may be still to come, or at work */
	p->at |= 1 << (class & 31);
	if (class == PK_FN_UNLOCK)
		p->unlock = i + 1;
	if (class == PK_FN_RECEIVE)
		p->receive = f->arg ? 0 : i + 1; /* of a list's packets it does not say which */
	if (class == PK_FN_SOFTIRQ || class == PK_FN_NAPI_THREAD) {
		if (class == PK_FN_NAPI_THREAD)
			p->vec = PK_VEC_NET_RX;
		/* hrtimer_run_softirq ends with a jump to it, and no other vector's does. */
		else if (p->vec == PK_VEC_NONE && i && p->unlock == i)
			p->vec = PK_VEC_HRTIMER;
		p->async = 1;
	}
	return 0;
}

/* The scratch stack has `depth` frames; what is asynchronous of them is numbered and described. */
static __always_inline struct pk_place *pk_read_place(struct pk_scratch *scratch, __u32 depth)
{
	struct pk_walk walk = { .scratch = scratch };
	struct pk_place *p = &scratch->place;

	*p = (struct pk_place){ .hash = config.seed, .vec = PK_VEC_NONE };
	bpf_loop(depth, pk_place_frame, &walk, 0);
	if (!p->hash)
		p->hash = 1;
	return p;
}

#endif
