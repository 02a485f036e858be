/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * For DeBox: what the kernel does for a thread elsewhere goes on that thread's account, as far as it
 * is known at once whom it is for. Whom the rest is for user space finds out later; that is too late
 * for a call.
 */
#ifndef PKPROF_DEBOX_CHARGE_BPF_H
#define PKPROF_DEBOX_CHARGE_BPF_H

#include "core/state.bpf.h"

/* The thread's entry, looked up as debox/state.bpf.h does. */
static __always_inline struct db_thread *pk_debox_thread(__u32 tid)
{
	__u32 zero = 0, first = (tid & (DB_SETS - 1)) * DB_WAYS;
	void *memory = bpf_map_lookup_elem(&debox_memory, &zero);
	__u32 *set;

	if (!memory || !tid)
		return 0;
	set = memory + config.debox_tids + first * sizeof(__u32);
	if (set[0] == tid)
		;
	else if (set[1] == tid)
		first += 1;
	else if (set[2] == tid)
		first += 2;
	else if (set[3] == tid)
		first += 3;
	else
		return 0;
	first &= DB_SETS * DB_WAYS - 1;
	return memory + config.debox_threads + first * sizeof(struct db_thread);
}

static __always_inline int pk_tell_thread(__u32 tid, __u32 any, __u64 ns)
{
	struct db_thread *t = pk_debox_thread(tid);
	__u32 zero = 0, area;
	__u64 *header;
	void *records;

	/* Of a process it is its only thread's, if it has no other. */
	if (!t || (any && t->others))
		return 0;
	__sync_fetch_and_add(&t->async_ns, ns);
	area = t->area;
	if (!area)
		return 0;
	records = bpf_map_lookup_elem(&debox_areas, &area);
	if (!records)
		return 0;
	header = bpf_map_lookup_elem(records, &zero);
	if (header)
		__sync_fetch_and_add(header, ns);
	return 0;
}

/* What was counted just now. In its caller: calls in the kernel side are deep already. */
static __always_inline int pk_tell_debox(struct pk_key *key, __u64 ns)
{
	__u64 served, *owner;

	if (key->kind != PK_SOFTIRQ && key->kind != PK_WORK && key->kind != PK_INTERRUPT &&
	    key->kind != PK_KTHREAD)
		return 0;
	served = key->served;
	if (key->served_kind == PK_SERVED_OBJECT) {
		owner = bpf_map_lookup_elem(&owners, &served);
		served = owner ? *owner : 0;
	} else if (key->served_kind != PK_SERVED_LABEL) {
		return 0;
	}
	if (!(served >> 32))
		return 0;
	return pk_tell_thread((served & ~PK_ANY_THREAD) >> 32, (served & PK_ANY_THREAD) != 0, ns);
}

/* A disk request for this party was completed in this interrupt. */
static __always_inline void pk_tell_done(__u64 party, __u64 interrupts)
{
	__u32 zero = 0, cpu = bpf_get_smp_processor_id() & (DB_CPUS - 1);
	void *memory = bpf_map_lookup_elem(&debox_memory, &zero);
	struct db_done *done;

	if (!memory)
		return;
	done = memory + config.debox_done + cpu * sizeof(struct db_done);
	done->interrupts = interrupts;
	done->tid = party & PK_OBJECT ? 0 : (party & ~PK_ANY_THREAD) >> 32;
}

#endif
