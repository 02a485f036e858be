// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The sampler: once a period on every CPU, charge the time since the last sample.
 *
 * Each sample stands for the time that really went by since the last one on its CPU, so that the
 * ledger sums to CPUs x time also when samples come late or are dropped.
 *
 * In its own context a task is charged at once. In asynchronous work it is not: if a hook has
 * said for which socket the CPU works, the charge goes on that socket's account; else it waits in
 * the CPU's own account ("armed") for the next hook that knows.
 */
#include "clients/client.bpf.h"
#include "core/run.bpf.h"
#include "core/state.bpf.h"
#include "net/sample.bpf.h"
#include "net/packet.bpf.h"
#include "process/served.bpf.h"
#include "sampler/idle.bpf.h"
#include "sampler/sampled_time.bpf.h"
#include "sources/block.bpf.h"
#include "sources/interrupt.bpf.h"
#include "sources/timer.bpf.h"
#include "sources/waking.bpf.h"
#include "stack/kernel_stack.bpf.h"
#include "stack/place.bpf.h"
#include "timed/exact.bpf.h"
#include "timed/measure.bpf.h"
#include "who/account.bpf.h"
#include "who/party.bpf.h"

#include <linux/bpf_perf_event.h>

/* What hooks said before they were turned off, or before some of them rest, does not hold after it. */
static __always_inline void pk_look_for_hooks(struct pk_cpu *c)
{
	__u32 now = window, rest = resting;

	if (likely(c->sampler.window == now && c->sampler.resting == rest))
		return;
	c->sampler.window = now;
	c->sampler.resting = rest;
	c->hot.skb = 0;
	c->hot.from = 0;
	c->hot.sk = 0;
	c->hot.tx_sk = 0;
	c->hot.sent = 0;
	c->hot.hrtimer = 0;
	c->timer.expiring = 0;
	c->sender = 0;
}

/* What a softirq interrupted, as far as it is known without the way up its stack. */
static __always_inline bool pk_interrupted_idle_or_user(struct pk_place *place)
{
	struct task_struct *task = bpf_get_current_task_btf();

	if (!task->pid)
		return true;
	return !(task->flags & PF_KTHREAD) && place->beyond <= PK_INTERRUPT_FRAMES;
}

/* Work that a hook names. */
static __always_inline void pk_sample_hooked(struct pk_cpu *c, struct pk_scratch *s,
					     struct pk_charge *charge)
{
	struct pk_place *place = &s->place;

	if (place->at & PK_AT_RECEIVE)
		place->packet = pk_packet_on_stack(s, c->sampler.resting & PK_REST_PACKETS ? 0 : c->hot.skb);
	pk_net_sample(c, place, charge);
}

static __always_inline void pk_sample_async(struct pk_cpu *c, struct pk_scratch *s,
					    struct pk_charge *charge)
{
	struct pk_place *place = &s->place;

	charge->kind = PK_SOFTIRQ;
	charge->vec = place->vec;
	if (place->unlock == 1)
		pk_vote_for_waking(c, place, charge);
	switch (place->vec) {
	case PK_VEC_NET_RX:
	case PK_VEC_NET_TX:
	case PK_VEC_NONE:
		pk_sample_hooked(c, s, charge);
		return;
	case PK_VEC_HRTIMER:
	case PK_VEC_TASKLET:
	case PK_VEC_TIMER:
	case PK_VEC_HI:
		/*
		 * Timers that run in softirqs are mostly pacing, tasklets mostly small queues:
		 * between two of them, the next one may send. Timers of the other kind are many.
		 */
		if (place->at & (PK_AT_TIMER | PK_AT_SEND | PK_AT_TRANSMIT) ||
		    place->vec == PK_VEC_HRTIMER || place->vec == PK_VEC_TASKLET) {
			pk_sample_hooked(c, s, charge);
			return;
		}
		if (place->vec == PK_VEC_TIMER) {
			pk_timer_sample(c, place, charge);
			return;
		}
		break;
	case PK_VEC_BLOCK:
	case PK_VEC_IRQ_POLL:
		pk_block_sample(c, place, charge);
		return;
	case PK_VEC_RCU:
		if (place->at & PK_AT_RECLAIM) {
			charge->reason = PK_UNTRACKED;
			pk_charge_owner(c, charge, pk_rcu_object(), PK_BASIS_VOTED);
			return;
		}
		/* Grace periods are nobody's. */
		pk_charge_label(c, charge, PK_KERNEL, PK_BASIS_OWN);
		return;
	case PK_VEC_SCHED:
		pk_charge_label(c, charge, PK_KERNEL, PK_BASIS_OWN);
		return;
	}
	pk_charge_nobody(c, charge, PK_UNTRACKED);
}

