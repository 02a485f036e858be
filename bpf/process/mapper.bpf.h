/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What a CPU needs to look up a mapping or a file's name and to tell user space of it: memory for
 * one at a time, and the ring that both go through.
 */
#ifndef PKPROF_MAPPER_BPF_H
#define PKPROF_MAPPER_BPF_H

#include "core/state.bpf.h"

enum {
	PK_RANGES = 8,      /* that a CPU remembers of the process at hand; a power of two */
	PK_MOST_WALKS = 8,  /* a stack: without frame pointers anything may be in it */
	PK_PIVOTS = 16,     /* room for a node's */
	PK_TREE_LEVELS = 8, /* more than a tree has */
	PK_PATH_STEPS = 128, /* names and mount points on the way to the root */
};

/* Where it is known what lies there. */
struct pk_range {
	__u64 start;
	__u64 length;
	__u64 frame; /* what its frames have beside their address: see PK_FRAME_IN_FILE */
};

struct pk_mapping_key {
	__u64 process; /* its label */
	__u64 start;
	__u64 exec_id;
};

/* What was told of it. */
struct pk_mapping {
	__u64 end;
	__u64 offset;
	__u64 file;
};

/* A file as a process sees it. Memory comes round again: hence the inode's numbers. */
struct pk_file_key {
	__u64 dentry;
	__u64 mnt;
	__u64 root;
	__u64 root_mnt;
	__u64 inode;
	__u32 device;
	__u32 generation;
};

/*
 * A CPU's, for as long as it is at work on one stack or one label. What its loops depend on is here,
 * too: a verifier would go through each value that it can have in a register.
 */
struct pk_mapper {
	__u32 busy;
	__u32 next; /* of .range, to be overwritten */
	__u32 walks; /* for this stack */
	__u32 lost;
	__u64 entry; /* of the tree, on the way down to the area of memory that the address is in */
	__u64 address;
	__u64 dentry; /* on the way up to the root */
	__u64 mnt;
	__u32 at; /* end of the names so far */
	__u32 flags; /* enum pk_path_flags */
	__u64 process;
	__u64 exec_id;
	__u64 shape; /* of the process's memory: where that changes, so may what is mapped */
	struct pk_range range[PK_RANGES];
	struct pk_mapping_key key;
	struct pk_mapping mapping;
	struct pk_mapped told;
	__u64 pivots[PK_PIVOTS];
	struct pk_file_key file;
	struct pk_file_name name;
};

struct mappers_map {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct pk_mapper);
};

struct mapped_ring {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 262144); /* or more, by how many CPUs there are */
};

extern struct mappers_map mappers SEC(".maps");
extern struct mapped_ring mapped SEC(".maps");

/*
 * The CPU's mapper, to be given back; NULL: what this interrupts has it. What is not told then may
 * never be.
 */
static __always_inline struct pk_mapper *pk_take_mapper(void)
{
	__u32 zero = 0;
	struct pk_mapper *m = bpf_map_lookup_elem(&mappers, &zero);

	if (!m || m->busy) {
		this_cpu()->stats.mappings_lost++;
		return NULL;
	}
	m->busy = 1;
	barrier();
	return m;
}

static __always_inline void pk_give_back(struct pk_mapper *m)
{
	barrier();
	m->busy = 0;
}

/* Whoever reads the ring is woken when it is half full, and reads it now and then before that. */
static __always_inline __u64 pk_ring_flags(void)
{
	__u64 waiting = bpf_ringbuf_query(&mapped, BPF_RB_AVAIL_DATA);

	return waiting > bpf_ringbuf_query(&mapped, BPF_RB_RING_SIZE) / 2 ? BPF_RB_FORCE_WAKEUP :
									     BPF_RB_NO_WAKEUP;
}

#endif
