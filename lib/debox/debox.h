/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DeBox: after a system call, the program itself reads what the call did, without another one.
 *
 * A thread switches it on (the paper's DeBoxControl), and then, marked:
 *
 *     debox_begin(SYS_read);
 *     ssize_t n = read(fd, buffer, sizeof buffer);
 *     const struct debox_record *r = debox_end(n < 0 ? -errno : n);
 *
 * or, with DEBOX_ALL_CALLS, it makes its calls as always and asks for debox_last().
 *
 * The kernel side is pkprof's: `pkprof debox -- PROGRAM`, or `pkprof debox --attach PID` for a
 * program that runs already. The program needs no rights. Without pkprof marked calls still have
 * their times; all else is 0, and debox_serves() says so.
 *
 * All functions here are for the calling thread alone. They may be called in a signal handler, but
 * for debox_on(), debox_off() and debox_place(); a handler's marked calls are left out while the
 * thread is in one.
 */
#ifndef DEBOX_H
#define DEBOX_H

#include <stddef.h>
#include <stdint.h>

#include "debox_record.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DEBOX_VERSION 1

enum debox_parts {
  DEBOX_PART_SLEEPS = 1, /* places, what was waited for, waiters, wakers */
  DEBOX_PART_FAULTS = 2, /* page faults, and on which pages */
  DEBOX_PART_TRACE = 4,  /* the kernel's functions that were entered */
  DEBOX_PARTS = DEBOX_PART_SLEEPS | DEBOX_PART_FAULTS, /* what is wanted by default */
};

enum debox_mode {
  DEBOX_MARKED_CALLS = 0, /* between debox_begin() and debox_end(): nobody else pays */
  DEBOX_ALL_CALLS = 1,    /* each call; every process on the machine pays meanwhile */
};

struct debox_options {
  uint32_t size;    /* sizeof(struct debox_options): later versions may have more */
  uint32_t mode;    /* enum debox_mode */
  uint32_t parts;   /* enum debox_parts */
  uint32_t records; /* that are kept: the last so many, rounded up to a power of two; up to 4096 */
  uint32_t traces;  /* of functions, at most, a call */
};

/* The usual: marked, sleeps and faults, 16 records. */
#define DEBOX_OPTIONS_INIT {sizeof(struct debox_options), DEBOX_MARKED_CALLS, DEBOX_PARTS, 16, 0}

/*
 * Switches it on for this thread, or changes how; NULL: the usual. Returns 0, or -1 with errno:
 * ENOMEM; EINVAL, options that make no sense; with DEBOX_ALL_CALLS also ECONNREFUSED, no pkprof
 * serves this process; EDQUOT, this process or its user has as many records as they may; ESRCH, it
 * may not be looked into (see prctl(2), PR_SET_DUMPABLE). A marked thread that is not served yet is
 * so within a second of when it can be, at one of its calls.
 */
int debox_on(const struct debox_options* options);
void debox_off(void);

/* Whether the kernel side serves this thread: records are whole. */
int debox_serves(void);

/* The beginning and the end of a marked call. Number and arguments are for the reader of the
 * record. */
void debox_begin(uint32_t number);
void debox_begin_with(uint32_t number, const uint64_t argument[6]);
/*
 * `result` is as the kernel gives it, -errno for errors. Returns the call's record, which stays as
 * it is until as many other calls were made as records are kept; NULL if the thread has not
 * switched it on. errno stays as it is.
 */
const struct debox_record* debox_end(int64_t result);

/* The call with its record: as syscall(2), but for the result, which is the kernel's own. */
int64_t debox_syscall(uint32_t number, const uint64_t argument[6]);

/* The record of the last call that is over; NULL: there is none. */
const struct debox_record* debox_last(void);

/*
 * Copies the oldest record that was not read by this function yet. Returns 1, or 0 where there is
 * none. What was overwritten before it was read is in debox_lost().
 */
int debox_next(struct debox_record* record);
uint64_t debox_lost(void);

/* The trace of a record that debox_last() or debox_end() gave; record->traces of them. */
const struct debox_trace* debox_traces_of(const struct debox_record* record);

/*
 * The name of a place in the kernel, "pipe_read+0x1a4", or with the file and line where pkprof
 * knows them; "" if it is not known. Asks pkprof, once for each place, by system calls: where all
 * calls are recorded, they are too, and take the places of older records.
 */
const char* debox_place(uint32_t place);

#ifdef __cplusplus
}
#endif

#endif
