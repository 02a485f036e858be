/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A thread takes a message, or answers one. Most threads do so over and over for the same client, with
 * no sample in between: then nothing changes, and nothing is written. What is done for samples is in
 * held.bpf.c.
 */
#ifndef PKPROF_EVENT_BPF_H
#define PKPROF_EVENT_BPF_H

#include "clients/client.bpf.h"

/* Where there is no more room, the first one is no longer told from the others. */
static __always_inline void pk_takes_together(struct pk_worker *worker, __u32 client)
{
	__u32 i, at = worker->together;

	if (likely(!at)) {
		worker->together = 1;
		worker->alone = 1;
		worker->taken[0] = client;
		return;
	}
	for (i = 0; i < PK_TOGETHER; i++)
		if (i < at && worker->taken[i] == client)
			return;
	if (at >= PK_TOGETHER)
		at = 0;
	else
		worker->together = at + 1;
	worker->alone = at == 0;
	worker->taken[at & (PK_TOGETHER - 1)] = client;
}

static __always_inline void pk_is_answered(struct pk_worker *worker, __u32 client)
{
	__u32 i, last = worker->together - 1;

	if (last >= PK_TOGETHER)
		return;
	for (i = 0; i < PK_TOGETHER; i++) {
		if (i > last || worker->taken[i] != client)
			continue;
		worker->taken[i] = worker->taken[last & (PK_TOGETHER - 1)];
		worker->together = last;
		return;
	}
}

/* In the middle of its own code: io_uring has it take what came. It goes on with what it was at. */
static __always_inline bool pk_takes_aside(struct task_struct *task, struct pk_worker *worker)
{
	struct pt_regs___kernel *regs;

	if (!worker->client || (bpf_core_field_exists(task->io_uring) && likely(!task->io_uring)))
		return false;
	regs = (void *)bpf_task_pt_regs(task);
	return (long)regs->orig_ax < 0;
}

static __always_inline void pk_client_takes(struct pk_cpu *c, struct task_struct *task,
					    struct pk_worker *worker, __u32 client, __u8 rule,
					    __u64 question)
{
	pk_note_accepted(worker, false);
	if (rule == PK_CLIENT_TAKEN) {
		pk_takes_together(worker, client);
		if (pk_takes_aside(task, worker))
			return;
	} else {
		worker->together = 0; /* an answer: it is at one of them */
	}
	if (unlikely(worker->held))
		pk_settle_taken(c, client, rule);
	pk_works_for(worker, client, rule, question);
	worker->last = PK_EVENT_TAKES;
}

static __always_inline void pk_client_answers(struct pk_cpu *c, struct pk_worker *worker,
					      __u32 client, __u64 question)
{
	if (!client)
		return;
	if (unlikely(worker->held))
		pk_settle_answered(c, client);
	if (unlikely(worker->between_both && worker->alone))
		pk_note_alone(1);
	pk_is_answered(worker, client);
	if (client != worker->client)
		pk_works_for(worker, client, PK_CLIENT_REPLIED, question);
	worker->last = PK_EVENT_ANSWERS;
}

/* The current process has taken a request of the client that it works for. */
static __always_inline void pk_count_request(struct pk_cpu *c, struct pk_worker *worker)
{
	struct pk_client *way;

	if (!worker->client)
		return;
	way = pk_client_at(likely(worker->way) ? worker->way : pk_client_of_message(c));
	if (way && way->behind == worker->client)
		__sync_fetch_and_add(&way->requests, 1);
}

#endif
