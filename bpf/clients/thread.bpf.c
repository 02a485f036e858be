// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Threads that wait, and those who wake them.
 *
 * A thread that waits for whatever comes next is done with what it did: it works for nobody. If one
 * that works for a client wakes it, it works for that client from then on. Of a pipe, whoever wakes the
 * reader is the sender. Interrupts wake for nobody: which client it is, the message will say.
 */
#include "clients/accept.bpf.h"
#include "clients/queue.bpf.h"
#include "core/hook.bpf.h"
#include "core/run.bpf.h"
#include "process/label.bpf.h"

#include <bpf/bpf_tracing.h>

/* Numbers of system calls, as in arch/x86/entry/syscalls/syscall_64.tbl. */
enum {
	SYS_READ = 0,
	SYS_POLL = 7,
	SYS_READV = 19,
	SYS_SELECT = 23,
	SYS_ACCEPT = 43,
	SYS_FUTEX = 202,
	SYS_EPOLL_WAIT = 232,
	SYS_PSELECT6 = 270,
	SYS_PPOLL = 271,
	SYS_SPLICE = 275,
	SYS_TEE = 276,
	SYS_EPOLL_PWAIT = 281,
	SYS_ACCEPT4 = 288,
	SYS_IO_URING_ENTER = 426,
	SYS_EPOLL_PWAIT2 = 441,
	SYS_FUTEX_WAITV = 449,
	FUTEX_WAIT_BITSET = 9, /* by which libraries wait for conditions; for locks they use FUTEX_WAIT */
	FUTEX_CMD_MASK = 0x7f,
	S_IFMT = 0170000,
	S_IFIFO = 0010000,
	PK_GENERATIONS = 6,
};

/* Whether a thread reads a pipe there; asked once of one that reads the same again. */
static __noinline bool pk_reads_pipe(struct task_struct *task, __u64 fd)
{
	struct file *file = pk_file_at(task, fd);
	struct pk_worker *worker;
	__u64 pipe;

	if (!file || (BPF_CORE_READ(file, f_inode, i_mode) & S_IFMT) != S_IFIFO)
		return false;
	worker = pk_worker_of(task, true);
	if (!worker)
		return false;
	pipe = (__u64)BPF_CORE_READ(file, private_data);
	if (worker->queue != pipe) {
		worker->queue = pipe;
		worker->several = 0;
		worker->writer = 0;
	}
	worker->pipe = (__u32)fd + 1;
	return true;
}

static __always_inline __u8 pk_waits_for(struct task_struct *task, struct pk_worker *worker)
{
	struct pt_regs___kernel *regs = (void *)bpf_task_pt_regs(task);

	switch (regs->orig_ax) {
	case SYS_READ:
	case SYS_READV:
	case SYS_SPLICE:
	case SYS_TEE:
		if (worker && likely(worker->pipe == (__u32)regs->di + 1))
			return PK_WAITS_PIPE;
		return pk_reads_pipe(task, regs->di) ? PK_WAITS_PIPE : PK_WAITS_NOT;
	case SYS_FUTEX:
		return (regs->si & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET ? PK_WAITS_WORK : PK_WAITS_NOT;
	case SYS_FUTEX_WAITV:
		return PK_WAITS_WORK;
	case SYS_MSGRCV:
	case SYS_MQ_TIMEDRECEIVE:
		return PK_WAITS_PIPE;
	case SYS_POLL:
	case SYS_SELECT:
	case SYS_ACCEPT:
	case SYS_EPOLL_WAIT:
	case SYS_PSELECT6:
	case SYS_PPOLL:
	case SYS_EPOLL_PWAIT:
	case SYS_ACCEPT4:
	case SYS_IO_URING_ENTER:
	case SYS_EPOLL_PWAIT2:
		return PK_WAITS_MANY;
	}
	return PK_WAITS_NOT;
}

/*
 * Whether a process was begun by another, or by one that that has begun: what it writes is an answer, as
 * of a shell's $(command). And pkprof lets go whom it has begun: nobody works for it therefore.
 */
static __always_inline bool pk_has_begun(struct task_struct *begun, struct task_struct *writer)
{
	struct task_struct *parent = writer;
	int i, tgid = begun->tgid;

	if (pk_process_of(writer) == self)
		return true;
	for (i = 0; i < PK_GENERATIONS; i++) {
		parent = BPF_CORE_READ(parent, real_parent);
		if (BPF_CORE_READ(parent, tgid) == tgid)
			return true;
	}
	return false;
}

/* The same, asked once for each writer that follows another one. */
static __always_inline bool pk_is_answer(struct task_struct *reader, struct task_struct *writer)
{
	struct pk_worker *worker = pk_worker_of(reader, true);

	if (!worker)
		return true;
	if (worker->writer != (__u32)writer->tgid) {
		bool was_answer = worker->is_answer || !worker->writer;

		worker->is_answer = pk_has_begun(reader, writer);
		worker->several |= !was_answer && !worker->is_answer;
		worker->writer = writer->tgid;
	}
	return worker->is_answer;
}

/* The client that the current thread wakes others for; 0: none. */
static __always_inline __u32 pk_client_of_waker(struct pk_cpu *c, struct task_struct *woken, __u8 waits)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct pk_worker *worker;

	if (pk_in_interrupt(c) || task->flags & PF_KTHREAD)
		return 0;
	worker = pk_worker_of(task, false);
	if (waits != PK_WAITS_PIPE && (!worker || !worker->client))
		return 0;
	if (worker)
		pk_note_accepted(worker, true);
	if (worker && task->tgid == woken->tgid)
		return worker->client;
	/* What another process sends there is a message, or an answer. */
	if (waits == PK_WAITS_MANY)
		return 0;
	if (waits == PK_WAITS_PIPE && pk_is_answer(woken, task))
		return 0;
	return pk_client_of_message(c);
}

