/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Where a softirq wakes a process of another CPU, that CPU is asked to look for it. Which softirqs
 * do so is told by the samples that were held up up to the end of what is done with interrupts off,
 * which is that, mostly: each is a vote for pk_waking_object().
 */
#ifndef PKPROF_WAKING_BPF_H
#define PKPROF_WAKING_BPF_H

#include "core/state.bpf.h"
#include "stack/place.bpf.h"

int pk_vote_for_waking(struct pk_cpu *c, struct pk_place *place, struct pk_charge *charge);

#endif
