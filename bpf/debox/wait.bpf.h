/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What a thread waits for, and who else does.
 *
 * Whoever waits puts an entry into a list, and nearly always that entry is on its own stack. So the
 * stack tells: an entry names its task, and has a link to the next one beside it. That the list
 * leads back to it shows that it is one, and not what a function before left there. Around the list
 * is the head, which belongs to the queue or the lock itself: it is what is waited for.
 */
#ifndef DEBOX_WAIT_BPF_H
#define DEBOX_WAIT_BPF_H

#include "debox/state.bpf.h"

/* A thread that goes to sleep: finds what it waits for, for db_waiters(). `sp`: of its stack. */
int db_look_for_wait(struct db_cpu *c, struct db_thread *t, __u64 sp, __u64 place);

/* A number for it; 0: it was not found. */
__u64 db_resource(struct db_thread *t);

/* How many others wait for it now; DEBOX_UNKNOWN: it was not found. */
__u32 db_waiters(struct db_cpu *c, struct db_thread *t);

#endif
