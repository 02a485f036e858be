/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Learning the way up kernel stacks: the kernel has named a stack's frames, which are looked for on
 * it, and how far it is from one to the next is remembered (unwind.bpf.h).
 */
#ifndef PKPROF_UNWIND_LEARN_BPF_H
#define PKPROF_UNWIND_LEARN_BPF_H

#include "core/state.bpf.h"
#include "stack/place.bpf.h"
#include "stack/unwind.bpf.h"

enum {
	PK_UNWIND_WORDS = 2048,	 /* of stacks that are searched for one stack's frames */
	PK_UNWIND_GIVEN_UP = 15, /* so often, and it is an address whose frames vary */
	PK_UNWIND_FRAME = 4096,	 /* bytes: no frame is longer, */
	PK_UNWIND_FIRST = 512,	 /* and few of those that call nothing */
};

/* What a frame may be left by, as far as the search can tell: `step` by so many words, or so many. */
struct pk_unwind_lesson {
	__u64 step;
	__u64 words[4];
};

static __always_inline bool pk_unwind_agrees(__u64 entry, const struct pk_unwind_lesson *lesson)
{
	__u64 words = pk_unwind_words(entry);

	return pk_unwind_step(entry) == lesson->step &&
	       (words == lesson->words[0] || words == lesson->words[1] ||
		words == lesson->words[2] || words == lesson->words[3]);
}

/* Without a doubt once is enough; else it is to be found again before it counts. */
static __always_inline __u64 pk_unwind_undoubted(const struct pk_unwind_lesson *lesson)
{
	return lesson->words[0] == lesson->words[1];
}

/*
 * What is to be remembered where this is known already, as `old`. Old words on the stack are now
 * here, now there; the right one is where it is. So what is found again is right.
 */
static __always_inline __u64 pk_unwind_both(struct pk_unwind *u, __u64 old,
					    const struct pk_unwind_lesson *lesson)
{
	__u64 found = pk_unwind_found(old), given_up = pk_unwind_given_up(old);
	__u64 step = pk_unwind_step(old), words = pk_unwind_words(old);

	/* A stack that the kernel leaves a frame out of does not prove its tables wrong. */
	if (step == PK_UNWIND_VARIES || (found == PK_UNWIND_TOLD && !u->differs))
		return old;
	if (pk_unwind_agrees(old, lesson)) {
		found += found < PK_UNWIND_SUREST;
	} else if (found && !u->differs) {
		found--;
	} else if (given_up < PK_UNWIND_GIVEN_UP) {
		found = pk_unwind_undoubted(lesson);
		given_up++;
		step = lesson->step;
		words = lesson->words[given_up & 1];
	} else {
		step = PK_UNWIND_VARIES;
	}
	return (__u32)old | words << 32 | step << 48 | found << 56 | given_up << 60;
}

__weak __noinline int pk_unwind_learn(struct pk_unwind *u, const struct pk_unwind_lesson *lesson)
{
	__u64 *place;
	__u32 tag;

	if (!u || !lesson)
		return 0;
	tag = pk_unwind_tag(u->ip, u->exact);
	if (!tag || lesson->words[0] > 0xffff || lesson->words[1] > 0xffff)
		return 0;
	place = pk_unwind_room(tag, u->sp >> 4);
	if ((__u32)*place == tag) {
		*place = pk_unwind_both(u, *place, lesson);
		return 0;
	}
	*place = tag | lesson->words[0] << 32 | lesson->step << 48 |
		 pk_unwind_undoubted(lesson) << 56;
	return 0;
}

/*
 * The search for the frames that the kernel has named. Each names a word on the stack, but old words
 * lie there, too. So it is looked for twice, up from where the task was interrupted (.places) and down
 * from the stack's end (.check). Where both ways lead to the same place there is no doubt.
 */
enum {
	PK_PLACE_SWITCHED = 1, /* on another stack than the one below */
	PK_PLACE_REGS = 2,     /* in registers that lie there */
	PK_PLACE_BITS = 3,
};

static __always_inline __u64 pk_unwind_address(__u64 place)
{
	return place & ~(__u64)PK_PLACE_BITS;
}

/* Where the code of this frame has its stack, once what it called has returned. */
static __always_inline __u64 pk_unwind_begin(__u64 place)
{
	if (place & PK_PLACE_REGS)
		return pk_unwind_word(pk_unwind_address(place) + 3 * 8);
	return pk_unwind_address(place) + 8;
}

/*
 * Whether the way leads on from a place, where `ip` is, to the frame after the next: 1: it does,
 * 0: nothing is known for sure, -1: it does not.
 */
