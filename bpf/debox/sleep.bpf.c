// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Off the CPU and back: where a call slept, for how long, what for, who woke it.
 *
 * Everyone on the machine pays for these hooks, with a look whether the thread is of interest.
 */
#include "debox/place.bpf.h"
#include "debox/record.bpf.h"
#include "debox/sleep.bpf.h"
#include "debox/wait.bpf.h"

#include <bpf/bpf_tracing.h>

/* Where a thread goes to sleep: the innermost frame that is not the scheduler's, or a lock's. */
static long db_look_at_frame(__u32 i, struct db_loop *l)
{
	struct db_frames *f = &l->c->frames;
	__u64 ip;

	if (i >= f->depth || i >= DB_FRAMES)
		return 1;
	ip = l->c->at[i];
	if (ip - db_config.scheduling < db_config.scheduling_end - db_config.scheduling) {
		f->inside = ip;
		return 0;
	}
	if (!f->inside)
		return 0; /* the hook's own */
	if (db_class_of(ip) == DB_CLASS_HELPER) {
		f->inside = ip;
		return 0;
	}
	f->place = ip;
	return 1;
}

static __always_inline bool db_same_place(struct debox_sleep *s, __u32 place, __u32 inside)
{
	return s->place == place && s->inside == inside;
}

/* The entry for this place in the record; a new one if it has none yet. Returns 1 + its number. */
static __noinline __u32 db_sleep_entry(struct debox_record *r, __u32 place, __u32 inside)
{
	__u32 n;

	if (!r)
		return 0;
	n = r->sleeps;
	for (__u32 i = 0; i < DEBOX_SLEEPS; i++) {
		struct debox_sleep *s = &r->sleep[i];

		if (i < n && db_same_place(s, place, inside))
			return i + 1;
		if (i == n) {
			*s = (struct debox_sleep){ .place = place, .inside = inside };
			r->sleeps = n + 1;
			return i + 1;
		}
	}
	r->sleeps_left_out++;
	return 0;
}

static __always_inline void db_falls_asleep(void *ctx, struct db_cpu *c, struct db_thread *t,
					    struct debox_record *r)
{
	struct db_loop l = { .c = c };
	struct debox_sleep *s;
	__u32 entry;
	long size;

	size = bpf_get_stack(ctx, c->at, sizeof(c->at), 0);
	c->frames.place = 0;
	c->frames.inside = 0;
	c->frames.depth = size > 0 ? (__u64)size / sizeof(__u64) : 0;
	bpf_loop(DB_FRAMES, db_look_at_frame, &l, 0);
	entry = db_sleep_entry(r, db_place(c, c->frames.place), db_place(c, c->frames.inside));
	t->asleep = entry;
	s = db_sleep_of(r, entry);
	if (!s)
		return;
	db_look_for_wait(c, t, db_plain(c, ctx), c->frames.place);
	s->count++;
	s->resource = db_resource(t);
	s->waiters_entry = db_waiters(c, t);
	s->waiters_exit = DEBOX_UNKNOWN;
	s->waker.context = DEBOX_BY_NOBODY;
}

static __always_inline void db_goes(void *ctx, struct db_cpu *c, struct db_thread *t, bool sleeps)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct debox_record *r;

	if (unlikely(t->off_ns) && db_may_write(t, task))
		db_catch_up(c, t);
	r = db_record_of_now(c, t);
	t->asleep = 0;
	t->wait = 0;
	t->off_ns = 0;
	if (!r)
		return; /* in no call */
	t->off_ns = bpf_ktime_get_ns();
	t->clock = task->se.cfs_rq->rq->clock;
	t->run_delay = task->sched_info.run_delay;
	r->flags |= DEBOX_OFF_CPU;
	t->cpu = bpf_get_smp_processor_id();
	if (!sleeps) {
		t->woken_ns = t->off_ns;
		r->forced++;
		return;
	}
	t->woken_ns = 0;
	r->voluntary++;
	if (t->wants & DB_SLEEPS)
		db_falls_asleep(ctx, c, t, r);
}

