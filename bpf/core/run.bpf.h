/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Which run of which softirq is this? An account that was opened in one must not be settled by a
 * hook that fires in another.
 */
#ifndef PKPROF_RUN_BPF_H
#define PKPROF_RUN_BPF_H

#include "core/percpu.bpf.h"
#include "core/state.bpf.h"

#define PK_RUNS_UNKNOWN (~0U)

/* The per-CPU area's base, by way of a per-CPU variable whose address a task leads to. */
static __always_inline void pk_learn_percpu(struct pk_cpu *c, struct task_struct *task)
{
	__u64 rq;

	if (likely(c->percpu) || !config.runqueues)
		return;
	rq = (__u64)BPF_CORE_READ(task, se.cfs_rq, rq);
	if (rq)
		c->percpu = rq - config.runqueues;
}

/* How often the vector has run on this CPU; for PK_VEC_NONE, how often NET_RX has. */
static __always_inline __u32 pk_softirq_runs(struct pk_cpu *c, __u8 vec)
{
	__u32 runs = PK_RUNS_UNKNOWN;
	__u64 base = c->percpu + config.kernel_stat;

	if (!c->percpu || !config.kernel_stat)
		return PK_RUNS_UNKNOWN;
	if (vec == PK_VEC_NONE)
		vec = PK_VEC_NET_RX;
	if (vec > PK_VEC_RCU)
		return PK_RUNS_UNKNOWN;
	base += bpf_core_field_offset(struct kernel_stat, softirqs) + vec * sizeof(__u32);
	bpf_probe_read_kernel(&runs, sizeof(runs), (void *)base);
	return runs;
}

/* Are these bits set in this CPU's preempt_count? -1 when it cannot be told. */
static __always_inline int pk_preempt_bits(struct pk_cpu *c, __u32 bits)
{
	__u32 count = pk_preempt_count(c);

	return count == ~0U ? -1 : (count & bits) != 0;
}

static __always_inline int pk_serving_softirq(struct pk_cpu *c)
{
	return pk_preempt_bits(c, SOFTIRQ_OFFSET);
}

/* In an interrupt or a softirq: what the current task is says nothing. */
static __always_inline int pk_in_interrupt(struct pk_cpu *c)
{
	return pk_preempt_bits(c, SOFTIRQ_OFFSET | HARDIRQ_MASK | NMI_MASK);
}

/* Grows with every device's interrupt and every softirq on this CPU; 0 when not known. */
static __always_inline __u64 pk_interrupts(struct pk_cpu *c)
{
	if (!c->percpu || !config.kernel_stat)
		return 0;
	return interrupts_counted(c->percpu + config.kernel_stat);
}

/* Opens the CPU's own account: the next hook that knows in this run will settle it. */
static __always_inline void pk_arm(struct pk_cpu *c, struct pk_charge *charge, __u32 runs,
				   __u32 phase)
{
	c->wait.charge = *charge;
	c->wait.task = bpf_get_current_task();
	c->wait.receivers = 0;
	c->wait.carried = 0;
	c->wait.runs = runs;
	c->hot.armed = phase;
}

/* How many packets this CPU has received. */
static __always_inline __u32 pk_packets(struct pk_cpu *c)
{
	__u32 packets = 0;

	bpf_probe_read_kernel(&packets, sizeof(packets), (void *)(c->percpu + config.packets));
	return packets;
}

/* No hook says where a packet ends while those rest: by their number. */
static __always_inline bool pk_same_packet(struct pk_cpu *c)
{
	return !(c->sampler.resting & PK_REST_PACKETS) || c->hot.armed != PK_PHASE_PACKET ||
	       pk_packets(c) == c->wait.packets;
}

static __always_inline bool pk_same_run(struct pk_cpu *c)
{
	__u32 runs;

	if (bpf_get_current_task() != c->wait.task || !pk_same_packet(c))
		return false;
	if (c->wait.runs == PK_RUNS_UNKNOWN)
		return true;
	if (!pk_serving_softirq(c))
		return false;
	runs = pk_softirq_runs(c, c->wait.charge.vec);
	/* Opened before the vector was known: its run has begun since. */
	if (c->wait.charge.vec == PK_VEC_NONE)
		return runs - c->wait.runs <= 1;
	return runs == c->wait.runs;
}

/* The party of the disk request that was completed last, if no device and no softirq came since. */
static __always_inline __u64 pk_done_in_run(struct pk_cpu *c)
{
	return c->disk.done && c->disk.done_in == pk_interrupts(c) ? c->disk.done : 0;
}

/*
 * The party of the disk request that this very interrupt completed last; 0: it did none. The clock's
 * interrupts and those of other CPUs are not in that count, and did not; which kind this is only their
 * hooks tell.
 */
static __always_inline __u64 pk_done_here(struct pk_cpu *c)
{
	if (c->irq.since && c->irq.part.kind != PK_EXACT_DEVICE)
		return 0;
	return pk_done_in_run(c);
}

#endif
