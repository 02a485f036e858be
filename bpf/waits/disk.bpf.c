// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* What disks did lately, noted: see disk.bpf.h. */
#include "waits/disk.bpf.h"

#include "core/hook.bpf.h"
#include "core/run.bpf.h"
#include "who/party.bpf.h"

#include <bpf/bpf_tracing.h>

struct disk_logs_map disk_logs SEC(".maps");

/* The disk's place + 1; 0: there is none left. */
static __noinline __u32 pk_place_of_disk(__u64 disk)
{
	__u32 first = disk * 0x9e3779b97f4a7c15ULL >> 32, i, place;
	struct pk_disk_log *log;

	for (i = 0; i < PK_DISKS_NEAR; i++) {
		place = (first + i) & (PK_DISKS - 1);
		log = bpf_map_lookup_elem(&disk_logs, &place);
		if (log && (log->disk == disk || !__sync_val_compare_and_swap(&log->disk, 0, disk)))
			return place + 1;
	}
	return 0;
}

/* After pk_block_rq_complete, which says whose it is, and before whoever waits for it is woken. */
SEC("?tp_btf/block_rq_complete")
int BPF_PROG(pk_wait_disk, struct request *rq, int error, unsigned int bytes)
{
	struct pk_cpu *c = pk_hook(PK_HOOKS_WAITS);
	struct pk_request_done *done;
	struct pk_disk_log *log;
	__u32 place;

	if (bytes < rq->__data_len)
		return 0; /* a part of it */
	c->waits.disk = pk_place_of_disk(pk_plain(c, rq->q));
	place = c->waits.disk - 1;
	log = bpf_map_lookup_elem(&disk_logs, &place);
	if (!log)
		return 0;
	c->waits.request = __sync_fetch_and_add(&log->next, 1);
	done = pk_request_done(log, c->waits.request);
	done->at = bpf_ktime_get_ns();
	done->party = c->disk.done;
	return 0;
}