/* For the table of places, where all calls are of interest. */
static __noinline int db_count_sleep(struct db_cpu *c, struct db_thread *t, struct debox_sleep *s,
				     __u64 slept, __u64 runnable)
{
	struct db_slept_key key = {};
	struct db_waker_key who = {};
	struct db_slept *sum, none = {};
	struct db_woken *woken, first = { .count = 1 };

	if (!c || !t || !s || !t->call)
		return 0;
	key.kind = t->kind;
	key.place = s->place;
	key.inside = s->inside;
	sum = bpf_map_lookup_elem(&db_sleeps, &key);
	if (!sum) {
		bpf_map_update_elem(&db_sleeps, &key, &none, BPF_NOEXIST);
		sum = bpf_map_lookup_elem(&db_sleeps, &key);
	}
	if (!sum) {
		c->stats.sleeps_full++;
		return 0;
	}
	__sync_fetch_and_add(&sum->count, 1);
	__sync_fetch_and_add(&sum->total_ns, slept);
	__sync_fetch_and_add(&sum->runnable_ns, runnable);
	if (sum->longest_ns < slept)
		sum->longest_ns = slept;
	if (s->waiters_entry != DEBOX_UNKNOWN) {
		__sync_fetch_and_add(&sum->waiters, s->waiters_entry);
		__sync_fetch_and_add(&sum->waiters_known, 1);
		if (sum->waiters_most < s->waiters_entry)
			sum->waiters_most = s->waiters_entry;
	}
	who.kind = key.kind;
	who.place = key.place;
	who.context = s->waker.context;
	if (who.context == DEBOX_BY_PROCESS)
		who.pid = s->waker.pid;
	else if (who.context == DEBOX_BY_KTHREAD)
		who.pid = s->waker.tid;
	woken = bpf_map_lookup_elem(&db_wakers, &who);
	if (woken) {
		__sync_fetch_and_add(&woken->count, 1);
		return 0;
	}
	if (who.pid)
		__builtin_memcpy(first.comm, s->waker.comm, sizeof(first.comm));
	if (bpf_map_update_elem(&db_wakers, &who, &first, BPF_NOEXIST)) {
		woken = bpf_map_lookup_elem(&db_wakers, &who);
		if (woken)
			__sync_fetch_and_add(&woken->count, 1);
		else
			c->stats.sleeps_full++;
	}
	return 0;
}

static __always_inline void db_came(struct db_thread *t, struct debox_record *r, __u64 now)
{
	struct debox_sleep *s = db_sleep_of(r, t->asleep);
	__u64 slept = t->woken_ns - t->off_ns;

	r->asleep_ns += slept;
	r->runnable_ns += now - t->woken_ns;
	if (t->cpu != bpf_get_smp_processor_id())
		r->migrations++;
	if (s) {
		s->total_ns += slept;
		s->runnable_ns += now - t->woken_ns;
		if (s->longest_ns < slept)
			s->longest_ns = slept;
		db_count_sleep(db_this_cpu(), t, s, slept, now - t->woken_ns);
	}
	r->flags &= ~DEBOX_OFF_CPU;
	t->off_ns = 0;
}

static __always_inline void db_comes(struct db_thread *t)
{
	struct debox_record *r;
	__u64 now;

	if (!t->off_ns)
		return;
	r = db_record(t);
	if (!r)
		return;
	now = bpf_ktime_get_ns();
	if (unlikely(!t->woken_ns)) {
		t->woken_ns = now;
		r->flags |= DEBOX_UNSEEN;
	}
	db_came(t, r, now);
}

int db_catch_up(struct db_cpu *c, struct db_thread *t)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct debox_record *r;
	__u64 came, waited;

	if (!c || !t)
		return 0;
	c->stats.unseen++;
	r = db_record(t);
	if (!r)
		return 0;
	r->flags |= DEBOX_UNSEEN;
	came = t->off_ns + task->sched_info.last_arrival - t->clock;
	waited = task->sched_info.run_delay - t->run_delay;
	if ((__s64)(came - t->off_ns) < 0)
		came = t->off_ns;
	if (!t->woken_ns)
		t->woken_ns = came - waited;
	if ((__s64)(t->woken_ns - t->off_ns) < 0)
		t->woken_ns = t->off_ns;
	if ((__s64)(came - t->woken_ns) < 0)
		came = t->woken_ns;
	db_came(t, r, came);
	return 0;
}

