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
#include "process/label.bpf.h"
#include "process/mapper.bpf.h"

/*
 * Where anything that was sampled is no longer mapped, or somewhere else, its pages had to leave the
 * translation buffers: the kernel counts that.
 */
static __noinline void pk_remember_process(struct pk_mapper *m, struct task_struct *task,
						struct mm_struct *mm)
{
	__u64 process = pk_process_of(task), exec_id = task->self_exec_id;
	__u64 shape = BPF_CORE_READ(mm, exec_vm) << 40 ^ BPF_CORE_READ(mm, context.tlb_gen.counter);

	if (likely(m->process == process && m->exec_id == exec_id && m->shape == shape))
		return;
	m->process = process;
	m->exec_id = exec_id;
	m->shape = shape;
	__builtin_memset(m->range, 0, sizeof(m->range));
	m->key.process = process;
	m->key.exec_id = exec_id;
}

/* The mapper is at work on a stack of the current process, and has been. */
static __always_inline void pk_begin_stack(struct pk_mapper *m, struct task_struct *task,
					   struct mm_struct *mm)
{
	pk_remember_process(m, task, mm);
	m->walks = 0;
	m->lost = 0;
}

static __always_inline void pk_end_stack(struct pk_cpu *c, struct pk_mapper *m)
{
	c->stats.mappings_lost += m->lost;
	pk_give_back(m);
}

/*
 * Which of the ranges of the level's mapper, which is taken, an address of the current process lies in, whose
 * memory is `mm`; PK_NO_RANGE: in none, or that is not known. User space is told of it, if it is code.
 */
#define PK_NO_RANGE PK_RANGES
__u64 pk_find_range(__u32 level, __u64 mm, __u64 address);

/*
 * Tells user space where the frames of the current process's stack lie, as far as it does not know,
 * and has each frame say in which file it is.
 */
int pk_tell_mappings(struct pk_cpu *c, struct pk_stack *stack);

#endif
