/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Timers; see timer.bpf.c. */
#ifndef PKPROF_TIMER_BPF_H
#define PKPROF_TIMER_BPF_H

#include "core/state.bpf.h"
#include "stack/place.bpf.h"

/* Whom the timer is for whose function was called last in the TIMER softirq; 0 if that is not known. */
__u64 pk_timer_party(struct pk_cpu *c, __u32 *basis);

/* A sample in the TIMER softirq that is not the network's. */
int pk_timer_sample(struct pk_cpu *c, struct pk_place *place, struct pk_charge *charge);

#endif
