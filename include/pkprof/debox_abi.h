/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) OR Apache-2.0 */
/*
 * What DeBox's kernel side (bpf/debox/) and its user side (src/debox) say to each other.
 * What programs see is in lib/debox/debox_record.h.
 *
 * Whoever includes this has __u8 .. __u64 already (linux/types.h).
 */
#ifndef PKPROF_DEBOX_ABI_H
#define PKPROF_DEBOX_ABI_H

#include "debox/debox_record.h"

enum {
	DB_SETS = 2048,    /* of threads' numbers; a power of two */
	DB_WAYS = 4,       /* threads in a set; a power of two */
	DB_AREAS = 8192,   /* threads whose program reads their records, and one for all others */
	DB_CALLS = 512,    /* numbers of calls that are told apart, of each table; a power of two */
	DB_KINDS = 128,    /* kinds of calls that a CPU counts; a power of two */
	DB_OCTAVES = 32,   /* of a histogram: up to 64 ns, and to 2, 4, 8 ... times that; a power of two */
	DB_STEPS = 8,      /* of an octave; a power of two */
	DB_BUCKETS = DB_OCTAVES * DB_STEPS,
	DB_PLACES = 16384, /* in the kernel */
	DB_SLEPT = 16384,  /* kinds of calls and places they slept at; and who woke them there */
	DB_FRAMES = 16,    /* of the kernel's stack, to find a place by */
	DB_SCAN = 512,     /* words of the kernel's stack in which what is waited for is looked for */
	DB_WALK = 256,     /* waiters that are counted */
	DB_OPEN = 64,      /* of a trace: functions in one another */
	DB_PIECES = 4,     /* of the trace of a thread whose program does not read it */
	DB_TOP_BYTES = 16 << 10, /* of a program's stack, from its top */
	DB_CPUS = 1024, /* a power of two */
};

/* Entries of a trace in as many pieces. */
#define DB_OWN_TRACES ((__u64)DB_PIECES * (__u64)DEBOX_TRACES)

/* What is wanted of a thread. */
enum db_wants {
	DB_MARKED = 1,  /* its program marks its calls: those alone are of interest */
	DB_RECORDS = 2, /* a program reads its records */
	DB_SLEEPS = 4,  /* places, resources, waiters and wakers, besides how often and how long */
	DB_FAULTS = 8,  /* pages, besides how many */
	DB_CALLS_ALL = 16, /* all of its calls, by the tracepoints on them */
	DB_TRACE = 32,     /* the kernel's functions that a call enters */
};

/* A thread whose calls are of interest. */
enum { DB_NO_STACK = 0xffffffff };

struct db_thread {
	__u32 tid;
	__u32 slot; /* where this entry is */
	__u32 pid;
	__u32 wants; /* enum db_wants */
	__u32 begets; /* the same of threads and processes that it begins; 0: they are of no interest */
	__u32 area;  /* where its records are: element base + stride * (n & mask) of it */
	__u32 base;
	__u32 mask;
	__u32 stride;
	__u32 call; /* 1 + the number of the call it is in; 0: none */
	__u32 kind; /* as in db_calls */
	__u32 traces; /* entries of a trace that there is room for */
	__u32 busy; /* within a hook of ours: what the kernel does for that is not the call's */
	__u32 stack; /* 1 + its counter in db_stacks; 0: not known yet; DB_NO_STACK: it is not there */
	__u64 sequence; /* of the record that is being written, or was last; see debox_record */
	__u64 touched;  /* the sequence of which something is in the record besides times */
	__u64 since_ns; /* beginning of the call */
	__u64 minor;    /* the thread's page faults then */
	__u64 major;
	__u64 mark;     /* where its program marks a call: address of a db_mark of its own */
	__u64 mm; /* memory of the program that reads its records; 0: not known yet */
	__u64 others;   /* of a process's first thread: how many others it has */
	__u64 async_ns; /* kernel time that was spent for it elsewhere, ever */
	__u64 async_seen;
	__u64 async_before; /* of that, what came since the last call whose record was written */
	/* Off the CPU. */
	__u64 off_ns;   /* since when; 0: it runs */
	__u64 woken_ns; /* since when it could run; 0: it sleeps */
	__u64 clock;    /* of the run queue it left, then */
	__u64 run_delay; /* how long it had been ready to run and not running, ever, then */
	__u32 asleep;   /* 1 + the entry of its record; 0: none */
	__u32 cpu;
	/* What it waits for: to be counted again when it is woken. */
	__u64 node; /* its entry in the list */
	__u64 head;
	__u64 key[3];
	__u32 wait; /* enum db_wait, see wait.bpf.c */
	__u32 restart; /* 1 + the number of a call that was interrupted and may go on */
	__u32 restart_why;
	__u32 restarts;
	__u64 restart_ip; /* where in the program it was made, */
	__u64 restart_sp;
	__u64 restart_ns; /* when, */
	__u64 restart_sequence; /* and which record it has */
};

