// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The programs that count calls; see call_table.bpf.h.
 *
 * A function that begins with a packet before there is a hook that says so, as process_backlog,
 * would have its calls charged to the packet before. Such functions have programs of their own, which
 * count for the packet to come.
 */
#include "calls/call_table.bpf.h"

#include <linux/ptrace.h>

#include <bpf/bpf_tracing.h>

/* The thread's process. What was found last is remembered: a thread calls more than once. */
static __always_inline __u64 pk_calling(struct pk_cpu *c, struct task_struct *task)
{
	__u64 thread = (__u64)task->pid << 32 | (__u32)(task->start_boottime >> 20);

	if (likely(!config.pid_namespace) && (config.threads || likely(task->pid == task->tgid)))
		return thread;
	if (unlikely(c->calls.thread != thread)) {
		c->calls.process = pk_label_of(task);
		c->calls.thread = thread;
	}
	return c->calls.process;
}

/* Whom a kernel thread works for. */
static __noinline __u64 pk_thread_calls_for(__u64 task, __u32 *how)
{
	__u32 basis = PK_BASIS_OWN;
	__u64 party;

	if (!how)
		return 0;
	party = pk_thread_party(task, &basis);
	*how = PK_CALL_HOW(basis, PK_UNTRACKED);
	if (party)
		return party;
	*how = PK_CALL_HOW(PK_BASIS_PROVISIONAL, 0);
	if (pk_thread_work(task))
		return PK_UNCLAIMED + PK_UNTRACKED;
	*how = PK_CALL_HOW(PK_BASIS_OWN, 0) | PK_CALL_OF_THREAD;
	return pk_label_of_task(task);
}

static __always_inline __u64 pk_task_calls_for(struct pk_cpu *c, struct task_struct *task,
					       __u32 *how)
{
	*how = PK_CALL_HOW(PK_BASIS_OWN, 0);
	if (likely(!(task->flags & PF_KTHREAD)))
		return pk_calling(c, task);
	if (!task->pid)
		return PK_IDLE;
	return pk_thread_calls_for(bpf_get_current_task(), how);
}

/* In a hard interrupt: whom the part of it is for that goes on. */
static __always_inline __u64 pk_interrupt_calls_for(struct pk_cpu *c, __u32 level, __u32 *how)
{
	*how = PK_CALL_HOW(c->irq.part.basis, PK_UNTRACKED);
	if (level == PK_IN_INTERRUPT && c->irq.since && c->irq.part.served)
		return c->irq.part.served;
	*how = PK_CALL_HOW(PK_BASIS_PROVISIONAL, 0);
	return PK_UNCLAIMED + PK_UNTRACKED;
}

/* In a softirq, before it is known whom for. Returns whether there was room for it to wait. */
static __always_inline bool pk_let_call_wait(__u32 cpu, __u64 function, __u64 caller)
{
	struct pk_waiting_calls *p = bpf_map_lookup_elem(&waiting_calls, &cpu);
	__u32 at;

	if (!p)
		return false;
	at = p->end;
	if (at - p->start >= PK_CALLS_PENDING)
		return false;
	p->call[at & (PK_CALLS_PENDING - 1)].function = function;
	p->call[at & (PK_CALLS_PENDING - 1)].caller = caller;
	p->end = at + 1;
	return true;
}

/* What comes from here on is for the packet to come. */
static __always_inline void pk_look_ahead(struct pk_cpu *c, __u32 cpu)
{
	struct pk_waiting_calls *p = bpf_map_lookup_elem(&waiting_calls, &cpu);

	if (!p || c->calls.vec != 1 + PK_VEC_NET_RX)
		return;
	if (c->calls.party) {
		p->start = 0;
		p->end = 0;
		p->next = 0;
		c->calls.party = 0;
	} else if (p->next == PK_NO_CALL) {
		p->next = p->end;
	}
}

static __always_inline void pk_tell_caller(struct pk_cpu *c, __u32 cpu, struct task_struct *task,
					   __u32 level)
{
	struct pk_waiting_calls *p = bpf_map_lookup_elem(&waiting_calls, &cpu);

	if (p && level == PK_IN_TASK && task->pid)
		pk_tell_label(c, task, pk_label_of(task), &p->who[PK_IN_TASK], false);
}