SEC("?raw_tp/sched_switch")
int db_sched_switch(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct db_thread *t;
	__u32 next;

	db_within(task, 1);
	t = db_find(task->pid);
	next = BPF_CORE_READ((struct task_struct *)ctx->args[2], pid);
	if (unlikely(t != 0)) {
		struct db_cpu *c = db_this_cpu();

		if (c)
			db_goes(ctx, c, t, !ctx->args[0] && ctx->args[3]);
	}
	t = db_find(next);
	if (unlikely(t != 0))
		db_comes(t);
	db_within(task, -1);
	return 0;
}

/* Is it in an interrupt, a softirq? */
static __always_inline __u32 db_context(struct db_cpu *c, struct task_struct *task)
{
	__u32 count = db_preempt_count(c, task);

	if (count & HARDIRQ_MASK)
		return DEBOX_BY_INTERRUPT;
	if (count & SOFTIRQ_OFFSET)
		return DEBOX_BY_SOFTIRQ;
	/* The idle task itself wakes nobody, and does not lead to its CPU's memory, should that not be
	 * known yet. */
	if (!task->pid)
		return DEBOX_BY_INTERRUPT;
	return task->flags & PF_KTHREAD ? DEBOX_BY_KTHREAD : DEBOX_BY_PROCESS;
}

/*
 * Whom the interrupt was for that wakes a thread from waiting for a disk: whoever asked for the
 * request that it completed. 0: not known.
 */
static __always_inline __u32 db_interrupt_for(struct db_cpu *c, struct task_struct *woken)
{
	struct db_done *done = &db_done[bpf_get_smp_processor_id() & (DB_CPUS - 1)];
	struct db_thread *t;

	if (!done->tid || !c->percpu || !db_config.kernel_stat ||
	    !BPF_CORE_READ_BITFIELD_PROBED(woken, in_iowait) ||
	    done->interrupts != interrupts_counted(c->percpu + db_config.kernel_stat))
		return 0;
	t = db_find(done->tid);
	return t ? t->pid : done->tid;
}

/* By the one who wakes, with the sleeper's lock held: nobody else writes to its entry now. */
static __noinline int db_wakes(struct db_cpu *c, struct db_thread *t, __u64 woken)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct debox_record *r;
	struct debox_sleep *s;

	if (!c || !t)
		return 0;
	t->woken_ns = bpf_ktime_get_ns();
	if (!t->asleep)
		return 0;
	r = db_record(t);
	if (!r)
		return 0;
	s = db_sleep_of(r, t->asleep);
	if (!s)
		return 0;
	s->waiters_exit = db_waiters(c, t);
	__builtin_memset(&s->waker, 0, sizeof(s->waker));
	s->waker.context = db_context(c, task);
	if (s->waker.context == DEBOX_BY_INTERRUPT || s->waker.context == DEBOX_BY_SOFTIRQ) {
		/* Whom it has interrupted has no part in it. */
		s->waker.for_pid = db_interrupt_for(c, (void *)woken);
		return 0;
	}
	if (s->waker.context == DEBOX_BY_PROCESS)
		s->waker.pid = task->tgid;
	s->waker.tid = task->pid;
	bpf_probe_read_kernel(s->waker.comm, sizeof(s->waker.comm), &task->comm);
	return 0;
}

SEC("?raw_tp/sched_waking")
int db_sched_waking(struct bpf_raw_tracepoint_args *ctx)
{
	struct db_thread *t = db_find(BPF_CORE_READ((struct task_struct *)ctx->args[0], pid));
	struct task_struct *task;
	struct db_cpu *c;

	if (likely(!t) || !t->off_ns || t->woken_ns)
		return 0;
	c = db_this_cpu();
	if (!c)
		return 0;
	task = bpf_get_current_task_btf();
	db_within(task, 1);
	db_wakes(c, t, ctx->args[0]);
	db_within(task, -1);
	return 0;
}
