/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the kernel counts on each CPU. */
#ifndef PKPROF_PERCPU_BPF_H
#define PKPROF_PERCPU_BPF_H

#include "core/kernel.bpf.h"

/*
 * Grows with every device's interrupt and every softirq on the CPU whose kernel_stat lies at `base`:
 * two moments with the same number are in the same run of the same one.
 */
static __always_inline __u64 interrupts_counted(__u64 base)
{
	struct {
		__u64 irqs;
		__u32 softirqs[10];
	} seen = {};

	bpf_probe_read_kernel(&seen.irqs, sizeof(seen.irqs),
			      (void *)(base + bpf_core_field_offset(struct kernel_stat, irqs_sum)));
	bpf_probe_read_kernel(&seen.softirqs, sizeof(seen.softirqs),
			      (void *)(base + bpf_core_field_offset(struct kernel_stat, softirqs)));
#pragma unroll
	for (__u32 i = 0; i < 10; i++)
		seen.irqs += seen.softirqs[i];
	return seen.irqs;
}

#endif
