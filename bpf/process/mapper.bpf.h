/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What a CPU needs to look up a mapping or a file's name and to tell user space of it: memory for
 * one at a time in each of the contexts that interrupt one another, and the ring that all go through.
 */
#ifndef PKPROF_MAPPER_BPF_H
#define PKPROF_MAPPER_BPF_H

#include "core/state.bpf.h"

enum {
	PK_RANGES = 16,     /* that a CPU remembers of the process at hand; a power of two */
	PK_MOST_WALKS = 32, /* a stack: without frame pointers anything may be in it */
	PK_PIVOTS = 16,     /* room for a node's */
	PK_TREE_LEVELS = 8, /* more than a tree has */
	PK_PATH_STEPS = 128, /* names and mount points on the way to the root */
};

/* Where it is known what lies there. */
struct pk_range {
	__u64 start;
	__u64 length;
	__u64 frame; /* what its frames have beside their address: see PK_FRAME_IN_FILE */
	__u64 file;  /* number, or enum pk_no_file */
	__u64 shift; /* from an address to the offset in the file */
	__u64 code;  /* it may be executed */
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

/* Where the way up a stack of user code is; see user/unwind.bpf.c. */
struct pk_user_walk {
	__u64 ip; /* of the frame at hand, */
	__u64 sp; /* in it, */
	__u64 fp;
	__u64 mm;
	__u64 regs; /* where the kernel keeps the registers of user mode */
	__u64 top; /* which of the ranges the stack lies in */
	__u64 word[7]; /* of the stack, as they were read last */
	__u32 depth;
	__u8 exact; /* .ip was interrupted, and not returned to */
	__u8 end;   /* enum pk_stack_end */
	__u8 untabled; /* the frame's file has no table yet */
	__u8 in_exec; /* the task is between two programs */
};

/* Stacks that were handed over lately in one context; see pk_unfinished. */
struct pk_handed_over {
	__u64 since;
	__u64 count; /* since then */
	__u64 ever;
};

/*
 * A CPU's, for as long as it is at work on one stack or one label. What its loops depend on is here,
 * too: a verifier would go through each value that it can have in a register.
 */
struct pk_mapper {
	__u32 busy;
	__u32 level; /* whose it is: pk_level() */
	__u32 next; /* of .range, to be overwritten */
	__u32 walks; /* for this stack */
	__u32 lost;
	__u32 pad;
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
	__u64 last; /* of .range, that was found last */
	struct pk_user_walk walk;
	struct pk_handed_over over;
	struct pk_mapping_key key;
	struct pk_mapping mapping;
	struct pk_mapped told;
	__u64 pivots[PK_PIVOTS];
	struct pk_file_key file;
	struct pk_file_name name;
};

struct mappers_map {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, PK_LEVELS); /* by pk_level() */
	__type(key, __u32);
	__type(value, struct pk_mapper);
};

struct mapped_ring {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 262144); /* or more, by how many CPUs there are */
};

extern struct mappers_map mappers SEC(".maps");
extern struct mapped_ring mapped SEC(".maps");

static __always_inline struct pk_mapper *pk_mapper_of(__u32 level)
{
	return bpf_map_lookup_elem(&mappers, &level);
}

/*
 * The context's mapper, to be given back; NULL: it is in use. Only a program that is preempted, or
 * that meets a hook in the middle, can have it then. What is not told to user space now may never be.
 * By itself: in Linux 6.1 calls that are in each other have 512 bytes of stack together.
 */
static __noinline struct pk_mapper *pk_take_mapper(struct pk_cpu *c)
{
	struct pk_mapper *m;
	__u32 level;

	if (!c)
		return NULL;
	level = pk_level(c);
	m = pk_mapper_of(level);
	if (!m || m->busy)
		return NULL;
	m->busy = 1;
	m->level = level;
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
