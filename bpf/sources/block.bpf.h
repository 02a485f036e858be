/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Disk requests; see block.bpf.c. */
#ifndef PKPROF_BLOCK_BPF_H
#define PKPROF_BLOCK_BPF_H

#include "core/run.bpf.h"
#include "stack/place.bpf.h"
#include "who/party.bpf.h"

/* A sample in the BLOCK softirq: charge it, or arm the CPU for the next request's end. */
int pk_block_sample(struct pk_cpu *c, struct pk_place *place, struct pk_charge *charge);

#endif
