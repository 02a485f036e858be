/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What every unit shares: configuration, per-CPU state, the tables that user space reads.
 * Defined in state.bpf.c.
 *
 * Samples are counted here, in the kernel, so that nothing of ours need run for a profile to
 * grow (see src/kernel/kernel_tables.cc for how they are emptied).
 */
#ifndef PKPROF_STATE_BPF_H
#define PKPROF_STATE_BPF_H

#include "core/code.bpf.h"
#include "core/kernel.bpf.h"

#include "pkprof/cpu.h"
#include "pkprof/debox_abi.h"

/* Which work a kernel stack is; see place.bpf.h. */
struct pk_place {
	__u64 hash;
	__u32 depth;  /* frames of the asynchronous part, or all */
	__u32 beyond; /* frames looked at after it */
	__u32 at;     /* PK_AT_*, of the asynchronous part */
	__u32 unlock; /* 1 + the frame of PK_FN_UNLOCK, 0 for none */
	__u32 receive; /* the same of the outermost PK_FN_RECEIVE, if that is of one packet */
	__u32 pad2;
	__u64 packet; /* that it is at, as the stack has it; 0: not known */
	__u8 vec;
	__u8 inline_send; /* the softirq runs at the end of the task's own sending */
	__u8 async;
	__u8 foreign; /* a frame is in none of the functions that are known */
	__u8 pad[4];
};

/* On the way up a kernel stack; see unwind.bpf.h and unwind_learn.bpf.h. */
struct pk_unwind {
	__u64 ip; /* of the frame at hand */
	__u64 sp; /* in it */
	__u64 from; /* where the search for what it returns to began, */
	__u64 at;   /* and where it is */
	__u64 top;  /* where the first function of a system call returns to */
	__u32 depth;
	__u32 frames; /* to be found */
	__u8 exact;   /* .ip was interrupted, and not returned to */
	__u8 whole;   /* the way was found */
	__u8 switched; /* the search goes on on another stack */
	__u8 differs; /* what was remembered, from what the kernel says */
	__u8 doubting; /* even what is known for sure */
	__u8 pad[3];
};

struct pk_scratch {
	struct pk_place place;
	struct pk_stack stack;
	struct pk_stack check; /* what the kernel says that it is; then, like .places */
	struct pk_unwind unwind;
	__u64 places[PK_MAX_DEPTH]; /* of frames on the stack */
	__u32 placed; /* of the way up as remembered: .places of so many are the code's stack pointers */
	__u32 pad2;
	__u64 pad[16];
};

/*
 * counts and stacks are behind one more level: entry 0 is the table in use. User space puts an
 * empty one there and, once no program can see the old one any more (the kernel's update of such
 * a map waits for that), empties the old one at leisure. Counts it takes every second. Stacks stay,
 * since most come again, and are looked up by those that are new to it, until their table fills.
 */
struct counts_table {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1); /* set before loading */
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(key_size, sizeof(struct pk_key));
	__uint(value_size, sizeof(struct pk_count));
};

struct counts_map {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, __u32);
	__array(values, struct counts_table);
};

struct stacks_table {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(key_size, sizeof(__u64));
	__uint(value_size, sizeof(struct pk_stack));
};

struct stacks_map {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, __u32);
	__array(values, struct stacks_table);
};

struct labels_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u64);
	__type(value, struct pk_label);
};

struct owners_map {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536); /* or more, by how many files are open */
	__type(key, __u64);
	__type(value, __u64);
};

struct votes_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct pk_vote_key);
	__type(value, struct pk_vote);
};

struct scratch_map {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 2); /* 0: the sampler's, 1: the hooks' (the sampler may interrupt them) */
	__type(key, __u32);
	__type(value, struct pk_scratch);
};

/* What CPUs keep of calls, PK_CALL_SLOTS each; and what waits. Set before loading where it is wanted. */
struct calls_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct pk_call);
};

struct waiting_calls_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct pk_waiting_calls);
};

/* DeBox's memory (see debox/state.bpf.h), and the records that programs read. Where DeBox is not
 * on there are none, and nothing looks there. */
struct debox_memory_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, 8);
};

struct debox_records_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE | BPF_F_INNER_MAP);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct debox_record));
};

struct debox_areas_map {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, __u32);
	__array(values, struct debox_records_map);
};