static __always_inline int pk_called(__u64 function, __u64 caller, bool begins)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u32 cpu = bpf_get_smp_processor_id() & (PK_MAX_CPUS - 1);
	struct pk_cpu *c = &cpus[cpu];
	__u32 level, how = 0;
	__u64 served;

	if (unlikely(!counting))
		return 0;
	level = pk_call_level(c);
	/* Within counting, or the sampler: that is pkprof's own work. */
	if (unlikely(c->calls.busy[level & (PK_LEVELS - 1)] == (__u64)task))
		return 0;
	if (unlikely(level == PK_IN_INTERRUPT && c->sampler.sampling))
		return 0;
	c->calls.busy[level & (PK_LEVELS - 1)] = (__u64)task;
	c->hot.runs[PK_HOOKS_CALLS]++;
	if (likely(level == PK_IN_TASK)) {
		served = pk_task_calls_for(c, task, &how);
	} else if (level != PK_IN_SOFTIRQ) {
		served = pk_interrupt_calls_for(c, level, &how);
	} else if (!c->calls.vec) {
		served = PK_UNCLAIMED + PK_UNTRACKED; /* its beginning was missed */
		how = PK_CALL_HOW(PK_BASIS_PROVISIONAL, 0);
	} else {
		if (begins)
			pk_look_ahead(c, cpu);
		served = c->calls.party;
		how = c->calls.how;
		if (!served) {
			if (pk_let_call_wait(cpu, function, caller))
				goto out;
			c->stats.calls_voted++;
			served = pk_network_object();
			how = PK_CALL_HOW(PK_BASIS_VOTED, PK_EXPIRED);
		}
	}
	if (unlikely(pk_add_call(c, cpu, function, caller, served, how)))
		pk_tell_caller(c, cpu, task, level);
out:
	c->calls.busy[level & (PK_LEVELS - 1)] = 0;
	return 0;
}

/*
 * Where the function will return to. From a trampoline's context: behind the arguments are its
 * frame pointer, the way back to the function, and then that; in front of them a return value, where
 * another program wants that, too.
 */
static __always_inline __u64 pk_caller_by_trampoline(void *ctx, __u64 function)
{
	__u64 arguments = bpf_get_func_arg_cnt(ctx) & 15;
	__u64 at[2] = {};

	bpf_probe_read_kernel(at, sizeof(at), ctx + 8 * arguments + 8);
	if (likely(at[0] - function < 16))
		return at[1];
	bpf_probe_read_kernel(at, sizeof(at), ctx + 8 * arguments + 16);
	return at[0] - function < 16 ? at[1] : 0;
}

/* Loaded once for each function; the one named here is just to load it the first time. */
SEC("?fentry/bpf_fentry_test1")
int pk_call_fentry(void *ctx)
{
	__u64 function = bpf_get_func_ip(ctx);

	return pk_called(function, pk_caller_by_trampoline(ctx, function), false);
}

SEC("?fentry/bpf_fentry_test1")
int pk_call_fentry_ahead(void *ctx)
{
	__u64 function = bpf_get_func_ip(ctx);

	return pk_called(function, pk_caller_by_trampoline(ctx, function), true);
}

/* At its entry a function finds on top of the stack where it will return to. */
static __always_inline __u64 pk_caller_by_stack(struct pt_regs *ctx)
{
	__u64 caller = 0;

	bpf_probe_read_kernel(&caller, sizeof(caller), (void *)PT_REGS_SP(ctx));
	return caller;
}

SEC("?kprobe.multi")
int pk_call_multi(struct pt_regs *ctx)
{
	return pk_called(bpf_get_func_ip(ctx), pk_caller_by_stack(ctx), false);
}

SEC("?kprobe.multi")
int pk_call_multi_ahead(struct pt_regs *ctx)
{
	return pk_called(bpf_get_func_ip(ctx), pk_caller_by_stack(ctx), true);
}
