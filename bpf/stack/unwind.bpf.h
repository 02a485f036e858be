/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The way up a kernel stack, remembered.
 *
 * The kernel finds its way up by tables (ORC) that it searches anew for each frame. Where a load has
 * filled the caches that takes some microseconds a frame, and most of what a sample costs. But how
 * far it is from one frame to the next is a matter of the code's address alone, and is remembered by
 * address: a frame costs a look at that and a word of the stack. It comes from those tables
 * (orc.bpf.h) or, where they do not say it by the address alone, from what the kernel answered when
 * it was asked (unwind_learn.bpf.h).
 *
 * The function that every system call begins with has a frame of random size
 * (RANDOMIZE_KSTACK_OFFSET): where it returns to is known by the other end, the top of the stack.
 * Other functions whose frames are not of one size at one address (alignment, alloca) contradict
 * themselves, and are left to the kernel.
 */
#ifndef PKPROF_UNWIND_BPF_H
#define PKPROF_UNWIND_BPF_H

#include "core/state.bpf.h"
#include "stack/orc.bpf.h"
#include "stack/place.bpf.h"

/*
 * How a frame is left. An entry: 32 bits of address, 16 of words, 8 of this, 4 of how often it was
 * found again, 4 of how often it was given up for another.
 */
enum pk_unwind_step {
	PK_UNWIND_CALL = 1, /* what it returns to lies so many words up */
	PK_UNWIND_SWITCH,   /* the same, from where the word up here points: on another stack */
	PK_UNWIND_TOP,	    /* it lies right below the task's user registers */
	PK_UNWIND_REGS,	    /* registers of what was interrupted lie here */
	PK_UNWIND_END,
	PK_UNWIND_VARIES, /* not by its address */
};

enum {
	PK_UNWIND_SURE = 2,   /* found again so often: it may be built on */
	PK_UNWIND_SUREST = 7, /* more often is not counted */
	PK_UNWIND_TOLD = 15,  /* by the kernel's tables */
};

enum { PK_REGS_IP = 16 }; /* words from the begin of struct pt_regs to the address */

/* What the processor put there, of struct pt_regs. */
struct pk_interrupted {
	__u64 ip;
	__u64 cs;
	__u64 flags;
	__u64 sp;
};

static __always_inline __u64 pk_unwind_step(__u64 entry)
{
	return entry >> 48 & 0xff;
}

static __always_inline __u64 pk_unwind_words(__u64 entry)
{
	return entry >> 32 & 0xffff;
}

static __always_inline __u64 pk_unwind_found(__u64 entry)
{
	return entry >> 56 & 0xf;
}

static __always_inline __u64 pk_unwind_given_up(__u64 entry)
{
	return entry >> 60;
}

/*
 * The kernel's code is in the uppermost 2 GiB: 31 bits tell an address. Where a call returns to
 * belongs to the instruction before, where the code was interrupted does not. 0: not the kernel's.
 */
static __always_inline __u32 pk_unwind_tag(__u64 ip, __u64 exact)
{
	if (ip >> 31 != 0x1ffffffffULL)
		return 0;
	return (ip & 0x7fffffff) | (exact ? 1U << 31 : 0);
}

/* Each address has two places, side by side. */
static __always_inline __u64 *pk_unwind_place(__u32 tag, __u32 other)
{
	__u32 at = (tag * 0x9e3779b1U >> 16) ^ other;

	return &unwinds[at & (PK_UNWINDS - 1)];
}

static __always_inline __u64 pk_unwind_find(__u64 ip, __u64 exact)
{
	__u32 tag = pk_unwind_tag(ip, exact);
	__u64 entry = *pk_unwind_place(tag, 0);

	if (likely((__u32)entry == tag))
		return entry;
	entry = *pk_unwind_place(tag, 1);
	return (__u32)entry == tag ? entry : 0;
}

/*
 * Where it is to be remembered. Which of two gives way is by no rule, or two that want the same would
 * never meet.
 */
