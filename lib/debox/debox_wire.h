/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the library and pkprof say to each other: packets on a Unix socket (SOCK_SEQPACKET). The
 * library asks, pkprof answers each in turn. Its name is in the environment, or tells the process.
 *
 * Private to both; a program sees nothing of it.
 */
#ifndef DEBOX_WIRE_H
#define DEBOX_WIRE_H

#include <linux/types.h>

/* Abstract names: that of a command's server, in the environment; of one that was attached. */
#define DEBOX_WIRE_ENVIRONMENT "PKPROF_DEBOX"
#define DEBOX_WIRE_ATTACHED "pkprof-debox." /* and the number by which the process knows itself */

enum { DEBOX_WIRE_VERSION = 1, DEBOX_WIRE_NAME = 256 };

enum debox_wire_what {
  DEBOX_WIRE_ON = 1,
  DEBOX_WIRE_OFF = 2,
  DEBOX_WIRE_PLACE = 3,
};

struct debox_wire_request {
  __u32 version;
  __u32 what; /* enum debox_wire_what */
  __u32 tid;  /* as the process itself knows it */
  __u32 mode;
  __u32 parts;
  __u32 records; /* a power of two */
  __u32 traces;
  __u32 place;
  __u64 mark; /* address of a debox_wire_mark */
};

struct debox_wire_answer {
  __u32 version;
  __s32 error;  /* an errno; 0: done */
  __u32 parts;  /* that can be had */
  __u32 stride; /* elements a record, with its trace; of DEBOX_WIRE_ON, which comes with memory: */
  char name[DEBOX_WIRE_NAME]; /* a debox_wire_header, then `records` times `stride` records */
};

/* In the program's memory: the kernel side reads it when something happens to the thread. */
struct debox_wire_mark {
  __u64 sequence; /* odd while a call goes on */
};

/* The first element of the shared memory. */
struct debox_wire_header {
  __u64 async_ns; /* kernel time spent for the thread elsewhere, ever */
};

#endif
