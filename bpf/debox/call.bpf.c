// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The beginning and the end of each system call of the threads that are of interest. Everyone on
 * the machine pays for these hooks while they are attached, so they are only where calls of
 * programs are wanted that do not mark them.
 *
 * A call that a signal interrupts ends here twice or more for the kernel and once for the program: it
 * is gone on with, or fails with EINTR once there is a handler to be run.
 */
#include "debox/kernel_wait.bpf.h"
#include "debox/record.bpf.h"
#include "debox/show.bpf.h"
#include "debox/sleep.bpf.h"
#include "debox/trace.bpf.h"

#include <bpf/bpf_tracing.h>

#define ERESTARTSYS 512
#define ERESTARTNOINTR 513
#define ERESTARTNOHAND 514
#define ERESTART_RESTARTBLOCK 516
#define EINTR 4
#define SIG_IGN 1
#define SA_RESTART 0x10000000
#define NR_RT_SIGRETURN 15
#define NR_RESTART_SYSCALL 219

static __always_inline bool db_is_interrupted(long result)
{
	return result == -ERESTARTSYS || result == -ERESTARTNOINTR || result == -ERESTARTNOHAND ||
	       result == -ERESTART_RESTARTBLOCK;
}

/* Of a histogram: which part of which octave of ns / 64. */
static __always_inline __u32 db_bucket(__u64 ns)
{
	__u64 v = ns >> 6;
	__u32 octave = 0, step;

#pragma unroll
	for (__u32 shift = 32; shift; shift >>= 1) {
		if (v >> shift) {
			v >>= shift;
			octave += shift;
		}
	}
	/* Now 2^octave <= ns / 64 < 2^(octave + 1), or ns < 64. */
	if (ns < 64)
		return 0;
	step = (ns >> (octave + 3)) & (DB_STEPS - 1); /* the three bits behind the first */
	octave++;
	if (octave >= DB_OCTAVES)
		return DB_BUCKETS - 1;
	return octave * DB_STEPS + step;
}

static __always_inline struct db_calls *db_calls_of(struct db_cpu *c, __u32 kind)
{
	__u32 at = c->kind_of[kind & (2 * DB_CALLS - 1)], index;
	struct db_calls *calls;

	if (unlikely(!at)) {
		if (c->kinds >= DB_KINDS)
			return 0;
		at = ++c->kinds;
		c->kind_of[kind & (2 * DB_CALLS - 1)] = at;
		index = bpf_get_smp_processor_id() * DB_KINDS + at - 1;
		calls = bpf_map_lookup_elem(&db_kinds, &index);
		if (calls)
			calls->kind = kind;
		return calls;
	}
	index = bpf_get_smp_processor_id() * DB_KINDS + at - 1;
	return bpf_map_lookup_elem(&db_kinds, &index);
}

/* What a record says, for its kind. Another thread may do the same on this CPU in between. */
static __always_inline void db_count(struct db_cpu *c, const struct db_thread *t,
				     const struct debox_record *r, __u64 wall, long result, __u32 kind)
{
	struct db_calls *calls = db_calls_of(c, kind);
	__u32 bucket;

	if (!calls) {
		c->stats.kinds_full++;
		return;
	}
	bucket = db_bucket(wall);
	forget_value(bucket);
	bucket &= DB_BUCKETS - 1;
	__sync_fetch_and_add(&calls->count, 1);
	__sync_fetch_and_add(&calls->total_ns, wall);
	__sync_fetch_and_add(&calls->bucket[bucket], 1);
	if (calls->longest_ns < wall)
		calls->longest_ns = wall;
	if (result < 0 && result >= -4095)
		__sync_fetch_and_add(&calls->errors, 1);
	else if (result > 0 && db_config.moves[(kind / 64) & (2 * DB_CALLS / 64 - 1)] >> (kind & 63) & 1)
		__sync_fetch_and_add(&calls->bytes, result);
	if (likely(!r))
		return;
	__sync_fetch_and_add(&calls->asleep_ns, r->asleep_ns);
	__sync_fetch_and_add(&calls->runnable_ns, r->runnable_ns);
	__sync_fetch_and_add(&calls->voluntary, r->voluntary);
	__sync_fetch_and_add(&calls->forced, r->forced);
	__sync_fetch_and_add(&calls->minor, r->minor_faults);
	__sync_fetch_and_add(&calls->major, r->major_faults);
	__sync_fetch_and_add(&calls->async_ns, r->async_ns);
}

/* What was spent for the thread elsewhere since it was looked at last. */
static __always_inline __u64 db_async(struct db_thread *t)
{
	__u64 all = t->async_ns, since = all - t->async_seen;

	t->async_seen = all;
	return since;
}

