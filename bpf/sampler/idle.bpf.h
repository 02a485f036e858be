/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Idle time is the kernel's own count of it, to the nanosecond, and not the samples'. A clock that
 * is due on an idle CPU often ticks late, when something else has woken the CPU already, so samples
 * say too little of it; and some of its ticks never come.
 *
 * The rest of the time since a CPU's last sample was somebody's. If a sample meets the idle task,
 * its rest is the next one's that does not.
 */
#ifndef PKPROF_IDLE_BPF_H
#define PKPROF_IDLE_BPF_H

#include "core/state.bpf.h"
#include "who/count.bpf.h"

/*
 * How long this CPU has been idle, ever; 0 when that is not known. `until`: when it was last.
 * Interrupts that find it idle end that, so it is exact in them.
 */
static __always_inline __u64 pk_idle_time(struct pk_cpu *c, __u64 *until)
{
	struct tick_sched *ts = (void *)(c->percpu + config.tick_sched);
	__u64 at = c->percpu + config.cpustat, idle = 0, waiting = 0;

	if (!c->percpu)
		return 0;
	if (config.tick_sched) {
		*until = BPF_CORE_READ(ts, idle_entrytime);
		return BPF_CORE_READ(ts, idle_sleeptime) + BPF_CORE_READ(ts, iowait_sleeptime);
	}
	if (!config.cpustat)
		return 0;
	bpf_probe_read_kernel(&idle, sizeof(idle),
			      (void *)(at + bpf_core_enum_value(enum cpu_usage_stat, CPUTIME_IDLE) * 8));
	bpf_probe_read_kernel(
		&waiting, sizeof(waiting),
		(void *)(at + bpf_core_enum_value(enum cpu_usage_stat, CPUTIME_IOWAIT) * 8));
	return idle + waiting;
}

/* Grows with every task that this CPU turns to, and every softirq it runs. */
static __always_inline __u64 pk_work_done(struct pk_cpu *c)
{
	struct rq *rq = (void *)(c->percpu + config.runqueues);
	__u32 softirqs[10] = {};
	__u64 done;

	if (!c->percpu || !config.kernel_stat)
		return 0;
	done = BPF_CORE_READ(rq, nr_switches);
	bpf_probe_read_kernel(softirqs, sizeof(softirqs),
			      (void *)(c->percpu + config.kernel_stat +
				       bpf_core_field_offset(struct kernel_stat, softirqs)));
#pragma unroll
	for (__u32 i = 0; i < 10; i++)
		done += softirqs[i];
	return done;
}

static __always_inline void pk_count_idle(struct pk_cpu *c, __u64 ns, __u32 samples)
{
	struct pk_key *key = pk_fresh_key();

	key->ran_on = PK_IDLE;
	key->served = PK_IDLE;
	key->kind = PK_IDLING;
	key->vec = PK_VEC_NONE;
	key->basis = PK_BASIS_OWN;
	pk_count(c, key, ns, samples);
}

/* Takes idle time off a sample, and returns it. */
static __always_inline __u64 pk_take_off_idle(struct pk_cpu *c, struct pk_charge *charge,
					      __u64 *until)
{
	__u64 idle = pk_idle_time(c, until), took;

	/* Not known before; or the kernel counts anew, as after a CPU was offline. */
	if (!c->sampler.idle_time || idle < c->sampler.idle_time) {
		c->sampler.idle_time = idle;
		return 0;
	}
	took = idle - c->sampler.idle_time;
	if (took > charge->ns)
		took = charge->ns; /* the rest is off the next one */
	c->sampler.idle_time += took;
	charge->ns -= took;
	return took;
}

/*
 * A sample of the idle task, which has the way into idleness and out of it, too: the rest is for
 * that if the clock was due on it, or if the CPU has done nothing else since the last sample.
 */
static __noinline int pk_sample_idle(struct pk_cpu *c, struct pk_charge *charge, __u64 idle_ns,
				     __u64 idle_until)
{
	__u64 done;

	if (!c || !charge)
		return 0;
	done = pk_work_done(c);
	if (done != c->sampler.work_done && c->clock.due < idle_until)
		c->sampler.carried_ns = charge->ns;
	else
		idle_ns += charge->ns;
	c->sampler.work_done = done;
	c->sampler.idle = 1;
	if (!config.debox)
		pk_count_idle(c, idle_ns, charge->samples);
	return 0;
}

#endif
