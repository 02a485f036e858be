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

#include "core/state.bpf.h"
#include "who/party.bpf.h"

/* Begin of the part of the interrupt that goes on: nothing counts from before the start. */
static __always_inline __u64 pk_irq_counted_from(struct pk_cpu *c)
{
	__u64 from = started;

	return c->irq.since > from ? c->irq.since : from;
}

/* The interrupt has completed a disk request of this party, and goes on for it until the next. */
int pk_interrupt_completed(struct pk_cpu *c, __u64 party);

#endif