/* An interrupted call makes way for those of a signal's handler. */
static __noinline int db_put_aside(struct db_thread *t)
{
	struct debox_record *r;

	if (!t || !(t->sequence & 1))
		return 0;
	r = db_record(t);
	if (!r)
		return 0;
	if (t->touched != t->sequence)
		db_begin_record(r, t->sequence);
	r->flags = DEBOX_GOES_ON;
	t->sequence++;
	*(volatile __u64 *)&r->sequence = t->sequence;
	return 0;
}

/*
 * Is this the interrupted call again? Then its record goes on; in a new place, where a handler's
 * calls came between.
 */
static __noinline int db_goes_on(struct db_thread *t, struct pt_regs___kernel *regs, __u32 number)
{
	struct debox_record *r, *old;
	__u64 sequence;

	if (!t || t->restart_ip != regs->ip || t->restart_sp != regs->sp)
		return 0;
	if (number != NR_RESTART_SYSCALL && t->restart != 1 + number)
		return 0;
	t->call = t->restart;
	t->since_ns = t->restart_ns;
	t->restart = 0;
	t->restarts++;
	if (t->sequence & 1)
		return 1;
	sequence = t->sequence + 1;
	t->sequence = t->restart_sequence;
	old = db_record(t);
	t->sequence = sequence;
	r = db_record(t);
	if (!r || !old || r == old || old->sequence != t->restart_sequence + 1)
		return 1;
	bpf_probe_read_kernel(r, sizeof(*r), old);
	r->sequence = sequence;
	t->touched = sequence;
	return 1;
}

/* What was done elsewhere after the last call, for that one and its kind. */
static __noinline int db_charge_later(struct db_thread *t, __u64 later)
{
	struct debox_record *r;
	struct db_calls *calls;
	struct db_cpu *c;

	if (!t || !t->sequence)
		return 0;
	t->async_before += later;
	r = db_record(t);
	if (r)
		r->async_later_ns += later;
	c = db_this_cpu();
	calls = c ? db_calls_of(c, t->kind) : 0;
	if (calls)
		__sync_fetch_and_add(&calls->async_ns, later);
	return 0;
}

/* The beginning and the end of a call, for a thread of interest. */
static __noinline int db_enter_of(__u64 *ctx, struct db_thread *t, struct task_struct *task)
{
	struct pt_regs___kernel *regs = (void *)ctx[0];
	long number = ctx[1];
	__u64 later;
	__u32 kind;

	if (!t)
		return 0;
	db_learn_stack(t, ctx[0]);
	if (!(t->wants & DB_CALLS_ALL) || !db_may_write(t, task))
		return 0;
	if (number < 0 || number >= DB_CALLS)
		number = DB_CALLS - 1;
	later = db_async(t);
	if (unlikely(later != 0))
		db_charge_later(t, later);
	t->minor = task->min_flt;
	t->major = task->maj_flt;
	if (unlikely(t->restart)) {
		if (db_goes_on(t, regs, number))
			return 0;
		db_put_aside(t); /* a call of the handler's */
	}
	/* The way back from a handler: what a program wants to read is the call before it. */
	if (unlikely(number == NR_RT_SIGRETURN) && t->wants & DB_RECORDS)
		return 0;
	kind = number + (task->thread_info.status & TS_COMPAT ? DB_CALLS : 0);
	if (unlikely(db_left_out[kind / 64 & (2 * DB_CALLS / 64 - 1)] >> (kind & 63) & 1))
		return 0;
	t->call = 1 + number;
	t->kind = kind;
	t->sequence++;
	t->restarts = 0;
	t->since_ns = bpf_ktime_get_ns();
	return 0;
}

/*
 * Every thread on the machine comes by here. A function of its own for the few that are of interest
 * spares the others the registers and the stack that it takes.
 */
SEC("?tp_btf/sys_enter")
int db_enter(__u64 *ctx)
{
	struct task_struct *task;
	struct db_thread *t;

	if (likely(db_is_other(ctx[0])))
		return 0;
	task = bpf_get_current_task_btf();
	t = db_find(task->pid);
	return likely(!t) ? 0 : db_enter_of(ctx, t, task);
}

/* The call is over: the rest of its record. */
static __always_inline void db_end(struct db_cpu *c, struct db_thread *t, struct task_struct *task,
				   struct pt_regs___kernel *regs, long result, __u64 now)
{
	struct debox_record *r = db_record(t), *touched = 0;
	__u64 wall = now - t->since_ns, minor, major, async;
	__u32 number = t->call - 1, kind = t->kind;