static __always_inline int pk_unwind_leads_on(__u64 at, __u64 ip, __u64 next)
{
	__u64 entry = pk_unwind_find(ip, 0);

	if (pk_unwind_step(entry) != PK_UNWIND_CALL || pk_unwind_found(entry) < PK_UNWIND_SURE)
		return 0;
	return pk_unwind_word(at + 8 + pk_unwind_words(entry) * 8) == next ? 1 : -1;
}

/* One word, on the way up: is it what the frame at hand returns to? */
static long pk_unwind_up(__u32 i, struct pk_unwind_loop *l)
{
	struct pk_unwind *u = &l->scratch->unwind;
	struct pk_interrupted regs = {};
	__u64 word = 0, flags = 0;
	__u32 here = u->depth;

	if (here >= PK_MAX_DEPTH - 1 || here + 1 >= u->frames)
		return 1;
	if (bpf_probe_read_kernel(&word, sizeof(word), (void *)u->at) ||
	    u->at - u->from > PK_UNWIND_FRAME) {
		/* Past this stack's end: does the frame's first word lead to another one? */
		u->at = pk_unwind_word(u->sp);
		if (!u->switched && (__s64)u->at < 0) {
			u->switched = 1;
			u->from = u->at;
			return 0;
		}
		/* Or is it that what is known for sure is wrong? */
		if (u->doubting)
			return 1;
		u->doubting = 1;
		u->switched = 0;
		u->from = u->sp;
		u->at = u->sp;
		return 0;
	}
	if (word != l->scratch->stack.ip[here + 1] ||
	    (!u->doubting && here + 2 < u->frames && here + 2 < PK_MAX_DEPTH &&
	     pk_unwind_leads_on(u->at, word, l->scratch->stack.ip[here + 2]) < 0)) {
		u->at += 8;
		return 0;
	}
	if (u->switched)
		flags = PK_PLACE_SWITCHED;
	else if (u->at - u->from == PK_REGS_IP * 8 &&
		 !bpf_probe_read_kernel(&regs, sizeof(regs), (void *)u->at) &&
		 regs.cs == KERNEL_CS && regs.sp > u->at && regs.sp - u->at < PK_UNWIND_FRAME)
		flags = PK_PLACE_REGS;
	l->scratch->places[here + 1] = u->at | flags;
	u->sp = pk_unwind_begin(u->at | flags);
	u->from = u->sp;
	u->at = u->sp;
	u->switched = 0;
	u->doubting = 0;
	u->depth = here + 1;
	return 0;
}

/* One word, on the way down. */
static long pk_unwind_down(__u32 i, struct pk_unwind_loop *l)
{
	struct pk_unwind *u = &l->scratch->unwind;
	__u32 here = u->depth;
	__u64 place;

	if (!here || here >= PK_MAX_DEPTH)
		return 1;
	place = l->scratch->places[here];
	if (u->at <= pk_unwind_address(place) || u->switched || place & PK_PLACE_REGS) {
		u->at = pk_unwind_address(place);
	} else if (pk_unwind_word(u->at) != l->scratch->stack.ip[here]) {
		u->at -= 8;
		return 0;
	}
	l->scratch->check.ip[here] = u->at | (place & PK_PLACE_BITS);
	u->at -= 8;
	u->switched = (place & PK_PLACE_SWITCHED) != 0;
	u->depth = here - 1;
	return 0;
}

static __always_inline __u64 pk_unwind_distance(__u64 from, __u64 to)
{
	return (pk_unwind_address(to) - from) / 8;
}

static long pk_unwind_learn_frame(__u32 i, struct pk_unwind_loop *l)
{
	struct pk_unwind *u = &l->scratch->unwind;
	struct pk_unwind_lesson lesson = { .step = PK_UNWIND_CALL };
	__u64 low, high, next_low, next_high;

	if (i >= PK_MAX_DEPTH - 1)
		return 1;
	low = l->scratch->places[i];
	high = l->scratch->check.ip[i];
	next_low = l->scratch->places[i + 1];
	next_high = l->scratch->check.ip[i + 1];
	u->ip = l->scratch->stack.ip[i];
	u->exact = !i || low & PK_PLACE_REGS;
	if (i) {
		low = pk_unwind_begin(low);
		high = pk_unwind_begin(high);
	}
	if (next_low & PK_PLACE_REGS) {
		lesson.step = PK_UNWIND_REGS;
	} else if (next_low == u->top && pk_function_class(u->ip) == PK_FN_SYSCALL) {
		lesson.step = PK_UNWIND_TOP;
	} else {
		if (next_low & PK_PLACE_SWITCHED) {
			lesson.step = PK_UNWIND_SWITCH;
			low = pk_unwind_word(low);
			high = pk_unwind_word(high);
		}
		lesson.words[0] = pk_unwind_distance(low, next_low);
		lesson.words[1] = pk_unwind_distance(high, next_high);
		lesson.words[2] = pk_unwind_distance(low, next_high);
		lesson.words[3] = pk_unwind_distance(high, next_low);
	}
	pk_unwind_learn(u, &lesson);
	return 0;
}

