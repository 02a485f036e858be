/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Hard interrupts, measured by entry and exit: a sampling clock is an interrupt itself and meets no
 * other. What they took is counted exactly, and taken off the sample after them, which would have
 * charged it to whatever was interrupted.
 *
 * An interrupt is cut into parts where it turns to someone else's work: at each disk request that it
 * completes, each timer that expires, each function that another CPU asked for.
 */
#ifndef PKPROF_INTERRUPT_BPF_H
#define PKPROF_INTERRUPT_BPF_H

#include "core/run.bpf.h"
#include "core/state.bpf.h"

/* Begin of the part of the interrupt that goes on: nothing counts from before the start. */
static __always_inline __u64 pk_irq_counted_from(struct pk_cpu *c)
{
	__u64 from = started;

	return c->irq.since > from ? c->irq.since : from;
}

/* The interrupt has completed a disk request of this party, and goes on for it until the next. */
int pk_interrupt_completed(struct pk_cpu *c, __u64 party);

/* Ends a part of the interrupt: counts it, and begins the next. */
int pk_irq_end_part(struct pk_cpu *c);

/*
 * Entering it took a while already, and leaving it will: who was interrupted had neither. What came
 * just before is counted already. An idle CPU had nothing to lose.
 */
static __always_inline __u64 pk_irq_entered(struct pk_cpu *c)
{
	__u64 at = c->irq.begin - interrupt_entry_ns, least = c->irq.end;

	if (!bpf_get_current_task_btf()->pid)
		return c->irq.begin;
	if (least < c->measure.run_since)
		least = c->measure.run_since;
	if (least < c->measure.softirq_since)
		least = c->measure.softirq_since;
	return at < least ? least : at;
}

static __always_inline int pk_irq_begin(struct pk_cpu *c, __u8 kind, __u64 party)
{
	c->irq.before = c->irq.begin;
	c->irq.before_in_softirq = c->irq.in_softirq;
	c->irq.in_softirq = pk_serving_softirq(c) == 1;
	c->irq.timer = 0;
	c->irq.sampled = 0;
	c->irq.part.kind = kind;
	c->irq.part.number = 0;
	c->irq.part.function = 0;
	c->irq.part.served = party;
	c->irq.part.basis = PK_BASIS_OWN;
	c->irq.sum_at_begin = c->irq.sum;
	c->irq.begin = bpf_ktime_get_ns();
	c->irq.entered = pk_irq_entered(c);
	c->irq.since = c->irq.entered;
	return 0;
}

static __always_inline int pk_irq_end(struct pk_cpu *c)
{
	if (!c->irq.since)
		return 0; /* its entry was missed: the hooks were just turned on */
	pk_irq_end_part(c);
	c->irq.end = c->irq.since;
	c->irq.since = 0;
	return 0;
}

/* What follows in this interrupt is for this party, because it has this function called. */
static __always_inline void pk_irq_turn_to(struct pk_cpu *c, __u64 function, __u64 party, __u8 basis)
{
	if (c->irq.part.function || c->irq.part.kind == PK_EXACT_DEVICE)
		pk_irq_end_part(c);
	c->irq.part.function = function;
	c->irq.part.served = party;
	c->irq.part.basis = basis;
}

#endif