extern struct debox_memory_map debox_memory SEC(".maps");
extern struct debox_areas_map debox_areas SEC(".maps");
extern struct counts_map counts SEC(".maps");
extern struct stacks_map stacks SEC(".maps");
extern struct labels_map labels SEC(".maps");
extern struct owners_map owners SEC(".maps");
extern struct scratch_map scratch SEC(".maps");
extern struct votes_map votes SEC(".maps");
extern struct calls_map calls SEC(".maps");
extern struct waiting_calls_map waiting_calls SEC(".maps");

extern const volatile struct pk_config config;
extern volatile struct pk_addresses addresses;

extern struct pk_cpu cpus[PK_MAX_CPUS];
extern struct pk_slot slots[PK_SLOTS];
extern __u32 slot_tags[PK_SLOTS];
extern struct pk_note notes[PK_NOTE_TABLES * PK_NOTES];
extern __u64 unwinds[PK_UNWINDS];
extern struct pk_packet_frame packet_frames[PK_FUNCTIONS];
extern volatile __u64 started; /* ktime of the start: a first sample stands for the time since; 0: none counts */
extern volatile __u64 stopped; /* ktime of the end, for those who come to read later; 0: it goes on */
extern volatile __u64 period; /* ns between samples now */
extern volatile __u32 window; /* 0: the hooks are off; else a number, a new one each time they go on */
/* What an interrupt takes before its entry and after its exit are seen. */
extern volatile __u32 interrupt_entry_ns;
extern volatile __u32 resting; /* enum pk_rest: hooks that are off since nothing needs them */
extern volatile __u32 rows; /* of the table of counts in use */
extern volatile __u32 stored_stacks; /* in the table of stacks in use */
extern volatile __u32 rows_with_stacks; /* how many there may be before new ones get no stacks */
extern volatile __u64 self; /* label of the process that records; 0 before it is known */
extern volatile __u64 counting; /* calls are counted now */
extern volatile __u32 epoch; /* grows when user space has taken the tables: labels are to be told anew */

static __always_inline struct pk_cpu *this_cpu(void)
{
	__u32 cpu = bpf_get_smp_processor_id();

	return &cpus[cpu & (PK_MAX_CPUS - 1)];
}

/*
 * Has it no sampling clock? It went offline since that was opened, or was offline at the start. What
 * is not sampled is not known: neither are its interrupts counted, nor its turns.
 */
static __always_inline bool pk_is_away(struct pk_cpu *c)
{
	return c->clock.gone != c->clock.opened;
}

/* This CPU's preempt_count; ~0 when it is not known where that is. */
static __always_inline __u32 pk_preempt_count(struct pk_cpu *c)
{
	__u32 count = ~0U;
	long err = 0;

	if (config.preempt_count) /* where .percpu is not known yet, there is nothing to be read */
		err = bpf_probe_read_kernel(&count, sizeof(count),
					    (void *)(c->percpu + config.preempt_count));
	return count | (__u32)(err >> 63);
}

/*
 * What interrupts what: the sampler a hook in a hard interrupt, that one in a softirq, that one in a
 * process. Each has memory of its own, or it would find the other's there when it goes on.
 *
 * 1: the sampler, 2: a hard interrupt, 3: a softirq, 0: a process. Where preempt_count is not known,
 * as far as hooks have said so. There are no branches, since this stands before much else.
 */
static __always_inline __u32 pk_level(struct pk_cpu *c)
{
	__u32 count = pk_preempt_count(c);
	__u64 known = is_some(~count), sampling = is_some(c->sampler.sampling);
	__u64 hard = (is_some(count & (HARDIRQ_MASK | NMI_MASK)) & known) |
		     (is_some(c->irq.since) & ~known);
	__u64 soft = (is_some(count & SOFTIRQ_OFFSET) & known) | (is_some(c->measure.softirq_ends) & ~known);
	__u64 level = hard * 2 + (soft & ~hard) * 3;

	level = (level & (sampling - 1)) + sampling;
	forget_value(level);
	return level & (PK_LEVELS - 1);
}

static __always_inline struct pk_packet_info *pk_info(struct pk_cpu *c)
{
	return &c->scratch.info[pk_level(c)];
}

static __always_inline __u64 pk_plain(struct pk_cpu *c, const volatile void *p)
{
	return plain_number(&c->sampler.plain, p);
}

#endif
