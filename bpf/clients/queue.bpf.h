/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Pipes, FIFOs and message queues that several processes write to.
 *
 * Who wakes the reader is the writer of what it takes then. What it takes without having slept comes
 * from any of the writers, and no hook is there. But a pipe says how far it was read. So at a wakeup it
 * is noted how far the waker's message goes; a reader that is found beyond that works for nobody that
 * is known. A message queue does not say what was taken: of several writers none is known. Where one
 * process alone writes, all is from that one.
 */
#ifndef PKPROF_QUEUE_BPF_H
#define PKPROF_QUEUE_BPF_H

#include "clients/client.bpf.h"

/* Numbers of system calls, as in arch/x86/entry/syscalls/syscall_64.tbl. */
enum { SYS_MSGRCV = 70, SYS_MQ_TIMEDRECEIVE = 243 };

/* The file that this descriptor of a thread is; NULL: none. */
static __always_inline struct file *pk_file_at(struct task_struct *task, __u64 fd)
{
	struct fdtable *table = task->files->fdt;
	struct file **files = table->fd, *file = NULL;

	if (fd >= table->max_fds || bpf_probe_read_kernel(&file, sizeof(file), files + fd))
		return NULL;
	return file;
}

static __always_inline struct pipe_inode_info *pk_pipe_at(struct task_struct *task, __u64 fd)
{
	struct file *file = pk_file_at(task, fd);

	return file ? BPF_CORE_READ(file, private_data) : NULL;
}

/* A page of a pipe, by how many came before it: how much of it was read, and is to be. */
static __always_inline void pk_page_of(struct pipe_inode_info *pipe, __u32 page, __u32 *read, __u32 *left)
{
	__u64 size = bpf_core_type_size(struct pipe_buffer);
	struct pipe_buffer *buffer = BPF_CORE_READ(pipe, bufs);

	buffer = (void *)buffer + (page & (BPF_CORE_READ(pipe, ring_size) - 1)) * size;
	*read = BPF_CORE_READ(buffer, offset);
	*left = BPF_CORE_READ(buffer, len);
}

/* A pipe that is written to goes so far. */
static __always_inline void pk_note_pipe(struct pk_worker *worker, struct pipe_inode_info *pipe)
{
	__u32 pages = BPF_CORE_READ(pipe, head), read, left;

	pk_page_of(pipe, pages - 1, &read, &left);
	worker->queue = (__u64)pipe;
	worker->queue_at = (__u64)pages << 32 | (read + left);
	worker->queue_kind = PK_QUEUE_SEVERAL;
}

/*
 * This worker's thread was woken by another process for what that has put into a queue. false: of
 * several writers it is not known which one's message the thread will be at.
 */
static __always_inline bool pk_note_queue(struct task_struct *reader, struct pk_worker *worker)
{
	struct pt_regs___kernel *regs = (void *)bpf_task_pt_regs(reader);
	struct pipe_inode_info *pipe;

	if (regs->orig_ax == SYS_MSGRCV || regs->orig_ax == SYS_MQ_TIMEDRECEIVE)
		return !worker->several;
	if (!worker->several) {
		worker->queue_kind = PK_QUEUE_ALONE;
		return true;
	}
	pipe = pk_pipe_at(reader, regs->di);
	if (!pipe)
		return false;
	pk_note_pipe(worker, pipe);
	return true;
}

#endif
