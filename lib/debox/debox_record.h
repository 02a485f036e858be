/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) OR Apache-2.0 */
/*
 * The record of one system call, as the kernel side (bpf/debox/) writes it and programs read it.
 * Part of the library's binary interface: fields are only added, in what is reserved.
 *
 * Times are nanoseconds of CLOCK_MONOTONIC. No address of the kernel's is in a record, since a
 * program that reads it need not have the right to know one: places in the kernel are numbers,
 * which debox_place() turns into names.
 */
#ifndef DEBOX_RECORD_H
#define DEBOX_RECORD_H

#include <linux/types.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
  DEBOX_SLEEPS = 12, /* places of sleeping that a record has room for */
  DEBOX_FAULTS = 24, /* pages that a record has room for */
  DEBOX_TRACES = 85, /* calls of functions in one piece of a trace */
  DEBOX_COMM = 16,
};

/* Of numbers of waiters: the kernel does not say. */
#define DEBOX_UNKNOWN 0xffffffffU

/* In what context a thread was woken. */
enum debox_context {
  DEBOX_BY_NOBODY = 0, /* not seen */
  DEBOX_BY_PROCESS,    /* in a process's own context: .pid, .tid, .comm */
  DEBOX_BY_KTHREAD,    /* by a thread of the kernel: .tid, .comm */
  DEBOX_BY_SOFTIRQ,
  DEBOX_BY_INTERRUPT,
};

/* Who woke the thread last at a place. */
struct debox_waker {
  __u32 pid;
  __u32 tid;
  /* Of an interrupt that completed a disk request: the process that asked for it; of a process that
   * is not looked at, its thread. 0: not known. */
  __u32 for_pid;
  __u32 context; /* enum debox_context */
  char comm[DEBOX_COMM];
};

/* A place in the kernel where the call slept. */
struct debox_sleep {
  __u32 place;    /* where: the innermost function that is not there for waiting */
  __u32 inside;   /* the scheduler's or the lock's function that it called there */
  __u64 resource; /* number of the queue or lock that was waited for; 0: not known */
  __u64 total_ns; /* from going to sleep to being woken, over all times */
  __u64 longest_ns;
  __u64 runnable_ns; /* from being woken to running again, over all times */
  __u32 count;
  __u32 waiters_entry; /* others who waited for the same when it last went to sleep */
  __u32 waiters_exit;  /* and when it was last woken */
  __u32 reserved;
  struct debox_waker waker;
};

/* A page that the call, or rather the kernel for it, found missing. */
struct debox_fault {
  __u64 address; /* of the page */
  __u32 minor;
  __u32 major;
  __u32 place; /* in the kernel that touched it */
  __u32 reserved;
};

enum debox_flags {
  DEBOX_MARKED = 1,       /* the program took the times itself */
  DEBOX_COMPAT = 2,       /* the number is of the 32-bit table */
  DEBOX_SAMPLED = 4,      /* the trace is of samples, not of entries and exits */
  DEBOX_NO_ARGUMENTS = 8, /* they are not known */
  DEBOX_GOES_ON = 16,     /* a signal came: a later record has all of the call */
  /* Something was not seen, since the kernel ran no program then: who woke the thread, or that it
   * came back to a CPU. Of marked calls .asleep_ns and .runnable_ns may be too small then. */
  DEBOX_UNSEEN = 32,
  DEBOX_OFF_CPU = 64, /* while the call goes on: so is the thread */
};

struct debox_record {
  /* 2n - 1 while the thread's n-th call goes on, 2n when it is over. */
  __u64 sequence;
  __u64 start_ns;
  __u64 wall_ns;
  __s64 result; /* as the kernel gives it: -errno is an error */
  __u64 argument[6];
  __u32 number; /* of the call */
  __u32 flags;
  __u32 pid;
  __u32 tid;
  __u32 cpu;       /* on which it ended */
  __u32 voluntary; /* context switches: it slept */
  __u32 forced;    /* and: it had to make room */
  __u32 migrations;
  __u32 minor_faults;
  __u32 major_faults;
  __u32 signals;  /* delivered while it went on */
  __u32 restarts; /* times that it was interrupted by a signal and went on */
  __u64 asleep_ns;
  __u64 runnable_ns; /* ready to run, and not running: after sleeping and after making room */
  /* Kernel time spent for the thread elsewhere while the call went on; and what was charged to it
   * between this call's end and the next one's beginning. */
  __u64 async_ns;
  __u64 async_later_ns;
  __u32 sleeps;          /* entries of .sleep in use */
  __u32 faults;          /* entries of .fault in use */
  __u32 sleeps_left_out; /* times it slept at places for which there was no room */
  __u32 faults_left_out; /* faults on pages for which there was no room */
  __u32 traces;          /* calls of functions that follow this record */
  __u32 traces_left_out;
  /* The .async_later_ns of the call before, for who reads each record once. */
  __u64 async_before_ns;
  __u64 reserved[8];
  struct debox_sleep sleep[DEBOX_SLEEPS];
  struct debox_fault fault[DEBOX_FAULTS];
  __u64 reserved_too[20];
};

/* A call of a function of the kernel's, in the order of their entries; interrupts left out. With
 * DEBOX_SAMPLED what samples saw of them. */
struct debox_trace {
  __u32 function; /* a place */
  __u32 depth;    /* 0: called by the system call itself */
  __u64 begin_ns; /* as start_ns */
  /* 0: it was not left before the call ended. Of samples: how much CPU time they stand for. */
  __u64 wall_ns;
};

/* What follows a record that has a trace; as large as a record. */
struct debox_trace_piece {
  struct debox_trace trace[DEBOX_TRACES];
  __u64 reserved;
};

#ifdef __cplusplus
}
static_assert(sizeof(struct debox_waker) == 32 && sizeof(struct debox_sleep) == 88 &&
                  sizeof(struct debox_fault) == 24 && sizeof(struct debox_record) == 2048 &&
                  sizeof(struct debox_trace_piece) == 2048,
              "the layout is the interface");
#else
_Static_assert(sizeof(struct debox_waker) == 32 && sizeof(struct debox_sleep) == 88 &&
                   sizeof(struct debox_fault) == 24 && sizeof(struct debox_record) == 2048 &&
                   sizeof(struct debox_trace_piece) == 2048,
               "the layout is the interface");
#endif

#endif
