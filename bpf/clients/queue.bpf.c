// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Whether a thread has taken what nobody is known to have written; see queue.bpf.h. */
#include "clients/queue.bpf.h"

/* What is beyond the noted end was read: of that page, or of the one behind it. */
static __always_inline bool pk_is_beyond(struct pk_worker *worker, struct pipe_inode_info *pipe)
{
	__u32 pages = worker->queue_at >> 32, tail = BPF_CORE_READ(pipe, tail), read, left;

	if ((__s32)(tail - pages) > 0)
		return true;
	pk_page_of(pipe, pages - 1, &read, &left);
	if (read > (__u32)worker->queue_at)
		return true;
	if (tail != pages || BPF_CORE_READ(pipe, head) == pages)
		return false;
	pk_page_of(pipe, pages, &read, &left);
	return read;
}

int pk_look_for_unseen(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct pk_worker *worker = pk_worker_of(task, false);
	struct pipe_inode_info *pipe;
	bool unseen;

	if (!worker || !worker->client || worker->last != PK_EVENT_WOKEN)
		return 0;
	pipe = worker->pipe ? pk_pipe_at(task, worker->pipe - 1) : NULL;
	if (!pipe || (__u64)pipe != worker->queue) /* it is closed, and nothing more is read */
		return 0;
	if (worker->queue_kind == PK_QUEUE_SEVERAL)
		unseen = pk_is_beyond(worker, pipe);
	else
		unseen = worker->several = BPF_CORE_READ(pipe, writers) > 1;
	if (unseen)
		pk_works_for(worker, 0, 0, 0);
	return 0;
}
