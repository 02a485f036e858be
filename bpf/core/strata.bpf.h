/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What is frequent is kept in proportion: see pkprof/strata.h. */
#ifndef PKPROF_STRATA_BPF_H
#define PKPROF_STRATA_BPF_H

#include "core/state.bpf.h"

/* Some part of a time, to 4 us, with the same chance for each; of up to some hours. */
static __always_inline __u64 pk_random_part(__u64 ns)
{
	return (ns >> 12) * bpf_get_prandom_u32() >> 20;
}

static __always_inline void pk_begin_stratum(struct pk_stratum *at, __u64 period, __u64 rest)
{
	__u64 point = bpf_get_prandom_u32() % (period ? period : 1);

	at->period = period;
	at->left = rest + point;
	at->rest = period - point;
}

/* Something is kept. Returns how long the next period is; `least`: the shortest. */
static __always_inline __u64 pk_has_kept(struct pk_pace *pace, __u64 least, __u32 each_second)
{
	const __u64 often = 64, lasts = often * 1000000000 / each_second;
	__u64 period = pace->period ? pace->period : least, now;

	if (++pace->kept < often)
		return period;
	now = bpf_ktime_get_ns();
	if (now - pace->kept_since < lasts && period < least << 24)
		period *= 2;
	else if (now - pace->kept_since > 4 * lasts && period > least)
		period /= 2;
	pace->kept_since = now;
	pace->kept = 0;
	pace->period = period;
	return period;
}

/*
 * For how much this amount stands; 0: it is not kept. All is read once: an interrupt in between may come
 * here as well, and costs a period at most.
 */
static __always_inline __u64 pk_stands_for(struct pk_stratum *at, struct pk_pace *pace, __u64 amount,
					   __u64 least, __u32 each_second)
{
	__u64 period = *(volatile __u64 *)&at->period, left, rest, stands_for, point;

	if (unlikely(!period)) {
		period = pace->period ? pace->period : least;
		pk_begin_stratum(at, period, 0);
	}
	if (amount >= period) {
		pk_has_kept(pace, least, each_second);
		return amount;
	}
	left = *(volatile __u64 *)&at->left;
	if (likely(amount < left)) {
		at->left = left - amount;
		return 0;
	}
	amount -= left;
	rest = *(volatile __u64 *)&at->rest;
	stands_for = period;
	period = pk_has_kept(pace, least, each_second);
	point = bpf_get_prandom_u32() % (period ? period : 1);
	left = rest + point;
	if (amount >= left) { /* from one period's point to the next one's */
		amount -= left;
		stands_for += period;
		rest = period - point;
		point = bpf_get_prandom_u32() % (period ? period : 1);
		left = rest + point;
	}
	at->period = period;
	at->left = left - (amount < left ? amount : left);
	at->rest = period - point;
	return stands_for;
}

/*
 * The same where place and pace are a CPU's. Where all that comes is as large as a period, that has to
 * grow as well: what is left of the old one is nobody's.
 */
static __always_inline __u64 pk_cpu_stands_for(struct pk_strata *s, __u64 amount, __u64 least, __u32 each_second)
{
	__u64 stands_for = pk_stands_for(&s->at, &s->pace, amount, least, each_second);

	if (unlikely(amount >= s->at.period && s->pace.period && s->pace.period != s->at.period))
		pk_begin_stratum(&s->at, s->pace.period, 0);
	return stands_for;
}

/* How often something of this size was, if it stands for so much. */
static __always_inline __u32 pk_times(__u64 stands_for, __u64 amount)
{
	return amount ? (stands_for + amount / 2) / amount : 1;
}

#endif
