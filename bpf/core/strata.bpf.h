/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Chance in the kernel: of what is frequent, see pkprof/strata.h, and of moments. */
#ifndef PKPROF_STRATA_BPF_H
#define PKPROF_STRATA_BPF_H

#include "core/state.bpf.h"

#define pk_random() bpf_get_prandom_u32()
#define pk_now() bpf_ktime_get_ns()
#include "pkprof/stands_for.h"

/* Some part of a time, to 4 us, with the same chance for each; of up to some hours. */
static __always_inline __u64 pk_random_part(__u64 ns)
{
	return (ns >> 12) * pk_random() >> 20;
}

#endif