/* What the current thread is at, as a connection's number. */
static __always_inline __u64 pk_question_now(void)
{
	struct pk_worker *worker = pk_worker_of(bpf_get_current_task_btf(), false);

	return worker && worker->client ? worker->question : 0;
}

/* Whether the work that comes to this process is its own. */
static __always_inline bool pk_is_own(struct task_struct *task, __u32 place)
{
	struct pk_client *client, *first;

	client = bpf_map_lookup_elem(&clients, &place);
	if (!client)
		return false;
	place = client->first;
	first = bpf_map_lookup_elem(&clients, &place);
	return first && first->process == pk_label_of(task);
}

/* Where nothing is to be written, the other CPU keeps what it has of it. */
static __always_inline void pk_is_woken(struct pk_worker *worker, __u32 client, __u64 question)
{
	__u8 rule = client ? PK_CLIENT_WOKEN : 0;

	if (worker->client != client || worker->rule != rule || worker->question != question)
		pk_works_for(worker, client, rule, question);
	if (worker->last != PK_EVENT_WOKEN)
		worker->last = PK_EVENT_WOKEN;
	if (worker->held)
		worker->held = 0;
	if (worker->together)
		worker->together = 0;
}

static __noinline int pk_wakes(struct pk_cpu *c, struct task_struct *woken, __u32 waits)
{
	struct pk_worker *worker;
	bool accepts;
	__u32 client;

	if (!c)
		return 0;
	client = pk_client_of_waker(c, woken, waits);
	if (client && pk_is_own(woken, client))
		client = 0;
	accepts = waits == PK_WAITS_MANY && pk_wakes_to_accept(c);
	worker = pk_worker_of(woken, client || accepts);
	if (!worker)
		return 0;
	if (worker->queue_kind)
		worker->queue_kind = PK_QUEUE_NONE;
	if (waits == PK_WAITS_PIPE) {
		if (!client)
			return 0;
		if (!pk_note_queue(woken, worker))
			client = 0;
	}
	pk_is_woken(worker, client, client ? pk_question_now() : 0);
	if (accepts)
		pk_woken_to_accept(c, worker);
	return 0;
}

/*
 * A reader of a pipe is woken by the same process as before. Where that is an answer, it goes on; where
 * it is a message, for the same client as before, all is as it was. In an interrupt this would be said
 * of a bystander; of a pipe's reader nothing is noted then, either.
 */
static __always_inline bool pk_same_writer(struct pk_worker *worker, struct task_struct *task,
					   struct task_struct *woken)
{
	struct pk_worker *writer;
	__u32 client;

	if (worker->writer != (__u32)task->tgid || task->tgid == woken->tgid || worker->several)
		return false;
	if (worker->is_answer)
		return true;
	writer = pk_worker_of(task, false);
	if (!writer || writer->several)
		return false;
	client = writer->client ? writer->way : writer->own;
	return client && worker->client == client && worker->rule == PK_CLIENT_WOKEN &&
	       worker->question == (writer->client ? writer->question : 0) &&
	       worker->last == PK_EVENT_WOKEN && !worker->held && !worker->together;
}

SEC("?tp_btf/sched_waking")
int BPF_PROG(pk_client_wakes, struct task_struct *woken)
{
	struct pk_cpu *c = pk_hook(PK_HOOKS_CLIENTS);
	struct task_struct *task;
	struct pk_worker *worker;
	__u8 waits;

	if (woken->flags & PF_KTHREAD || woken->thread_info.status & TS_COMPAT)
		return 0;
	worker = pk_worker_of(woken, false);
	waits = pk_waits_for(woken, worker);
	if (!waits)
		return 0;
	task = bpf_get_current_task_btf();
	if (waits == PK_WAITS_PIPE) {
		if (likely(worker && pk_same_writer(worker, task, woken)))
			return 0;
	} else if (waits == PK_WAITS_MANY && task->tgid != woken->tgid && !pk_wakes_to_accept(c)) {
		if (worker)
			pk_is_woken(worker, 0, 0);
		return 0;
	}
	return pk_wakes(c, woken, waits);
}

SEC("?tp_btf/sched_process_fork")
int BPF_PROG(pk_client_forks, struct task_struct *parent, struct task_struct *child)
{
	struct pk_worker *of_parent = pk_worker_of(parent, false), *of_child;

	pk_hook(PK_HOOKS_CLIENTS);
	if (of_parent)
		pk_note_accepted(of_parent, true);
	if (!of_parent || !of_parent->client)
		return 0;
	of_child = pk_worker_of(child, true);
	if (of_child)
		pk_works_for(of_child, of_parent->client, of_parent->rule, of_parent->question);
	return 0;
}