static long pk_unwind_first(__u32 i, struct pk_unwind_loop *l)
{
	struct pk_unwind *u = &l->scratch->unwind;
	__u64 word = pk_unwind_word(u->at);

	if (word == l->scratch->stack.ip[1] &&
	    pk_unwind_leads_on(u->at, word, l->scratch->stack.ip[2]) > 0) {
		u->whole = 1;
		return 1;
	}
	u->at += 8;
	return 0;
}

/*
 * The kernel has named three frames, of which only where the task was interrupted is not known: how
 * far is it from there to a place from which the way leads on?
 */
static __noinline int pk_unwind_learn_first(struct pk_scratch *scratch, __u64 sp)
{
	struct pk_unwind_lesson lesson = { .step = PK_UNWIND_CALL };
	struct pk_unwind_loop l = { .scratch = scratch };
	struct pk_unwind *u;

	if (!scratch)
		return 0;
	u = &scratch->unwind;
	*u = (struct pk_unwind){ .ip = scratch->stack.ip[0], .sp = sp, .at = sp, .exact = 1 };
	bpf_loop(PK_UNWIND_FIRST / 8, pk_unwind_first, &l, 0);
	if (u->whole) {
		lesson.words[0] = pk_unwind_distance(sp, u->at);
		lesson.words[1] = lesson.words[0];
		pk_unwind_learn(u, &lesson);
	}
	return 0;
}

/*
 * The way up ended here, and a lesson was to say how it goes on. There are frames of which none does:
 * a kernel may leave some out of its stacks. After so many lessons there are no more.
 */
static __noinline int pk_unwind_untaught(__u64 ip, __u64 exact)
{
	__u32 tag = pk_unwind_tag(ip, exact);
	__u64 *place, given_up = 0;

	if (!tag)
		return 0;
	place = pk_unwind_room(tag, ip >> 4);
	if ((__u32)*place == tag) {
		if (pk_unwind_step(*place))
			return 0;
		given_up = pk_unwind_given_up(*place);
	}
	if (given_up < PK_UNWIND_GIVEN_UP)
		*place = tag | (given_up + 1) << 60;
	else
		*place = tag | (__u64)PK_UNWIND_VARIES << 48;
	return 0;
}

/* The kernel has named all frames; `differs`: what was remembered differs. */
static __noinline int pk_unwind_learn_all(struct pk_scratch *scratch, __u64 sp, __u32 frames,
					  __u32 differs)
{
	struct pk_unwind_lesson lesson = { .step = PK_UNWIND_END };
	struct pk_unwind_loop l = { .scratch = scratch };
	struct pk_interrupted regs = {};
	__u32 last = frames - 1;
	struct pk_unwind *u;
	__u64 place;

	if (!scratch || last >= PK_MAX_DEPTH - 1)
		return 0;
	u = &scratch->unwind;
	*u = (struct pk_unwind){
		.sp = sp, .from = sp, .at = sp, .top = pk_unwind_top(), .frames = frames,
	};
	bpf_loop(PK_UNWIND_WORDS, pk_unwind_up, &l, 0);
	if (u->depth != last)
		return 0;
	scratch->places[0] = sp;
	scratch->check.ip[0] = sp;
	place = scratch->places[last];
	u->at = pk_unwind_address(place);
	bpf_loop(PK_UNWIND_WORDS, pk_unwind_down, &l, 0);
	if (u->depth)
		return 0;
	u->differs = differs;
	bpf_loop(last, pk_unwind_learn_frame, &l, 0);
	u->ip = scratch->stack.ip[last];
	u->exact = !last || place & PK_PLACE_REGS;
	sp = last ? pk_unwind_begin(place) : sp;
	bpf_probe_read_kernel(&regs, sizeof(regs), (void *)(sp + PK_REGS_IP * 8));
	if ((regs.cs & 3) && (__s64)regs.ip > 0)
		lesson.step = PK_UNWIND_REGS;
	pk_unwind_learn(u, &lesson);
	return 0;
}

#endif
