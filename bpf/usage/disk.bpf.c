// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Disks: bytes, and how long requests were queued and served, for whoever a request is charged to
 * (bpf/sources/block.bpf.c). All requests are counted.
 */
#include "core/hook.bpf.h"
#include "usage/usage.bpf.h"

#include <bpf/bpf_tracing.h>

/* A request that is at a disk. */
struct pk_at_disk {
	__u64 request;
	__u64 since;
	__u64 queued; /* ns before that */
	__u32 window; /* of the hooks, in which this was noted */
	__u32 pad;
};

struct at_disk_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* PK_DISK_REQUESTS where it is wanted */
	__type(key, __u32);
	__type(value, struct pk_at_disk);
};

struct at_disk_map at_disk SEC(".maps");
struct usage_scratch_map usage_scratch SEC(".maps");

static __always_inline struct pk_at_disk *pk_at_disk(__u64 request)
{
	__u32 place = (request * 0x9e3779b97f4a7c15ULL >> 32) & (PK_DISK_REQUESTS - 1);

	return bpf_map_lookup_elem(&at_disk, &place);
}

SEC("?tp_btf/block_rq_issue")
int BPF_PROG(pk_disk_begins, struct request *rq)
{
	struct pk_cpu *c = pk_hook(PK_HOOKS_USAGE);
	__u64 request = pk_plain(c, rq), now = bpf_ktime_get_ns(), made = rq->start_time_ns;
	struct pk_at_disk *at = pk_at_disk(request);

	if (!at)
		return 0;
	if (unlikely(at->request && at->request != request && at->window == window))
		c->stats.usage_lost++; /* the times of another one, which has the same place */
	at->request = request;
	at->since = now;
	at->window = window;
	at->queued = made && made < now ? now - made : 0;
	return 0;
}

/* Some of its bytes are done; `all`: the last of them. */
static __noinline int pk_disk_done(struct pk_cpu *c, __u64 request, __u64 device, __u64 bytes, __u32 all)
{
	struct pk_at_disk *at = pk_at_disk(request);
	__u64 since, now = bpf_ktime_get_ns();

	if (!c || !at)
		return 0;
	pk_used_by(c, PK_DISK_BYTES, device, bytes, all, c->disk.done, PK_BASIS_SUBMITTER);
	if (!all || at->request != request)
		return 0;
	at->request = 0;
	since = at->since;
	if (since < started) /* of what went on already, the part that is counted */
		since = started;
	else if (at->queued)
		pk_used_by(c, PK_DISK_QUEUED, device, at->queued, 0, c->disk.done, PK_BASIS_SUBMITTER);
	pk_used_by(c, PK_DISK_SERVICE, device, now - since, 0, c->disk.done, PK_BASIS_SUBMITTER);
	return 0;
}

/* After pk_block_rq_complete, which says whose it is. */
SEC("?tp_btf/block_rq_complete")
int BPF_PROG(pk_disk_ends, struct request *rq, int error, unsigned int bytes)
{
	struct pk_cpu *c = pk_hook(PK_HOOKS_USAGE);
	struct gendisk *disk;

	if (!started)
		return 0;
	disk = rq->q->disk;
	return pk_disk_done(c, pk_plain(c, rq),
			    PK_DEVICE(disk ? BPF_CORE_READ(disk, major) << 20 | BPF_CORE_READ(disk, first_minor) : 0,
				      rq->cmd_flags & 0xff),
			    bytes, bytes >= rq->__data_len);
}
