// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Hard interrupts and what they were for; see interrupt.bpf.h.
 *
 *   a device         whoever submitted the disk request that it completed; where a softirq is to do
 *                    the rest, those whose requests or packets this CPU handled in the last seconds
 *   a timer          the sleeper that it wakes, or whoever started it; the sampling clock's, pkprof
 *   another CPU      whoever asked it to call the function, to look for another task
 *   another device   not known
 *   anything else    the kernel
 */
#include "sources/interrupt.bpf.h"

#include "core/compat.bpf.h"
#include "core/hook.bpf.h"
#include "core/run.bpf.h"
#include "process/served.bpf.h"
#include "timed/exact.bpf.h"

#include <bpf/bpf_tracing.h>

enum { PK_UNKNOWN_PARTY = PK_UNCLAIMED + PK_UNTRACKED };

/* A sample that took longer than any does was interrupted itself, by the host. */
#define PK_LONGEST_SAMPLE_NS 100000

/* Ends a part of the interrupt: counts it, and begins the next. */
static __noinline int pk_end_part(struct pk_cpu *c)
{
	__u64 now = bpf_ktime_get_ns(), ns;

	if (!c)
		return 0;
	ns = now - pk_irq_counted_from(c);
	if (!c->irq.part.served)
		c->irq.part.served = PK_UNKNOWN_PARTY;
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

/*
 * Entering it took a while already, and leaving it will: who was interrupted had neither. What came
 * just before is counted already. An idle CPU had nothing to lose.
 */
static __always_inline __u64 pk_entered(struct pk_cpu *c)
{
	__u64 at = c->irq.begin - interrupt_entry_ns, least = c->irq.end;

	if (!bpf_get_current_task_btf()->pid)
		return c->irq.begin;
	if (least < c->measure.run_since)
		least = c->measure.run_since;
	if (least < c->measure.softirq_since)
		least = c->measure.softirq_since;
	return at < least ? least : at;
}

static __always_inline int pk_begin(struct pk_cpu *c, __u8 kind, __u64 party)
{
	c->irq.before = c->irq.begin;
	c->irq.before_in_softirq = c->irq.in_softirq;
	c->irq.in_softirq = pk_serving_softirq(c) == 1;
	c->irq.timer = 0;
	c->irq.sampled = 0;
	c->irq.part.kind = kind;
	c->irq.part.number = 0;
	c->irq.part.function = 0;
	c->irq.part.served = party;
	c->irq.part.basis = PK_BASIS_OWN;
	c->irq.sum_at_begin = c->irq.sum;
	c->irq.begin = bpf_ktime_get_ns();
	c->irq.entered = pk_entered(c);
	c->irq.since = c->irq.entered;
	return 0;
}

static __always_inline int pk_end(struct pk_cpu *c)
{
	if (!c->irq.since)
		return 0; /* its entry was missed: the hooks were just turned on */
	pk_end_part(c);
	c->irq.end = c->irq.since;
	c->irq.since = 0;
	return 0;
}

int pk_interrupt_completed(struct pk_cpu *c, __u64 party)
{
	if (!c || !c->irq.since)
		return 0;
	c->irq.part.served = party;
	c->irq.part.basis = PK_BASIS_SUBMITTER;
	return pk_end_part(c);
}

/* What follows in this interrupt is for this party, because it has this function called. */
static __always_inline void pk_turn_to(struct pk_cpu *c, __u64 function, __u64 party, __u8 basis)
{
	if (c->irq.part.function || c->irq.part.kind == PK_EXACT_DEVICE)
		pk_end_part(c);
	c->irq.part.function = function;
	c->irq.part.served = party;
	c->irq.part.basis = basis;
}

SEC("?tp_btf/irq_handler_entry")
int BPF_PROG(pk_irq_entry, int irq, struct irqaction *action)
{
	struct pk_cpu *c = pk_hook(PK_HOOKS_INTERRUPTS);

	pk_begin(c, PK_EXACT_DEVICE, 0);
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
		return pk_end(c);
	raised = pk_raised(c);
	c->irq.part.basis = PK_BASIS_VOTED;
	if (raised & (1 << PK_VEC_NET_RX | 1 << PK_VEC_NET_TX))
		c->irq.part.served = pk_network_object();
	else if (raised & 1 << PK_VEC_BLOCK)
		c->irq.part.served = pk_disk_object();
	return pk_end(c);
}

SEC("?raw_tp/local_timer_entry")
int pk_local_timer_entry(void *ctx)
{
	return pk_begin(pk_hook(PK_HOOKS_INTERRUPTS), PK_EXACT_TIMER, PK_KERNEL);
}

/* The end of every interrupt but a device's. */
SEC("?raw_tp")
int pk_vector_exit(void *ctx)
{
	return pk_end(pk_hook(PK_HOOKS_INTERRUPTS));
}

/* Where the kernel does not say which function is called for whom, all of them together. */
static __always_inline __u64 pk_calls_object(void)
{
	return pk_object_of(PK_SALT_CALL, 0, 0);
}

SEC("?raw_tp")
int pk_call_entry(void *ctx)
{
	struct pk_cpu *c = pk_hook(PK_HOOKS_INTERRUPTS);

	pk_begin(c, PK_EXACT_CALL, config.share_calls ? pk_calls_object() : PK_KERNEL);
	c->irq.part.basis = config.share_calls ? PK_BASIS_VOTED : PK_BASIS_OWN;
	return 0;
}

SEC("?raw_tp/irq_work_entry")
int pk_irq_work_entry(void *ctx)
{
	return pk_begin(pk_hook(PK_HOOKS_INTERRUPTS), PK_EXACT_WORK, PK_KERNEL);
}

/* Asking a CPU to look for another task is noted under that CPU. */
static __always_inline __u64 pk_reschedule_object(__u32 cpu)
{
	return pk_object_of(PK_SALT_RESCHEDULE, cpu, 0);
}

SEC("?raw_tp/reschedule_entry")
int pk_reschedule_entry(void *ctx)
{
	struct pk_cpu *c = pk_hook(PK_HOOKS_INTERRUPTS);

	pk_begin(c, PK_EXACT_RESCHEDULE, pk_noted(pk_reschedule_object(bpf_get_smp_processor_id())));
	c->irq.part.basis = c->irq.part.served & PK_OBJECT ? PK_BASIS_VOTED : PK_BASIS_QUEUER;
	if (!c->irq.part.served) {
		c->irq.part.served = PK_KERNEL;
		c->irq.part.basis = PK_BASIS_OWN;
	}
	return 0;
}

/* On whose behalf this CPU asks another one to look for another task. */
static __always_inline __u64 pk_asking_party(struct pk_cpu *c)
{
	__u64 party = pk_party_now(c);

	if (party)
		return party;
	if (c->irq.since)
		return c->irq.part.served;
	return pk_serving_softirq(c) == 1 ? pk_waking_object() : 0;
}

/* A reschedule has no function; the others come by csd_queue_cpu. */
SEC("?tp_btf/ipi_send_cpu")
int BPF_PROG(pk_ipi_send, unsigned int cpu, unsigned long callsite, void *callback)
{
	struct pk_cpu *c = pk_hook(PK_HOOKS_INTERRUPTS);

	if (!callback)
		pk_note(pk_reschedule_object(cpu), pk_asking_party(c));
	return 0;
}

enum { PK_CALL_POLLED = 1 }; /* .number of PK_EXACT_CALL, where there was no interrupt */

/* Before there was a tracepoint: what every reschedule goes through. */
SEC("?fentry/native_smp_send_reschedule")
int BPF_PROG(pk_send_reschedule, int cpu)
{
	struct pk_cpu *c = pk_hook(PK_HOOKS_INTERRUPTS);

	pk_note(pk_reschedule_object(cpu), pk_asking_party(c));
	return 0;
}

static __always_inline __u64 pk_call_object(__u64 csd)
{
	return pk_object_of(PK_SALT_CALL, csd, 0);
}

/* A function of the network's that one CPU has another call, in a softirq. */
static __always_inline bool pk_is_steering(__u64 function)
{
	return function && (function == addresses.known[PK_KNOWN_STEER] ||
			    function == addresses.known[PK_KNOWN_STEER_BACK]);
}

/*
 * A CPU that wakes a process of another one: for the process, whose own structure the call lies in.
 * Of several at once the kernel names the first. The kernel's threads are woken for someone else.
 */
static __always_inline struct task_struct *pk_woken_by_call(__u64 node)
{
	struct task_struct *task;

	if (!bpf_core_field_exists(struct task_struct, wake_entry))
		return NULL;
	task = (void *)(node - bpf_core_field_offset(struct task_struct, wake_entry));
	return BPF_CORE_READ(task, flags) & PF_KTHREAD ? NULL : task;
}

static __always_inline bool pk_is_waking(__u64 function)
{
	return function && function == addresses.known[PK_KNOWN_WAKE];
}

/* The verifier takes no pointer to a function from a typed argument: hence raw ones. */
SEC("?raw_tp/csd_queue_cpu")
int pk_csd_queue(struct bpf_raw_tracepoint_args *ctx)
{
	struct pk_cpu *c = pk_hook(PK_HOOKS_INTERRUPTS);
	__u64 function = ctx->args[2], csd = ctx->args[3];

	if (pk_is_waking(function) && pk_woken_by_call(csd))
		return 0;
	pk_note(pk_call_object(csd),
		pk_is_steering(function) ? pk_network_object() : pk_party_now(c));
	return 0;
}

/* An idle CPU may look for such calls by itself, with no interrupt. */
SEC("?raw_tp/csd_function_entry")
int pk_csd_entry(struct bpf_raw_tracepoint_args *ctx)
{
	struct pk_cpu *c = pk_hook(PK_HOOKS_INTERRUPTS);
	__u64 function = ctx->args[0], csd = ctx->args[1];
	struct task_struct *woken = NULL;

	if (!c->irq.since) {
		if (bpf_get_current_task_btf()->pid)
			return 0; /* called on the CPU itself */
		pk_begin(c, PK_EXACT_CALL, 0);
		c->irq.part.number = PK_CALL_POLLED;
	}
	if (pk_is_waking(function))
		woken = pk_woken_by_call(csd);
	if (woken)
		pk_turn_to(c, function, pk_label_of_task((__u64)woken), PK_BASIS_OWNER);
	else
		pk_turn_to(c, function, pk_noted(pk_call_object(csd)), PK_BASIS_QUEUER);
	return 0;
}

SEC("?raw_tp/csd_function_exit")
int pk_csd_exit(void *ctx)
{
	struct pk_cpu *c = pk_hook(PK_HOOKS_INTERRUPTS);

	return c->irq.part.kind == PK_EXACT_CALL && c->irq.part.number == PK_CALL_POLLED ? pk_end(c) : 0;
}

/* Before there were tracepoints: those who have functions called share what the calls take. */
static __always_inline int pk_vote_for_calls(struct pk_cpu *c, __u64 party)
{
	return pk_vote(c, pk_calls_object(), party, 1, PK_VOTE_FADES);
}

/* Wakes a task there: for whoever is woken. The other calls that come here had a hook. */
SEC("?fentry/__smp_call_single_queue")
int BPF_PROG(pk_call_wake, int cpu, struct llist_node *list)
{
	struct pk_cpu *c = pk_hook(PK_HOOKS_INTERRUPTS);
	__u64 node = (__u64)list - bpf_core_field_offset(struct __call_single_node, llist);
	__u32 flags = BPF_CORE_READ((struct __call_single_node *)node, u_flags);
	struct task_struct *woken;

	if ((flags & CSD_FLAG_TYPE_MASK) != CSD_TYPE_TTWU)
		return 0;
	woken = pk_woken_by_call(node);
	pk_vote_for_calls(c, woken ? pk_label_of_task((__u64)woken) : PK_KERNEL);
	return 0;
}

SEC("?fentry/smp_call_function_many_cond")
int BPF_PROG(pk_call_many)
{
	struct pk_cpu *c = pk_hook(PK_HOOKS_INTERRUPTS);

	pk_vote_for_calls(c, pk_party_now(c));
	return 0;
}

SEC("?fentry/smp_call_function_single")
int BPF_PROG(pk_call_one)
{
	struct pk_cpu *c = pk_hook(PK_HOOKS_INTERRUPTS);

	pk_vote_for_calls(c, pk_party_now(c));
	return 0;
}

SEC("?fentry/smp_call_function_single_async")
int BPF_PROG(pk_call_later, int cpu, struct __call_single_data *csd)
{
	struct pk_cpu *c = pk_hook(PK_HOOKS_INTERRUPTS);

	pk_vote_for_calls(c, pk_is_steering((__u64)csd->func) ? pk_network_object() :
								pk_party_now(c));
	return 0;
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
	pk_turn_to(c, function, party, basis);
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

/* Run once by the process that records, to say which it is. */
SEC("?raw_tp")
int pk_introduce(void *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();

	pk_current_label(this_cpu(), task);
	self = pk_process_of(task);
	return 0;
}