/* What RCU puts off is for those who use the kernel: on this CPU, and on all of them. */
static __always_inline void pk_used_kernel(struct pk_cpu *c, __u64 party, __u64 ns)
{
	if (party == PK_UNWATCHED_PARTY)
		return;
	pk_vote(c, pk_rcu_object(), party, ns, PK_VOTE_FADES);
	pk_vote(c, pk_rcu_object_of(PK_ALL_CPUS), pk_rcu_object(), ns, PK_VOTE_FADES);
}

/*
 * A kernel thread, in its own context. What is not known to be for someone is KERNEL here; user
 * space knows by the names of threads and functions which are the kernel's own.
 */
static __noinline int pk_sample_thread(struct pk_cpu *c, struct pk_place *place,
				       struct pk_charge *charge)
{
	__u64 task = bpf_get_current_task();
	__u32 basis = PK_BASIS_OWN;
	__u64 party;

	if (!c || !place || !charge)
		return 0;
	c->sampler.work_function = pk_thread_work(task);
	charge->kind = c->sampler.work_function ? PK_WORK : PK_KTHREAD;
	charge->vec = PK_VEC_NONE;
	charge->reason = PK_UNTRACKED;
	if (place->at & PK_AT_RECLAIM)
		return pk_charge_owner(c, charge, pk_callbacks_object(task), PK_BASIS_VOTED);
	party = pk_thread_party(task, &basis);
	if (!party && place->at & PK_AT_PUT_OFF)
		return pk_charge_owner(c, charge, pk_callbacks_object(task), PK_BASIS_VOTED);
	if (!party)
		return pk_charge_label(c, charge, PK_KERNEL, PK_BASIS_OWN);
	pk_used_kernel(c, party, charge->ns);
	return pk_charge_party(c, charge, party, basis);
}

static __noinline int pk_sample_own(struct pk_cpu *c, struct bpf_perf_event_data *ctx,
					  struct task_struct *task, struct pk_stack *buf,
					  const struct pk_charge *charge)
{
	struct pk_key *key;

	/* For DeBox alone: it knows what a thread does itself, and nobody reads the tables. */
	if (config.debox) {
		if (charge->kind == PK_OWN)
			pk_used_kernel(c, charge->ran_on, charge->ns);
		return 0;
	}
	key = pk_fresh_key();
	key->ran_on = charge->ran_on;
	key->served = charge->ran_on;
	key->kstack = charge->kstack;
	key->kind = charge->kind;
	key->vec = PK_VEC_NONE;
	key->basis = PK_BASIS_OWN;
	if (charge->kind == PK_OWN) {
		pk_current_syscall(task, key);
		pk_used_kernel(c, charge->ran_on, charge->ns);
	}
	if (!config.measure)
		key->ustack = pk_user_stack(c, ctx, buf);
	key->exec_id = task->self_exec_id;
	if (!config.clients)
		return pk_count(c, key, charge->ns, charge->samples);
	key->client = pk_client_of_sample(charge->kind == PK_USER);
	pk_count(c, key, charge->ns, charge->samples);
	pk_await_call(key, charge->ns, charge->samples);
	return pk_hold_sample(key, charge->ns, charge->samples);
}

/*
 * The idle task is where it was met before, and no softirq runs: it is idle again. To find the way
 * up its stack would take most of what a sample of an idle CPU costs, whose caches are cold.
 */
static __always_inline bool pk_is_idle_again(struct pk_cpu *c, struct task_struct *task, __u64 ip)
{
	return !task->pid && ip == c->sampler.idle_ip && !pk_serving_softirq(c);
}

