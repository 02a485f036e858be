/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Places in the kernel have numbers: programs that read records need not learn where their kernel
 * is in memory.
 */
#ifndef DEBOX_PLACE_BPF_H
#define DEBOX_PLACE_BPF_H

#include "debox/state.bpf.h"

/* The number of a place in the kernel; 0 if it has no room. */
static __noinline __u32 db_place(struct db_cpu *c, __u64 address)
{
	__u32 *known = bpf_map_lookup_elem(&db_places, &address), number;

	if (known)
		return *known;
	if (!address || !c)
		return 0;
	number = __sync_fetch_and_add(&db_place_count, 1) + 1;
	if (!bpf_map_update_elem(&db_places, &address, &number, BPF_NOEXIST)) {
		__sync_fetch_and_add(&db_places_there, 1);
		return number;
	}
	known = bpf_map_lookup_elem(&db_places, &address); /* another CPU was first? */
	if (known)
		return *known;
	c->stats.places_full++;
	return 0;
}

#endif
