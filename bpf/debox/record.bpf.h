/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The record of the call that a thread is in. Most calls only take time: what else there is to say
 * of one is put into its record when the first such thing happens.
 */
#ifndef DEBOX_RECORD_BPF_H
#define DEBOX_RECORD_BPF_H

#include "debox/state.bpf.h"

#define X32_SYSCALL_BIT 0x40000000

/* execve() in the tables of 64-bit, 32-bit and x32 programs. A number that is another call in another
 * table only defers learning. */
static __always_inline bool db_is_exec(__u32 number)
{
	switch (number & ~X32_SYSCALL_BIT) {
	case 59:  /* execve */
	case 322: /* execveat */
	case 11:
	case 358:
	case 520:
	case 545:
		return true;
	}
	return false;
}

/* Learns the memory that the thread has, but not in an execve(), which replaces it. */
static __noinline int db_learn_memory(struct db_thread *t, struct task_struct *task)
{
	struct pt_regs___kernel *regs;

	if (!t || !task)
		return 0;
	regs = (void *)bpf_task_pt_regs(task);
	if (db_is_exec(BPF_CORE_READ(regs, orig_ax)))
		return 0;
	t->mm = (__u64)task->mm;
	return t->mm != 0;
}

/*
 * Whether the running thread's records may be written. The program that reads them must not see
 * another one that the thread executes, which may be a set-user-ID program. db_exec() is too late: the
 * new program is in place by then and has had page faults. The thread's memory is replaced before.
 *
 * db_watch() does not know the memory; the thread's first hook after it learns it. An execve() that
 * goes on at db_watch() is seen by db_exec() when it ends. User space sees one that ended before,
 * since it looks at the process after db_watch().
 */
static __always_inline bool db_may_write(struct db_thread *t, struct task_struct *task)
{
	if (!t->area)
		return true;
	return likely(t->mm) ? t->mm == (__u64)task->mm : db_learn_memory(t, task);
}

static __always_inline void db_begin_record(struct debox_record *r, __u64 sequence)
{
	r->sequence = sequence;
	r->flags = 0;
	r->voluntary = 0;
	r->forced = 0;
	r->migrations = 0;
	r->minor_faults = 0;
	r->major_faults = 0;
	r->signals = 0;
	r->restarts = 0;
	r->asleep_ns = 0;
	r->runnable_ns = 0;
	r->async_ns = 0;
	r->async_later_ns = 0;
	r->sleeps = 0;
	r->faults = 0;
	r->sleeps_left_out = 0;
	r->faults_left_out = 0;
	r->traces = 0;
	r->traces_left_out = 0;
	r->async_before_ns = 0;
}

/* The entry of this number, counted from 1; none where there is no such. */
static __always_inline struct debox_sleep *db_sleep_of(struct debox_record *r, __u64 entry)
{
	if (--entry >= DEBOX_SLEEPS)
		return 0;
	forget_value(entry);
	return &r->sleep[entry];
}

static __always_inline struct debox_fault *db_fault_of(struct debox_record *r, __u64 entry)
{
	if (--entry >= DEBOX_FAULTS)
		return 0;
	forget_value(entry);
	return &r->fault[entry];
}

/*
 * For what happens to a thread: the record of the call that it is in, ready to be added to; none
 * where it is in no call. The thread itself must ask, since a program's mark is in its memory.
 */
static __noinline struct debox_record *db_record_of_now(struct db_cpu *c, struct db_thread *t)
{
	struct debox_record *r;

	if (!c || !t || !db_may_write(t, bpf_get_current_task_btf()))
		return 0;
	if (t->wants & DB_MARKED) {
		__u64 sequence;

		if (bpf_probe_read_user(&sequence, sizeof(sequence), (void *)t->mark)) {
			c->stats.marks_unread++;
			return 0;
		}
		if (!(sequence & 1))
			return 0;
		t->sequence = sequence;
	} else if (!t->call) {
		return 0;
	}
	r = db_record(t);
	if (r && t->touched != t->sequence) {
		t->touched = t->sequence;
		db_begin_record(r, t->sequence);
	}
	return r;
}

#endif
