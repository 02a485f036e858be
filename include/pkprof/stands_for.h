/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) OR Apache-2.0 */
/*
 * Keeping in proportion, see strata.h. It is tested outside the kernel, too
 * (tests/unit/kernel/strata_test.cc). Whoever includes it has pk_random(), of 32 bits, and pk_now(), ns.
 */
#ifndef PKPROF_STANDS_FOR_H
#define PKPROF_STANDS_FOR_H

#include "strata.h"

#define PK_STRATA_CALL static inline __attribute__((always_inline))

PK_STRATA_CALL __u64 pk_period_now(const struct pk_pace *pace, __u64 least)
{
	return pace->period ? pace->period : least;
}

PK_STRATA_CALL void pk_begin_stratum(struct pk_stratum *at, __u64 period)
{
	__u64 point = pk_random() % (period ? period : 1);

	at->period = period;
	at->left = point;
	at->rest = period - point;
}

/* Something is kept. `least`: the shortest period. */
PK_STRATA_CALL void pk_has_kept(struct pk_pace *pace, __u64 least, __u32 each_second)
{
	const __u64 often = 64, lasts = often * 1000000000 / each_second;
	__u64 period = pk_period_now(pace, least), now;

	if (++pace->kept < often)
		return;
	now = pk_now();
	if (now - pace->kept_since < lasts && period < least << 24)
		period *= 2;
	else if (now - pace->kept_since > 4 * lasts && period > least)
		period /= 2;
	pace->kept_since = now;
	pace->kept = 0;
	pace->period = period;
}

/*
 * The same as below, of an amount that is smaller than a period and goes past a point, or an end. By
 * itself: in Linux 6.1 calls that are in each other have 512 bytes of stack together.
 */
static __attribute__((noinline, unused)) __u64 pk_past_a_point(struct pk_stratum *at, struct pk_pace *pace,
							       __u64 amount, __u64 least, __u32 each_second)
{
	enum { MOST = 4 }; /* a point, an end, and a point and an end of the next, which may be shorter */
	__u64 period = at->period, left = at->left, rest = at->rest, stands_for = 0;
	__u32 i;

	for (i = 0; i < MOST && amount >= left; i++) {
		amount -= left;
		if (rest) {
			stands_for += period;
			pk_has_kept(pace, least, each_second);
			left = rest;
			rest = 0;
			continue;
		}
		/* A period is what it was when it began, or a part of it would count twice, or not at all. */
		period = pk_period_now(pace, least);
		pk_begin_stratum(at, period);
		if (amount >= period)
			return stands_for + amount;
		left = at->left;
		rest = at->rest;
	}
	at->left = left - (amount < left ? amount : left);
	at->rest = rest;
	return stands_for;
}

/*
 * For how much this amount stands; 0: it is not kept. In the kernel an interrupt in the middle may come
 * here as well: that costs a period at most.
 */
PK_STRATA_CALL __u64 pk_stands_for(struct pk_stratum *at, struct pk_pace *pace, __u64 amount, __u64 least,
				   __u32 each_second)
{
	__u64 period = at->period, left;

	if (__builtin_expect(!period, 0)) {
		period = pk_period_now(pace, least);
		pk_begin_stratum(at, period);
	}
	if (amount >= period) {
		pk_has_kept(pace, least, each_second);
		/* Where nothing smaller comes, no period would ever end. */
		if (__builtin_expect(pk_period_now(pace, least) > period, 0))
			pk_begin_stratum(at, pk_period_now(pace, least));
		return amount;
	}
	left = *(volatile __u64 *)&at->left;
	if (__builtin_expect(amount < left, 1)) {
		at->left = left - amount;
		return 0;
	}
	return pk_past_a_point(at, pace, amount, least, each_second);
}

/* How often something of this size was, if it stands for so much. */
PK_STRATA_CALL __u32 pk_times(__u64 stands_for, __u64 amount)
{
	return amount ? (stands_for + amount / 2) / amount : 1;
}

#endif
