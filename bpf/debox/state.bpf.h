/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What DeBox's units share: which threads are of interest, their records, what CPUs count.
 * Defined in state.bpf.c.
 *
 * A thread's entry and its record are written by the thread itself, in its calls and on its way off
 * the CPU and back, and by whoever wakes it, while it is off: never by two at a time.
 */
#ifndef DEBOX_STATE_BPF_H
#define DEBOX_STATE_BPF_H

#include "core/code.bpf.h"
#include "core/percpu.bpf.h"

#include "pkprof/debox_abi.h"

/* Around a list of those who wait, from `node` back to `end`; see wait.bpf.c. */
struct db_walk {
	__u64 end;
	__u64 node;
	__u64 own;  /* not to be counted */
	__u64 head; /* one that is no entry: the first of them */
	__u64 key[3];
	__u32 wait;
	__u32 entries;
	__u32 closed;
};

/* Through the words of a stack. */
struct db_scan {
	__u64 task;
	__u64 sp;
	__u64 place;
};

/* Through a tree of requests for a lock on a file. */
struct db_tree {
	__u64 root;
	__u64 lock;
	__u32 back; /* its children were seen */
	__u32 entries;
};

/* Through the frames of a stack. */
struct db_frames {
	__u64 place;
	__u64 inside;
	__u32 depth;
};

/* Through a table in order. */
struct db_search {
	__u64 ip;
	__u32 from; /* the first that may be it, */
	__u32 end;  /* and the one behind the last */
};

/* What a CPU keeps to itself. */
struct db_cpu {
	struct db_stats stats; /* first: user space reads it */
	__u64 plain; /* see db_plain() */
	__u64 percpu; /* base of its per-CPU area, 0 before it is known */
	__u64 now; /* of a trace's entry or sample */
	/* What loops go by is kept here: 6.1 takes what is on the stack before a loop for what is there in
	 * all of it, and leaves out what then seems never to be done. */
	struct db_walk walk;
	struct db_scan scan;
	struct db_tree tree;
	struct db_frames frames;
	struct db_search search;
	__u64 at[DB_FRAMES];
	__u64 word[DB_SCAN];
	__u64 function[DB_OPEN]; /* the frames of a sample */
	__u16 kind_of[2 * DB_CALLS]; /* 1 + the place of this kind of calls among the CPU's; 0: none yet */
	__u32 kinds;
} __attribute__((aligned(128)));

struct db_records {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE | BPF_F_INNER_MAP);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct debox_record));
};

/* Of threads whose programs read them; 0: of all others. */
struct db_areas {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, DB_AREAS);
	__type(key, __u32);
	__array(values, struct db_records);
};

struct db_kinds {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* DB_KINDS for each CPU */
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct db_calls);
};

struct db_cpus {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct db_cpu);
};

/* Numbers of places in the kernel, by address. */
struct db_places {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, DB_PLACES);
	__type(key, __u64);
	__type(value, __u32);
};

struct db_sleeps {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, DB_SLEPT);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct db_slept_key);
	__type(value, struct db_slept);
};

struct db_wakers {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, DB_SLEPT);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct db_waker_key);
	__type(value, struct db_woken);
};

/* Of threads whose programs do not read their records: DB_PIECES each. */
struct db_traces {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct debox_trace_piece);
};

struct db_opens {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* one for each thread */
	__type(key, __u32);
	__type(value, struct db_open);
};

/* Where the kernel's functions begin, in order. */
struct db_functions {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, __u64);
};

/* Calls that somebody wants to see whole: see struct db_user_stack. */
struct db_slow {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 22);
};

extern struct db_areas db_areas SEC(".maps");
extern struct db_kinds db_kinds SEC(".maps");
extern struct db_cpus db_cpus SEC(".maps");
extern struct db_places db_places SEC(".maps");
extern struct db_sleeps db_sleeps SEC(".maps");
extern struct db_wakers db_wakers SEC(".maps");
extern struct db_slow db_slow SEC(".maps");
extern struct db_traces db_traces SEC(".maps");
extern struct db_opens db_opens SEC(".maps");
extern struct db_functions db_functions SEC(".maps");

