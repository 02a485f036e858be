/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Who is ahead at a disk? A disk that has several requests to do is at work for whoever's it ends next.
 * So whom a wait for a disk is for is told by the request that ended first after a random moment of the
 * wait: as often that of another as the disk was at work for that one.
 */
#ifndef PKPROF_WAIT_DISK_BPF_H
#define PKPROF_WAIT_DISK_BPF_H

#include "core/state.bpf.h"
#include "core/strata.bpf.h"

enum { PK_REQUESTS_DONE = 1024 /* that a disk did last; a power of two */ };

struct pk_request_done {
	__u64 at;
	__u64 party;
};

/* What a disk did lately. */
struct pk_disk_log {
	__u64 disk; /* its queue; 0: the place is free */
	__u64 next;
	struct pk_request_done done[PK_REQUESTS_DONE];
};

struct disk_logs_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* PK_DISKS where it is wanted */
	__type(key, __u32);
	__type(value, struct pk_disk_log);
};

extern struct disk_logs_map disk_logs SEC(".maps");

static __always_inline struct pk_request_done *pk_request_done(struct pk_disk_log *log, __u64 number)
{
	return &log->done[number & (PK_REQUESTS_DONE - 1)];
}

/*
 * The current CPU has just ended a request, which the wait since then was for. The party whom the disk
 * was at work for at some moment of it; `own`: the request's own.
 */
static __noinline __u64 pk_ahead_at_disk(struct pk_cpu *c, __u64 since, __u64 own)
{
	__u64 now = bpf_ktime_get_ns(), back = 0, moment;
	struct pk_disk_log *log;
	__u32 place;

	if (!c || !c->waits.disk || now <= since)
		return own;
	place = c->waits.disk - 1;
	log = bpf_map_lookup_elem(&disk_logs, &place);
	if (!log)
		return own;
	moment = now - pk_random_part(now - since);
	/* How far back is the first that ended after that? They are in the order of their ends. */
#pragma unroll
	for (__u32 step = PK_REQUESTS_DONE / 2; step; step /= 2)
		if (pk_request_done(log, c->waits.request - back - step)->at >= moment)
			back += step;
	return back ? pk_request_done(log, c->waits.request - back)->party : own;
}

#endif
