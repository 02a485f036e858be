// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Work queues: a piece of work is for whoever queued it. What it is at is read off its thread when
 * a sample meets it; its start and end need no hook.
 *
 * A piece that is queued again while it waits stays the first one's. A piece that its own work
 * queues anew stays that one's, too. Work that was put off by a timer is for whoever put it off; what
 * a disk's interrupt queues, for whoever submitted the request that it was for, if hooks tell which.
 */
#include "core/hook.bpf.h"
#include "core/run.bpf.h"
#include "who/party.bpf.h"

#include <bpf/bpf_tracing.h>

/* Work that its own timer queues, which expires just now, is for whoever started that. */
static __always_inline __u64 pk_timer_starter(struct pk_cpu *c, struct work_struct *work)
{
	__u64 timer = (__u64)work + bpf_core_field_offset(struct delayed_work, timer);

	if (c->timer.expiring != timer || pk_preempt_bits(c, HARDIRQ_MASK | NMI_MASK) != 0)
		return 0;
	return pk_timer_noted(pk_plain(c, work) + bpf_core_field_offset(struct delayed_work, timer),
			      c->timer.expires);
}

SEC("?tp_btf/workqueue_queue_work")
int BPF_PROG(pk_workqueue_queue_work, unsigned int cpu, void *pwq, struct work_struct *work)
{
	struct pk_cpu *c = pk_hook(PK_HOOKS_LASTING);
	__u64 plain = pk_plain(c, work);
	__u64 party;

	if ((__u64)work->func == addresses.known[PK_KNOWN_LOOP])
		return 0; /* a run of it is for all whose requests have come: see pk_worker_party */
	party = pk_party_now(c);
	if (!party && pk_in_interrupt(c))
		party = pk_timer_starter(c, work);
	/* A disk says that it has room again, before its softirq says which requests have ended. */
	if (!party && (__u64)work->func == addresses.known[PK_KNOWN_RUN_QUEUE])
		party = pk_disk_object();
	pk_note(pk_work_object(plain, (__u64)work->func), party);
	return 0;
}

SEC("?tp_btf/sched_kthread_work_queue_work")
int BPF_PROG(pk_kthread_queue_work, void *worker, struct kthread_work *work)
{
	struct pk_cpu *c = pk_hook(PK_HOOKS_LASTING);

	pk_note(pk_work_object(pk_plain(c, work), (__u64)work->func), pk_party_now(c));
	return 0;
}