extern const volatile struct db_config db_config;
extern __u32 db_tids[DB_SETS * DB_WAYS];
extern struct db_thread db_threads[DB_SETS * DB_WAYS];
/*
 * Whose system call is it? Asking for the thread takes a call, and a call takes a fifth of what such
 * a hook does where the processor's return is not to be trusted. But the registers that a program
 * entered the kernel with always lie at the same place of its thread's stack, and the hook is given
 * that: here is counted how many threads of interest have theirs in one of so many classes of places.
 * Those of which it is not known yet, since they made no call, are counted beside.
 */
#define DB_STACKS 4096
extern __u32 db_stacks[DB_STACKS];
extern __u32 db_stacks_unknown;
extern struct db_done db_done[DB_CPUS];
extern __u32 db_place_count;
extern __u32 db_places_there; /* of these, how many db_places has */
extern volatile __u64 db_left_out[2 * DB_CALLS / 64]; /* kinds of calls that are of no interest */
extern volatile __u64 db_slow_ns; /* calls that take longer are to be seen whole */

/* What a loop's body is given. */
struct db_loop {
	struct db_cpu *c;
	struct db_thread *t;
};

static __always_inline struct db_cpu *db_this_cpu(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&db_cpus, &zero);
}

/* preempt_count of this CPU; 0 where it is not known. */
static __always_inline __u32 db_preempt_count(struct db_cpu *c, struct task_struct *task)
{
	__u32 count = 0;
	__u64 rq;

	if (!c->percpu && db_config.runqueues) {
		rq = (__u64)BPF_CORE_READ(task, se.cfs_rq, rq);
		if (rq)
			c->percpu = rq - db_config.runqueues;
	}
	if (c->percpu && db_config.preempt_count)
		bpf_probe_read_kernel(&count, sizeof(count),
				      (void *)(c->percpu + db_config.preempt_count));
	return count;
}

static __always_inline __u64 db_plain(struct db_cpu *c, const volatile void *p)
{
	return plain_number(&c->plain, p);
}

static __always_inline __u32 db_class_of(__u64 address)
{
	for (__u32 i = 0; i < DB_CLASS_FUNCTIONS; i++)
		if (address - db_config.function[i].start < db_config.function[i].size)
			return db_config.function[i].class_;
	return DB_CLASS_NONE;
}

/* Nearly always there is none: this is what each other thread on the machine pays. */
static __always_inline struct db_thread *db_find(__u32 tid)
{
	__u32 first = (tid & (DB_SETS - 1)) * DB_WAYS;
	__u32 *set = &db_tids[first];

	if (likely(set[0] != tid)) {
		if (set[1] == tid)
			first += 1;
		else if (set[2] == tid)
			first += 2;
		else if (set[3] == tid)
			first += 3;
		else
			return 0;
	}
	return tid ? &db_threads[first & (DB_SETS * DB_WAYS - 1)] : 0;
}

/* The class of this place; 1 to DB_STACKS. A number, whatever the verifier knows of the pointer. */
static __always_inline __u32 db_stack_of(__u64 regs)
{
	__u32 low;

	asm volatile("%0 = %1" : "=w"(low) : "w"((__u32)regs));
	return 1 + (low >> 14 & (DB_STACKS - 1));
}

/* Is it certain that the thread with these registers is of no interest? */
static __always_inline bool db_is_other(__u64 regs)
{
	return !db_stacks[db_stack_of(regs) - 1] && !*(volatile __u32 *)&db_stacks_unknown;
}

/* The thread runs, and these are its registers. */
static __always_inline void db_learn_stack(struct db_thread *t, __u64 regs)
{
	__u32 stack = db_stack_of(regs);

	if (likely(t->stack) || __sync_val_compare_and_swap(&t->stack, 0, stack))
		return;
	__sync_fetch_and_add(&db_stacks[(stack - 1) & (DB_STACKS - 1)], 1);
	__sync_fetch_and_add(&db_stacks_unknown, -1);
}

/* The thread that runs comes into a hook of ours, or leaves it. */
static __always_inline void db_within(struct task_struct *task, __s32 change)
{
	struct db_thread *t;

	if (!db_config.tracing)
		return;
	t = db_find(task->pid);
	/* It may have become of interest in between. */
	if (t && (change > 0 || t->busy))
		t->busy += change;
}

static __always_inline struct debox_record *db_record(struct db_thread *t)
{
	__u32 area = t->area;
	void *records = bpf_map_lookup_elem(&db_areas, &area);
	__u32 index = t->base + t->stride * ((__u32)((t->sequence + 1) >> 1) & t->mask);

	return records ? bpf_map_lookup_elem(records, &index) : 0;
}

#endif
