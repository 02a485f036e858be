/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#ifndef DEBOX_SLEEP_BPF_H
#define DEBOX_SLEEP_BPF_H

#include "debox/state.bpf.h"

/*
 * The thread is on its CPU and was not seen to come: the kernel ran no programs then, as some do not
 * in the context of processes that they protect. When it came, and how long it had been ready by
 * then, the scheduler has in its own books. Who woke it nobody knows.
 */
int db_catch_up(struct db_cpu *c, struct db_thread *t);

#endif