static __always_inline __u64 *pk_unwind_room(__u32 tag, __u64 random)
{
	__u64 *place = pk_unwind_place(tag, 0), *other = pk_unwind_place(tag, 1);

	if ((__u32)*other == tag)
		return other;
	if ((__u32)*place != tag && *place && (!*other || random & 1))
		return other;
	return place;
}

/*
 * What the kernel's tables say of an address, remembered; 0: not what is asked for here. It is global,
 * as is the search in them: a verifier goes through a static function anew from each place, and way,
 * that calls it.
 */
__weak __noinline __u64 pk_unwind_look_up(__u64 ip, __u64 exact)
{
	__u32 tag = pk_unwind_tag(ip, exact);
	__s64 words = tag ? pk_orc_words(ip, exact) : -1;
	__u64 entry;

	if (words < 0)
		return 0;
	entry = tag | (__u64)words << 32 | (__u64)PK_UNWIND_CALL << 48 |
		(__u64)PK_UNWIND_TOLD << 56;
	*pk_unwind_room(tag, ip >> 4) = entry;
	return entry;
}

static __always_inline __u64 pk_unwind_word(__u64 at)
{
	__u64 word = 0;

	bpf_probe_read_kernel(&word, sizeof(word), (void *)at);
	return word;
}

/* In the loops below what changes is in map memory: see struct pk_walk in place.bpf.h. */
struct pk_unwind_loop {
	struct pk_scratch *scratch;
};

static long pk_unwind_frame(__u32 i, struct pk_unwind_loop *l)
{
	struct pk_unwind *u = &l->scratch->unwind;
	struct pk_interrupted regs = {};
	__u64 entry, step, at = u->sp;

	if (i >= PK_MAX_DEPTH)
		return 1;
	l->scratch->stack.ip[i] = u->ip;
	l->scratch->places[i] = at;
	u->depth = i + 1;
	entry = pk_unwind_find(u->ip, u->exact);
	if (unlikely(!pk_unwind_found(entry)))
		entry = pk_unwind_look_up(u->ip, u->exact);
	step = pk_unwind_found(entry) ? pk_unwind_step(entry) : 0;
	if (likely(step == PK_UNWIND_CALL || step == PK_UNWIND_SWITCH || step == PK_UNWIND_TOP)) {
		if (step == PK_UNWIND_SWITCH)
			at = pk_unwind_word(at);
		at = step == PK_UNWIND_TOP ? u->top : at + pk_unwind_words(entry) * 8;
		u->ip = pk_unwind_word(at);
		u->sp = at + 8;
		u->exact = 0;
		return 0;
	}
	if (step == PK_UNWIND_REGS) {
		if (bpf_probe_read_kernel(&regs, sizeof(regs), (void *)(at + PK_REGS_IP * 8)))
			return 1;
		u->ip = regs.ip;
		u->sp = regs.sp;
		u->exact = 1;
		u->whole = (regs.cs & 3) != 0;
		return u->whole;
	}
	u->whole = step == PK_UNWIND_END;
	return 1;
}

/* Where the first function of a system call returns to. */
static __always_inline __u64 pk_unwind_top(void)
{
	return (__u64)bpf_task_pt_regs(bpf_get_current_task_btf()) - 8;
}

/*
 * Whether the way up is known as a whole. If so it is in scratch->stack, .depth frames. So far as it is
 * known, .places are where the code has its stack pointer.
 */
static __always_inline bool pk_unwind_known(struct pk_scratch *scratch, __u64 ip, __u64 sp)
{
	struct pk_unwind_loop l = { .scratch = scratch };

	scratch->unwind =
		(struct pk_unwind){ .ip = ip, .sp = sp, .top = pk_unwind_top(), .exact = 1 };
	bpf_loop(PK_MAX_DEPTH, pk_unwind_frame, &l, 0);
	return scratch->unwind.whole;
}

#endif
