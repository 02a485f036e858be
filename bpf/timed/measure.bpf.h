/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Where all of the time is measured; see measure.bpf.c. */
#ifndef PKPROF_MEASURE_BPF_H
#define PKPROF_MEASURE_BPF_H

#include "core/state.bpf.h"

/* The task that is on this CPU had it up to now, or up to the interrupt that is being handled. */
int pk_measure_run(struct pk_cpu *c);

#endif
