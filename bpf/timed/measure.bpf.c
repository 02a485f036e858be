// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Where all of the time is measured (pkprof stat): each task's turn on a CPU, each softirq. What
 * interrupts take is measured in any case (interrupt.bpf.c), and is no part of either.
 */
#include "timed/measure.bpf.h"

#include "core/hook.bpf.h"
#include "process/served.bpf.h"
#include "timed/exact.bpf.h"
#include "who/party.bpf.h"

#include <bpf/bpf_tracing.h>

int pk_measure_run(struct pk_cpu *c)
{
	__u64 now, off, ns, stolen;

	if (!c || !config.measure || !started || c->measure.softirq_since)
		return 0; /* in a softirq: when that is over */
	now = c->irq.since ? c->irq.entered : bpf_ktime_get_ns();
	off = (c->irq.since ? c->irq.sum_at_begin : c->irq.sum) + c->measure.softirq_sum;
	/* Who goes first has been here since the start: who comes was seen to. */
	ns = now - (c->measure.run_since ? c->measure.run_since : started) - (off - c->measure.run_off);
	if ((__s64)ns > 0) {
		/* Stolen from a turn that is counted already, maybe: then it is off this one. */
		stolen = c->measure.run_stolen < ns ? c->measure.run_stolen : ns;
		c->measure.run_stolen -= stolen;
		ns -= stolen;
		c->measure.run.kind = PK_EXACT_RUN;
		pk_add_exact(c, &c->measure.run, ns);
	}
	c->measure.run_since = now;
	c->measure.run_off = off;
	return 0;
}

/* With interrupts off, and the task that goes still the current one. */
SEC("?raw_tp/sched_switch")
int pk_sched_switch(void *ctx)
{
	return pk_measure_run(pk_hook(PK_HOOKS_MEASURE));
}

SEC("?raw_tp/softirq_entry")
int pk_softirq_entry(void *ctx)
{
	struct pk_cpu *c = pk_hook(PK_HOOKS_MEASURE);

	c->measure.softirq_off = c->irq.sum;
	c->measure.softirq_since = started ? bpf_ktime_get_ns() : 0;
	return 0;
}

/*
 * Interrupts may come meanwhile, and the sampler with them: `softirq_ends` keeps its hands off. The
 * one row is put into the tables when another vector has run, or on another task.
 */
SEC("?raw_tp/softirq_exit")
int pk_softirq_exit(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct pk_cpu *c = pk_hook(PK_HOOKS_MEASURE);
	__u64 ran_on, took;
	__u16 vec = ctx->args[0];

	if (!c->measure.softirq_since)
		return 0;
	c->measure.softirq_ends = 1;
	took = c->irq.sum;
	took = bpf_ktime_get_ns() - c->measure.softirq_since - (took - c->measure.softirq_off);
	ran_on = task->pid ? pk_label_of(task) : PK_IDLE;
	if (c->measure.softirq.ran_on != ran_on || c->measure.softirq.number != vec) {
		pk_put_row(c, &c->measure.softirq);
		pk_current_label(c, task);
		c->measure.softirq.ran_on = ran_on;
		c->measure.softirq.number = vec;
		c->measure.softirq.kind = PK_EXACT_SOFTIRQ;
	}
	if (started && !pk_is_away(c) && (__s64)took > 0) {
		c->measure.softirq.ns += took;
		c->measure.softirq.count++;
	}
	c->measure.softirq_sum += took;
	c->measure.softirq_since = 0;
	c->measure.softirq_ends = 0;
	return 0;
}

/* Run by user space on every CPU, before it takes the tables: what the CPU keeps so far goes there. */
SEC("?raw_tp")
int pk_measure_now(void *ctx)
{
	struct pk_cpu *c = this_cpu();

	pk_measure_run(c);
	pk_cast_votes(c);
	return pk_put_exact(c);
}