/* In the program's own memory. */
struct db_mark {
	__u64 sequence; /* odd while a call goes on */
	__u64 start_ns;
};

/* Functions in which a thread waits for something else than it seems, or for anything. */
enum db_class {
	DB_CLASS_NONE = 0,
	DB_CLASS_FUTEX,
	DB_CLASS_FILE_LOCK,
	DB_CLASS_HELPER, /* many wait by it: who called it is the place */
	DB_CLASS_FUNCTIONS = 32,
};

struct db_function {
	__u64 start;
	__u64 size;
	__u64 class_; /* enum db_class */
};

/* Set before loading, constant afterwards. Addresses are 0 where they are not known. */
struct db_config {
	__u64 seed; /* of the numbers of what is waited for, so that they give no address away */
	__u64 runqueues; /* offsets in the per-CPU area */
	__u64 preempt_count;
	__u64 kernel_stat;
	__u64 scheduling; /* the scheduler's functions, and those of locks that sleep */
	__u64 scheduling_end;
	__u64 wake_page; /* functions by which waiters are woken */
	__u64 wake_bit;
	__u64 wake_variable;
	__u64 moves[2 * DB_CALLS / 64]; /* calls whose result is a number of bytes */
	struct db_function function[DB_CLASS_FUNCTIONS];
	__u32 tracing; /* traces are taken: of entries and exits, or of samples */
	__u32 stacks;  /* a slow call's record comes with the stack of the program */
	__u32 functions; /* that db_functions has */
	__u32 sample_ns; /* between two samples of a trace */
};

/* Of interest from now on; for db_watch. */
struct db_watched {
	__u32 tid;
	__u32 pid;
	__u32 wants;
	__u32 begets;
	__u32 area;
	__u32 base;
	__u32 mask;
	__u32 stride;
	__u32 traces;
	__u32 known; /* only if it is of interest already, with its records in .was: it may have ended */
	__u32 others; /* of a process's first thread: how many others it has */
	__u32 was;
	__u64 mark;
};

/* The disk request that a CPU completed last: told by a recording beside. */
struct db_done {
	__u64 interrupts; /* which run of an interrupt or a softirq that was */
	__u64 tid;        /* of the thread that it was for; 0: not known */
};

/* Calls of one kind, on one CPU. */
struct db_calls {
	__u64 count;
	__u64 errors;
	__u64 total_ns;
	__u64 longest_ns;
	__u64 asleep_ns;
	__u64 runnable_ns;
	__u64 voluntary;
	__u64 forced;
	__u64 minor;
	__u64 major;
	__u64 bytes;
	__u64 async_ns;
	__u32 kind; /* number, + DB_CALLS: of the 32-bit table */
	__u32 pad;
	__u32 bucket[DB_BUCKETS];
};

/* Sleeping of calls of one kind in one place. */
struct db_slept_key {
	__u32 kind;
	__u32 place;
	__u32 inside;
	__u32 pad;
};

struct db_slept {
	__u64 count;
	__u64 total_ns;
	__u64 longest_ns;
	__u64 runnable_ns;
	__u64 waiters; /* others who waited for the same when it began, over the times that it is known */
	__u64 waiters_known;
	__u64 waiters_most;
};

/* Who woke them there. */
struct db_waker_key {
	__u32 kind;
	__u32 place;
	__u32 context; /* enum debox_context */
	__u32 pid;     /* of a process, or a kernel thread; else 0 */
};

struct db_woken {
	__u64 count;
	char comm[DEBOX_COMM];
};

/* A function of the kernel's, where traces are of samples: its start, with the uppermost bit only if
 * it is wanted. */
#define DB_WANTED (1ULL << 63)

/* Functions that were entered, and are not left yet. */
struct db_open {
	__u64 sequence; /* of the call */
	__u32 depth;
	__u32 pad;
	struct db_entered {
		__u64 function;
		__u64 entry; /* 1 + its place in the trace; 0: there was no room */
	} at[DB_OPEN];
};

/*
 * A call that somebody wants to see whole is a struct debox_record; with the program's stack, if
 * stacks are wanted; with DB_PIECES of struct debox_trace_piece, if traces are taken.
 */
struct db_user_stack {
	__u64 ip; /* registers of user mode; ip is 0 where it is not 64-bit code */
	__u64 sp;
	__u64 fp;
	__u64 bytes;
	__u8 top[DB_TOP_BYTES]; /* from sp on */
};

/* What went wrong is never silent. */
struct db_stats {
	__u64 threads_full;  /* threads for which there was no room */
	__u64 kinds_full;    /* calls that could not be counted by kind */
	__u64 places_full;
	__u64 records_lost;  /* that found no room on their way to user space, */
	__u64 lost_longest_ns; /* and how long the longest of these calls took */
	__u64 marks_unread;  /* what happened to a thread whose mark could not be read */
	__u64 sleeps_full;   /* sleeps that could not be counted by place */
	__u64 unseen;        /* times that a thread was on its CPU again and nobody had seen it come */
};

#endif
