/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Exact time: what was measured by entry and exit. A CPU keeps a few rows of it, so that most of
 * what is measured is an addition, and puts them into the tables when user space is about to take those.
 */
#ifndef PKPROF_EXACT_BPF_H
#define PKPROF_EXACT_BPF_H

#include "core/state.bpf.h"

/* Adds to a row of this CPU's. With interrupts off only. The current task is the one that ran. */
int pk_add_exact(struct pk_cpu *c, struct pk_exact *what, __u64 ns);

/* The rows that this CPU keeps go into the tables. */
int pk_put_exact(struct pk_cpu *c);

/* Puts one row into the tables and empties it. */
int pk_put_row(struct pk_cpu *c, struct pk_exact *row);

#endif
