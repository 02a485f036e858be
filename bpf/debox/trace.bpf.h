/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Traces: the kernel's functions that a call enters, in order, each with its depth and its time. They
 * are behind the record, in pieces as large as a record.
 */
#ifndef DEBOX_TRACE_BPF_H
#define DEBOX_TRACE_BPF_H

#include "debox/state.bpf.h"

/* This piece of the trace of the thread's call; 0: there is none. */
static __always_inline struct debox_trace_piece *db_piece(struct db_thread *t, __u32 piece)
{
	__u32 area = t->area, index;
	void *records;

	if (!area) {
		index = (t->slot & (DB_SETS * DB_WAYS - 1)) * DB_PIECES + piece;
		return bpf_map_lookup_elem(&db_traces, &index);
	}
	records = bpf_map_lookup_elem(&db_areas, &area);
	index = t->base + t->stride * ((__u32)((t->sequence + 1) >> 1) & t->mask) + 1 + piece;
	return records ? (struct debox_trace_piece *)bpf_map_lookup_elem(records, &index) : 0;
}

#endif