SEC("perf_event")
int pk_sample(struct bpf_perf_event_data *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 now = bpf_ktime_get_ns();
	struct pk_cpu *c = this_cpu();
	struct pk_place *place;
	struct pk_charge *charge = &c->sampler.sample;
	struct pk_scratch *s;
	__u64 since = started, idle_ns, idle_until = 0;
	__u32 zero = 0, depth;

	/* Attaching lets the clock run for a moment before it is to count. */
	if (!since || stopped || pk_is_away(c))
		return 0;
	c->sampler.sampling = 1;
	*charge = (struct pk_charge){};
	c->stats.samples++;
	if (c->sampler.last_ns > since)
		since = c->sampler.last_ns;
	charge->ns = now > since ? now - since : 0;
	charge->samples = 1;
	c->sampler.last_ns = now;
	pk_learn_percpu(c, task);
	pk_take_off_interrupts(c, charge, now);
	idle_ns = pk_take_off_idle(c, charge, &idle_until);
	pk_take_off_stolen(c, charge, &idle_ns);
	pk_leave_gap(c, charge);
	charge->ns += c->sampler.carried_ns;
	c->sampler.carried_ns = 0;
	if (pk_was_in_interrupt(c)) {
		c->sampler.carried_ns = charge->ns;
		goto busy;
	}
	if (unlikely(c->measure.epoch != epoch)) { /* a recording that nobody reads began anew */
		c->measure.epoch = epoch;
		pk_put_exact(c);
	}
	s = bpf_map_lookup_elem(&scratch, &zero);
	if (!s)
		goto busy;
	if (c->hot.armed && !c->hot.busy)
		pk_net_close(c); /* no hook came: what it was waiting for is over */
	pk_look_for_hooks(c);

	if (pk_was_idle(c, idle_until) || pk_is_idle_again(c, task, ctx->regs.rip)) {
		pk_sample_idle(c, charge, idle_ns, idle_until);
		goto out;
	}
	c->sampler.idle = 0;
	charge->ran_on = pk_current_label(c, task);
	if ((__s64)ctx->regs.rip > 0) {
		charge->kind = PK_USER;
	} else {
		depth = pk_kernel_stack(c, ctx, s);
		place = pk_read_place(s, depth);
		if (place->async && pk_is_late(c) && pk_interrupted_idle_or_user(place)) {
			if (!task->pid) {
				pk_sample_idle(c, charge, idle_ns, idle_until);
				goto out;
			}
			charge->kind = PK_USER;
			pk_sample_own(c, ctx, task, &s->stack, charge);
			goto busy;
		}
		if (config.debox || (!place->async && !task->pid)) {
			; /* nobody reads the stacks, or that of being idle */
		} else if (depth) {
			s->stack.depth = place->depth;
			charge->kstack = pk_store_stack(c, place->hash, &s->stack);
		} else {
			c->stats.no_kstack++;
		}
		if (place->async) {
			pk_sample_async(c, s, charge);
			goto busy;
		}
		if (task->pid == 0) {
			c->sampler.idle_ip = ctx->regs.rip;
			pk_sample_idle(c, charge, idle_ns, idle_until);
			goto out;
		}
		if (task->flags & PF_KTHREAD) {
			pk_sample_thread(c, place, charge);
			goto busy;
		}
		charge->kind = PK_OWN;
	}
	pk_sample_own(c, ctx, task, &s->stack, charge);
busy:
	c->sampler.work_done = 0;
	if (idle_ns)
		pk_count_idle(c, idle_ns, 0);
out:
	pk_measure_run(c);
	c->sampler.sampling = 0;
	return 0;
}

/*
 * Run by user space on every CPU at the beginning, since an idle one may have its first sample late,
 * and at the end: one that is idle may have had no clock for a while.
 */
SEC("?raw_tp")
int pk_find_idle(void *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct pk_cpu *c = this_cpu();
	__u64 until;

	if (!task->pid)
		c->sampler.idle = 1;
	pk_learn_percpu(c, task);
	if (!c->sampler.idle_time)
		c->sampler.idle_time = pk_idle_time(c, &until);
	return 0;
}
