/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) OR Apache-2.0 */
/*
 * What is frequent is kept in proportion: all that is as large as a period, and of what is smaller that
 * in which a random point of each period falls. It stands for the period. So what is kept adds up to all
 * of it, within a period, and no rhythm favours one part over another. See stands_for.h.
 */
#ifndef PKPROF_STRATA_H
#define PKPROF_STRATA_H

/* Where one is in the period: amounts, of time or of bytes. */
struct pk_stratum {
	__u64 period; /* 0: none was begun */
	__u64 left;   /* up to the point that counts or, past it, to the period's end */
	__u64 rest;   /* from the point to the end; 0: it is past the point */
};

/* How long periods that begin now are, so that no more is kept than is to be. */
struct pk_pace {
	__u64 period; /* 0: the shortest */
	__u64 kept_since;
	__u32 kept; /* since then */
	__u32 pad;
};

/* Where both are a CPU's. */
struct pk_strata {
	struct pk_stratum at;
	struct pk_pace pace;
};

/* That a CPU is to keep of each kind, about. */
enum {
	PK_KEPT_EACH_SECOND = 2000, /* with stacks: some 10 us each */
	PK_PACKETS_EACH_SECOND = 4000,
};

#endif
