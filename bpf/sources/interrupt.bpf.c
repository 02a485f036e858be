// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Hard interrupts and what they were for; see interrupt.bpf.h.
 *
 *   a device         whoever submitted the disk request that it completed; where a softirq is to do
 *                    the rest, those whose requests or packets this CPU handled in the last seconds
 *   a timer          the sleeper that it wakes, or whoever started it; the sampling clock's, pkprof
 *   another CPU      ipi.bpf.c
 *   another device   not known
 *   anything else    the kernel
 */
#include "sources/interrupt.bpf.h"

#include "core/compat.bpf.h"
#include "core/hook.bpf.h"
#include "core/run.bpf.h"
#include "process/served.bpf.h"
#include "timed/exact.bpf.h"
#include "who/object.bpf.h"
#include "who/party.bpf.h"

#include <bpf/bpf_tracing.h>

/* A sample that took longer than any does was interrupted itself, by the host. */
#define PK_LONGEST_SAMPLE_NS 100000

int pk_irq_end_part(struct pk_cpu *c)
{
	__u64 now = bpf_ktime_get_ns(), ns;

	if (!c)
		return 0;
	ns = now - pk_irq_counted_from(c);
	if (!c->irq.part.served)
		c->irq.part.served = PK_UNCLAIMED + PK_UNTRACKED;
	if (started && !pk_is_away(c)) {
		pk_add_exact(c, &c->irq.part, ns);
		c->irq.ns += ns;
		c->irq.sum += ns;
		if (c->irq.sampled && ns < PK_LONGEST_SAMPLE_NS) {
			c->stats.clock_interrupts++;
			c->stats.clock_ns += ns;
		}
	}
	c->irq.sampled = 0;
	c->irq.since = now;
	return 0;
}

int pk_interrupt_completed(struct pk_cpu *c, __u64 party)
{
	if (!c || !c->irq.since)
		return 0;
	c->irq.part.served = party;
	c->irq.part.basis = PK_BASIS_SUBMITTER;
	return pk_irq_end_part(c);
}

SEC("?tp_btf/irq_handler_entry")
int BPF_PROG(pk_irq_entry, int irq, struct irqaction *action)
{
	struct pk_cpu *c = pk_hook(PK_HOOKS_INTERRUPTS);

	pk_irq_begin(c, PK_EXACT_DEVICE, 0);
	c->irq.part.number = irq;
	c->irq.part.function = (__u64)action->handler;
	return 0;
}

/* The softirqs that wait to be run when this interrupt ends. */
static __always_inline __u32 pk_raised(struct pk_cpu *c)
{
	__u16 pending = 0;

	if (!c->percpu || !config.softirq_pending)
		return 0;
	bpf_probe_read_kernel(&pending, sizeof(pending),
			      (void *)(c->percpu + config.softirq_pending));
	return pending;
}

SEC("?tp_btf/irq_handler_exit")
int BPF_PROG(pk_irq_exit, int irq)
{
	struct pk_cpu *c = pk_hook(PK_HOOKS_INTERRUPTS);
	__u32 raised;

	if (c->irq.part.served)
		return pk_irq_end(c);
	raised = pk_raised(c);
	c->irq.part.basis = PK_BASIS_VOTED;
	if (raised & (1 << PK_VEC_NET_RX | 1 << PK_VEC_NET_TX))
		c->irq.part.served = pk_network_object();
	else if (raised & 1 << PK_VEC_BLOCK)
		c->irq.part.served = pk_disk_object();
	return pk_irq_end(c);
}

SEC("?raw_tp/local_timer_entry")
int pk_local_timer_entry(void *ctx)
{
	return pk_irq_begin(pk_hook(PK_HOOKS_INTERRUPTS), PK_EXACT_TIMER, PK_KERNEL);
}

/* The end of every interrupt but a device's. */
SEC("?raw_tp")
int pk_vector_exit(void *ctx)
{
	return pk_irq_end(pk_hook(PK_HOOKS_INTERRUPTS));
}

SEC("?raw_tp/irq_work_entry")
int pk_irq_work_entry(void *ctx)
{
	return pk_irq_begin(pk_hook(PK_HOOKS_INTERRUPTS), PK_EXACT_WORK, PK_KERNEL);
}

static __always_inline __u64 pk_sleeper_of(__u64 timer)
{
	struct task_struct *task = BPF_CORE_READ((struct hrtimer_sleeper *)timer, task);

	if (!task)
		return PK_KERNEL; /* woken by something else already */
	if (BPF_CORE_READ(task, flags) & PF_KTHREAD)
		return PK_KERNEL;
	return pk_label_of_task((__u64)task);
}

/* The clocks, and what the scheduler starts while it turns to another process. */
static __always_inline bool pk_is_timer_of_kernel(__u64 function)
{
	return function == addresses.known[PK_KNOWN_TICK] ||
	       function == addresses.known[PK_KNOWN_PERF_CLOCK] ||
	       function == addresses.known[PK_KNOWN_QUOTA] ||
	       function == addresses.known[PK_KNOWN_QUOTA_SLACK] ||
	       function == addresses.known[PK_KNOWN_DEADLINE] ||
	       function == addresses.known[PK_KNOWN_SLICE];
}

SEC("?tp_btf/hrtimer_expire_entry")
int BPF_PROG(pk_hrtimer_interrupt, struct hrtimer *timer)
{
	struct pk_cpu *c = pk_hook(PK_HOOKS_INTERRUPTS);
	__u64 plain, function, party;
	__u8 basis = PK_BASIS_QUEUER;

	if (!c->irq.since || timer->is_soft)
		return 0;
	plain = pk_plain(c, timer);
	function = pk_hrtimer_function(plain);
	if (function == addresses.known[PK_KNOWN_PERF_CLOCK])
		c->clock.due = timer->_softexpires;
	if (pk_is_timer_of_kernel(function)) {
		party = PK_KERNEL;
		basis = PK_BASIS_OWN;
	} else if (function == addresses.known[PK_KNOWN_WAKEUP]) {
		party = pk_sleeper_of(plain);
		basis = PK_BASIS_OWNER;
	} else {
		party = pk_timer_noted(plain, timer->_softexpires);
		c->irq.timer = plain;
		c->irq.timer_for = party;
	}
	pk_irq_turn_to(c, function, party, basis);
	return 0;
}

/* Those of sleepers tell whose they are; the kernel's clock and ours are nobody's. */
SEC("?tp_btf/hrtimer_start")
int BPF_PROG(pk_hrtimer_start, struct hrtimer *timer)
{
	struct pk_cpu *c = pk_hook(PK_HOOKS_INTERRUPTS);
	__u64 plain = pk_plain(c, timer);
	__u64 function = pk_hrtimer_function(plain);
	__u64 party;

	if (function == addresses.known[PK_KNOWN_WAKEUP] || pk_is_timer_of_kernel(function))
		return 0;
	party = pk_party_now(c);
	/* One that starts itself anew, when it expires, stays whose it was. */
	if (!party && c->irq.timer == plain)
		party = c->irq.timer_for;
	else if (!party && c->hot.hrtimer == (__u64)timer)
		party = pk_timer_noted(plain, c->timer.hrtimer_expires);
	pk_note_timer(plain, timer->_softexpires, party);
	return 0;
}