	if (unlikely(t->off_ns))
		db_catch_up(c, t);
	t->call = 0;
	if (!r)
		return;
	if (t->touched != t->sequence)
		db_begin_record(r, t->sequence);
	else
		touched = r;
	minor = task->min_flt - t->minor;
	major = task->maj_flt - t->major;
	async = db_async(t);
	if (unlikely(minor | major | async | t->restarts | t->async_before)) {
		r->minor_faults += minor;
		r->major_faults += major;
		r->async_ns = async;
		r->async_before_ns = t->async_before;
		t->async_before = 0;
		r->restarts = t->restarts;
		touched = r;
	}
	r->start_ns = t->since_ns;
	r->wall_ns = wall;
	r->result = result;
	r->number = number;
	r->pid = t->pid;
	r->tid = t->tid;
	r->cpu = bpf_get_smp_processor_id();
	r->flags = (r->flags & (DEBOX_UNSEEN | DEBOX_SAMPLED)) | (kind != number ? DEBOX_COMPAT : 0);
	r->argument[0] = regs->di;
	r->argument[1] = regs->si;
	r->argument[2] = regs->dx;
	r->argument[3] = regs->r10;
	r->argument[4] = regs->r8;
	r->argument[5] = regs->r9;
	t->sequence++;
	*(volatile __u64 *)&r->sequence = t->sequence;
	db_count(c, t, touched, wall, result, kind);
	if (unlikely(wall >= db_slow_ns))
		db_show(c, t, r, regs, wall);
}

static __noinline int db_exit_of(__u64 *ctx, struct db_thread *t, struct task_struct *task)
{
	struct pt_regs___kernel *regs = (void *)ctx[0];
	long result = ctx[1];
	struct db_cpu *c;
	__u64 now;

	if (!t)
		return 0;
	db_learn_stack(t, ctx[0]);
	if (!t->call || !db_may_write(t, task))
		return 0;
	now = bpf_ktime_get_ns();
	if (unlikely(db_is_interrupted(result))) {
		t->restart = t->call;
		t->restart_why = -result;
		t->restart_ip = regs->ip;
		t->restart_sp = regs->sp;
		t->restart_ns = t->since_ns;
		t->restart_sequence = t->sequence;
		t->call = 0;
		return 0;
	}
	c = db_this_cpu();
	if (c)
		db_end(c, t, task, regs, result, now);
	return 0;
}

SEC("?tp_btf/sys_exit")
int db_exit(__u64 *ctx)
{
	struct task_struct *task;
	struct db_thread *t;

	if (likely(db_is_other(ctx[0])))
		return 0;
	task = bpf_get_current_task_btf();
	t = db_find(task->pid);
	return likely(!t) ? 0 : db_exit_of(ctx, t, task);
}

/* With a handler to be run: does the call fail, or is it made again after it? */
static __always_inline bool db_is_made_again(long why, struct k_sigaction *action)
{
	return why == ERESTARTNOINTR || (why == ERESTARTSYS && action->sa.sa_flags & SA_RESTART);
}

/*
 * A signal is delivered. Where it has a handler, the call that it interrupted is made again after
 * that, or has failed with EINTR; as the kernel's handle_signal() decides.
 */
SEC("?tp_btf/signal_deliver")
int BPF_PROG(db_signal, int signal, void *info, struct k_sigaction *action)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct pt_regs___kernel *regs = (void *)bpf_task_pt_regs(task);
	struct db_thread *t = db_find(task->pid);
	bool handled = (__u64)action->sa.sa_handler > SIG_IGN;
	struct debox_record *r;
	struct db_cpu *c;
	long result;

	if (likely(!t) || !db_may_write(t, task))
		return 0;
	c = db_this_cpu();
	if (!c)
		return 0;
	if (t->wants & DB_MARKED) {
		r = db_record_of_now(c, t);
		if (!r)
			return 0;
		r->signals++;
		result = BPF_CORE_READ(regs, ax);
		if (handled && (long)BPF_CORE_READ(regs, orig_ax) >= 0 && db_is_interrupted(result) &&
		    db_is_made_again(-result, action))
			r->restarts++;
		return 0;
	}
	r = db_record(t);
	if (!r || !t->sequence)
		return 0;
	if (t->touched != t->sequence && t->restart) {
		t->touched = t->sequence;
		db_begin_record(r, t->sequence);
	}
	r->signals++;
	if (!t->restart || !handled || db_is_made_again(t->restart_why, action))
		return 0;
	t->call = t->restart;
	t->restart = 0;
	db_end(c, t, task, regs, -EINTR, bpf_ktime_get_ns());
	return 0;
}
