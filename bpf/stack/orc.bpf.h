/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * How a frame is left, by the kernel's own tables (ORC).
 *
 * For its own text, without modules, the kernel has two tables side by side: addresses, sorted, each
 * as the distance from where it stands itself, and how the frame is left from that address on. Most
 * is of the kind that can be remembered by address (unwind.bpf.h): so far up from the stack pointer.
 * The rest, modules, and kernels whose tables cannot be found, are learned about by asking.
 */
#ifndef PKPROF_ORC_BPF_H
#define PKPROF_ORC_BPF_H

#include "core/compat.bpf.h"
#include "core/state.bpf.h"

enum { PK_ORC_BITS = 21 }; /* of the number of entries, of which there are half a million */

/* The address that the entry of this number begins at. */
static __always_inline __u64 pk_orc_begin(__u64 table, __u64 number)
{
	__u64 at = table + number * sizeof(__s32);
	__s32 distance = 0;

	bpf_probe_read_kernel(&distance, sizeof(distance), (void *)at);
	return at + (__s64)distance;
}

/*
 * How many words up from the stack pointer the code at `ip` has the address that it returns to. -1:
 * this is not known, or not by the address. `exact`: the code was interrupted there; else that is
 * where a call returns to, and belongs to the instruction before.
 */
__weak __noinline __s64 pk_orc_words(__u64 ip, __u64 exact)
{
	__u64 table = addresses.known[PK_KNOWN_ORC_ADDRESSES];
	__u64 entries = addresses.known[PK_KNOWN_ORC], size = pk_orc_size();
	__u64 at = ip - 1 + is_some(exact), number = 0, count;

	if (!table || !entries || !size || at < addresses.known[PK_KNOWN_TEXT] ||
	    at >= addresses.known[PK_KNOWN_TEXT_END])
		return -1;
	/* Where a tracer leads returns to: the kernel, asked, says what stood there before. */
	if (ip == addresses.known[PK_KNOWN_RETURN_TRACED] ||
	    ip == addresses.known[PK_KNOWN_RETURN_PROBED])
		return -1;
	count = (addresses.known[PK_KNOWN_ORC_END] - entries) / size;
	for (__u64 step = 1 << (PK_ORC_BITS - 1); step; step >>= 1) {
		/* Without a branch, as in pk_find_function(). Past the end anything may be read. */
		__s64 past = (__s64)(at - pk_orc_begin(table, number + step)) >> 63;
		__s64 inside = (__s64)(number + step - count) >> 63;

		forget_value(past); /* or the compiler makes branches of them */
		forget_value(inside);
		number += step & ~past & inside;
	}
	return pk_orc_words_of((struct orc_entry *)(entries + number * size));
}

#endif
