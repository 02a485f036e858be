/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * How much time a sample stands for, and whether it is of what it met: what is counted otherwise comes
 * off it, and a clock may tick late.
 */
#ifndef PKPROF_SAMPLED_TIME_BPF_H
#define PKPROF_SAMPLED_TIME_BPF_H

#include "core/state.bpf.h"
#include "sources/interrupt.bpf.h"
#include "who/count.bpf.h"

/*
 * Hard interrupts are counted by their hooks; what was counted is off this sample, to the
 * nanosecond, or the ledger would not sum. The one that goes on is counted when it ends, and is
 * off this sample already: it takes the sample for us.
 */
static __always_inline void pk_take_off_interrupts(struct pk_cpu *c, struct pk_charge *charge,
						   __u64 now)
{
	__s64 part = 0, off, ns = charge->ns;

	if (c->irq.since) {
		part = now - pk_irq_counted_from(c);
		c->irq.sampled = 1;
		if (self)
			c->irq.part.served = self;
	}
	off = (__s64)c->irq.ns + part;
	if (off > ns)
		off = ns; /* the rest is off the next */
	charge->ns = ns - off;
	c->irq.ns = c->irq.ns - off;
}

/*
 * A clock that is due in a hard interrupt ticks after it. Its sample would stand for what comes
 * then, and the interrupt is counted already: so this one counts for nothing, and its time for the
 * next.
 */
static __always_inline bool pk_was_in_interrupt(struct pk_cpu *c)
{
	if (!c->irq.since || !c->clock.due)
		return false;
	return c->clock.due > c->irq.begin || (c->clock.due < c->irq.end && c->clock.due >= c->irq.before);
}

/*
 * On a virtual machine the clock's interrupt is late by microseconds, and others come first. If it
 * was due before the interrupt that this softirq runs at the end of, then what that interrupted is
 * what the sample is of. From user mode there are but the interrupt's own frames beyond the softirq.
 */
static __always_inline bool pk_is_late(struct pk_cpu *c)
{
	return c->irq.since && c->clock.due && !c->irq.before_in_softirq && c->clock.due < c->irq.before;
}

/*
 * The clock was due while the CPU was idle, and ticks now that something else has woken it, or has
 * just let it be idle again.
 */
static __always_inline bool pk_was_idle(struct pk_cpu *c, __u64 idle_until)
{
	return c->irq.since && c->clock.due && c->clock.due < idle_until && idle_until < c->irq.begin;
}

#define PK_GAP_NS 10000000

/*
 * A busy CPU has its samples every period. Where there was none for several ticks of the kernel's,
 * the whole machine stood still, or the clock did: nobody knows what this sample is not of, and it
 * stays unsampled, unless the host says later that it took it.
 */
static __always_inline void pk_leave_gap(struct pk_cpu *c, struct pk_charge *charge)
{
	if (likely(charge->ns <= PK_GAP_NS + period))
		return;
	c->sampler.gap_ns = charge->ns - period;
	charge->ns = period;
}

/* Takes up to so much off; returns what is left to be taken off something else. */
static __always_inline __u64 pk_take_off(__u64 *from, __u64 ns)
{
	__u64 off = ns < *from ? ns : *from;

	*from -= off;
	return ns - off;
}

/*
 * Time in which this CPU did not run, though it had work: the host's kernel says how much. A halted
 * CPU that is to wake waits for the host, too, which is idle time to the kernel. So it is off
 * whichever there is more of, first.
 */
static __always_inline void pk_take_off_stolen(struct pk_cpu *c, struct pk_charge *charge,
					       __u64 *idle_ns)
{
	__u64 at = c->percpu + config.cpustat, stolen = 0, took, left;
	struct pk_key *key;

	if (!c->percpu || !config.cpustat)
		return;
	at += bpf_core_enum_value(enum cpu_usage_stat, CPUTIME_STEAL) * sizeof(__u64);
	bpf_probe_read_kernel(&stolen, sizeof(stolen), (void *)at);
	stolen++; /* 0: not seen yet */
	took = c->sampler.steal ? stolen - c->sampler.steal : 0;
	if (took > charge->ns + *idle_ns + c->sampler.gap_ns)
		took = charge->ns + *idle_ns + c->sampler.gap_ns; /* the rest is off the next one */
	c->sampler.steal = c->sampler.steal ? c->sampler.steal + took : stolen;
	if (likely(!took))
		return;
	left = pk_take_off(&c->sampler.gap_ns, took);
	if (*idle_ns > charge->ns)
		left = pk_take_off(idle_ns, left);
	left = pk_take_off(&charge->ns, left);
	pk_take_off(idle_ns, left);
	key = pk_fresh_key();
	key->ran_on = PK_HOST;
	key->served = PK_HOST;
	key->kind = PK_STOLEN;
	key->vec = PK_VEC_NONE;
	pk_count(c, key, took, 0);
	c->measure.run_stolen += took;
}

#endif
