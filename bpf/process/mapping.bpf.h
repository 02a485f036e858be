/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Where the frames of user stacks lie: asked of the process when it is sampled.
 *
 * perf tells of every mapping that every process makes, with its path, when it is made: some twenty
 * a process, which in one that lives for half a millisecond is hundredths of its time. Here only the
 * mappings are looked up that a stack leads to, without a lock: in the process's tree of them, whose
 * nodes the kernel frees by RCU.
 */
#ifndef PKPROF_MAPPING_BPF_H
#define PKPROF_MAPPING_BPF_H

#include "core/state.bpf.h"

/*
 * Tells user space where the frames of the current process's stack lie, as far as it does not know,
 * and has each frame say in which file it is.
 */
int pk_tell_mappings(struct pk_cpu *c, struct pk_stack *stack);

#endif
