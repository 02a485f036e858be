// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Hard interrupts and what they were for; see interrupt.bpf.h.
 *
 *   a device         whoever submitted the disk request that it completed; where a softirq is to do
 *                    the rest, those whose requests or packets this CPU handled in the last seconds
 *   a timer          the sleeper that it wakes, or whoever started it; the sampling clock's, pkprof
 *   another CPU      whoever asked it to call the function, to look for another task
 *   anything else    the kernel
 */
#include "interrupt.bpf.h"

#include "compat.bpf.h"
#include "count.bpf.h"
#include "hook.bpf.h"
#include "run.bpf.h"
#include "served.bpf.h"

#include <bpf/bpf_tracing.h>

enum { PK_UNKNOWN_PARTY = PK_UNCLAIMED + PK_UNTRACKED };

static __always_inline struct pk_cpu *pk_interrupt_hook(void)
{
	struct pk_cpu *c = this_cpu();

	c->irq_hits++;
	return c;
}

static __noinline int pk_put_row(struct pk_cpu *c, struct pk_exact *row)
{
	struct pk_key *key;

	if (!c || !row || !row->count)
		return 0;
	key = pk_fresh_key();
	key->ran_on = row->ran_on;
	key->served = row->served;
	key->served_kind = row->served & PK_OBJECT ? PK_SERVED_OBJECT : PK_SERVED_LABEL;
	key->kstack = row->function;
	key->syscall = row->number;
	key->kind = PK_INTERRUPT;
	key->vec = row->kind;
	key->basis = row->basis;
	key->reason = PK_UNTRACKED;
	pk_count(c, key, row->ns, row->count);
	row->ns = 0;
	row->count = 0;
	return 0;
}

int pk_put_exact(struct pk_cpu *c)
{
	if (!c)
		return 0;
	for (__u32 i = 0; i < PK_EXACT_ROWS; i++)
		pk_put_row(c, &c->exact[i]);
	return 0;
}

/* Ends a part of the interrupt: counts it, and begins the next. */
static __noinline int pk_end_part(struct pk_cpu *c)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 now = bpf_ktime_get_ns();
	struct pk_exact *row;
	__u64 ran_on, served;

	if (!c || !started)
		return 0;
	served = c->irq_party ? c->irq_party : PK_UNKNOWN_PARTY;
	ran_on = task->pid ? pk_label_of(task) : PK_IDLE;
	row = &c->exact[(ran_on >> 32 ^ c->irq_function >> 4 ^ c->irq_number) &
			(PK_EXACT_ROWS - 1)];
	if (row->served != served || row->ran_on != ran_on || row->function != c->irq_function ||
	    row->kind != c->irq_kind || row->number != c->irq_number || !row->count) {
		pk_put_row(c, row);
		pk_current_label(c, task); /* so that user space knows it */
		row->ran_on = ran_on;
		row->served = served;
		row->function = c->irq_function;
		row->number = c->irq_number;
		row->kind = c->irq_kind;
		row->basis = c->irq_basis;
	}
	row->ns += now - c->irq_since;
	row->count++;
	c->irq_ns += now - c->irq_since;
	c->irq_since = now;
	return 0;
}

static __always_inline int pk_begin(struct pk_cpu *c, __u8 kind, __u64 party)
{
	c->irq_before = c->irq_begin;
	c->irq_before_in_softirq = c->irq_in_softirq;
	c->irq_in_softirq = pk_serving_softirq(c) == 1;
	c->irq_kind = kind;
	c->irq_number = 0;
	c->irq_function = 0;
	c->irq_party = party;
	c->irq_basis = PK_BASIS_OWN;
	c->irq_begin = bpf_ktime_get_ns();
	c->irq_since = c->irq_begin;
	return 0;
}

static __always_inline int pk_end(struct pk_cpu *c)
{
	if (!c->irq_since)
		return 0; /* its entry was missed: the hooks were just turned on */
	pk_end_part(c);
	c->irq_end = c->irq_since;
	c->irq_since = 0;
	return 0;
}

int pk_interrupt_was_for(struct pk_cpu *c, __u64 party, __u32 basis)
{
	if (!c || !c->irq_since)
		return 0;
	c->irq_party = party;
	c->irq_basis = basis;
	return pk_end_part(c);
}

/* What follows in this interrupt is for this party, because it has this function called. */
static __always_inline void pk_turn_to(struct pk_cpu *c, __u64 function, __u64 party, __u8 basis)
{
	if (c->irq_function || c->irq_kind == PK_INT_DEVICE)
		pk_end_part(c);
	c->irq_function = function;
	c->irq_party = party;
	c->irq_basis = basis;
}

SEC("?tp_btf/irq_handler_entry")
int BPF_PROG(pk_irq_entry, int irq, struct irqaction *action)
{
	struct pk_cpu *c = pk_interrupt_hook();

	pk_begin(c, PK_INT_DEVICE, 0);
	c->irq_number = irq;
	c->irq_function = (__u64)action->handler;
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
	struct pk_cpu *c = pk_interrupt_hook();

	__u32 raised;

	if (c->irq_party)
		return pk_end(c);
	raised = pk_raised(c);
	c->irq_basis = PK_BASIS_VOTED;
	if (raised & (1 << PK_VEC_NET_RX | 1 << PK_VEC_NET_TX))
		c->irq_party = pk_network_object();
	else if (raised & 1 << PK_VEC_BLOCK)
		c->irq_party = pk_disk_object();
	return pk_end(c);
}

SEC("?raw_tp/local_timer_entry")
int pk_local_timer_entry(void *ctx)
{
	return pk_begin(pk_interrupt_hook(), PK_INT_TIMER, PK_KERNEL);
}

/* The end of every interrupt but a device's. */
SEC("?raw_tp")
int pk_vector_exit(void *ctx)
{
	return pk_end(pk_interrupt_hook());
}

/* Where the kernel does not say which function is called for whom, all of them together. */
static __always_inline __u64 pk_calls_object(void)
{
	return pk_object_of(PK_SALT_CALL, 0, 0);
}

SEC("?raw_tp")
int pk_call_entry(void *ctx)
{
	struct pk_cpu *c = pk_interrupt_hook();

	pk_begin(c, PK_INT_CALL, config.share_calls ? pk_calls_object() : PK_KERNEL);
	c->irq_basis = config.share_calls ? PK_BASIS_VOTED : PK_BASIS_OWN;
	return 0;
}

SEC("?raw_tp/irq_work_entry")
int pk_irq_work_entry(void *ctx)
{
	return pk_begin(pk_interrupt_hook(), PK_INT_WORK, PK_KERNEL);
}

/* Asking a CPU to look for another task is noted under that CPU. */
static __always_inline __u64 pk_reschedule_object(__u32 cpu)
{
	return pk_object_of(PK_SALT_RESCHEDULE, cpu, 0);
}

SEC("?raw_tp/reschedule_entry")
int pk_reschedule_entry(void *ctx)
{
	struct pk_cpu *c = pk_interrupt_hook();

	pk_begin(c, PK_INT_RESCHEDULE, pk_noted(pk_reschedule_object(bpf_get_smp_processor_id())));
	c->irq_basis = PK_BASIS_QUEUER;
	if (!c->irq_party) {
		c->irq_party = PK_KERNEL;
		c->irq_basis = PK_BASIS_OWN;
	}
	return 0;
}

/* A reschedule has no function; the others come by csd_queue_cpu. */
SEC("?tp_btf/ipi_send_cpu")
int BPF_PROG(pk_ipi_send, unsigned int cpu, unsigned long callsite, void *callback)
{
	struct pk_cpu *c = pk_interrupt_hook();

	if (!callback)
		pk_note(pk_reschedule_object(cpu), pk_party_now(c));
	return 0;
}

enum { PK_CALL_POLLED = 1 }; /* irq_number of PK_INT_CALL, where there was no interrupt */

static __always_inline __u64 pk_call_object(__u64 csd)
{
	return pk_object_of(PK_SALT_CALL, csd, 0);
}

/* A function of the network's that one CPU has another call, in a softirq. */
static __always_inline bool pk_is_steering(__u64 function)
{
	return function && (function == config.known[PK_KNOWN_STEER] ||
			    function == config.known[PK_KNOWN_STEER_BACK]);
}

/* The verifier takes no pointer to a function from a typed argument: hence raw ones. */
SEC("?raw_tp/csd_queue_cpu")
int pk_csd_queue(struct bpf_raw_tracepoint_args *ctx)
{
	struct pk_cpu *c = pk_interrupt_hook();
	__u64 function = ctx->args[2], csd = ctx->args[3];

	pk_note(pk_call_object(csd),
		pk_is_steering(function) ? pk_network_object() : pk_party_now(c));
	return 0;
}

/* An idle CPU may look for such calls by itself, with no interrupt. */
SEC("?raw_tp/csd_function_entry")
int pk_csd_entry(struct bpf_raw_tracepoint_args *ctx)
{
	struct pk_cpu *c = pk_interrupt_hook();
	__u64 function = ctx->args[0], csd = ctx->args[1];

	if (!c->irq_since) {
		if (bpf_get_current_task_btf()->pid)
			return 0; /* called on the CPU itself */
		pk_begin(c, PK_INT_CALL, 0);
		c->irq_number = PK_CALL_POLLED;
	}
	pk_turn_to(c, function, pk_noted(pk_call_object(csd)), PK_BASIS_QUEUER);
	return 0;
}

SEC("?raw_tp/csd_function_exit")
int pk_csd_exit(void *ctx)
{
	struct pk_cpu *c = pk_interrupt_hook();

	return c->irq_kind == PK_INT_CALL && c->irq_number == PK_CALL_POLLED ? pk_end(c) : 0;
}

/* Before there were tracepoints: those who have functions called share what the calls take. */
static __always_inline int pk_vote_for_calls(struct pk_cpu *c, __u64 party)
{
	return pk_vote(c, pk_calls_object(), party, 1, PK_VOTE_FADES);
}

SEC("?fentry/smp_call_function_many_cond")
int BPF_PROG(pk_call_many)
{
	struct pk_cpu *c = pk_interrupt_hook();

	return pk_vote_for_calls(c, pk_party_now(c));
}

SEC("?fentry/smp_call_function_single")
int BPF_PROG(pk_call_one)
{
	struct pk_cpu *c = pk_interrupt_hook();

	return pk_vote_for_calls(c, pk_party_now(c));
}

SEC("?fentry/smp_call_function_single_async")
int BPF_PROG(pk_call_later, int cpu, struct __call_single_data *csd)
{
	struct pk_cpu *c = pk_interrupt_hook();

	return pk_vote_for_calls(c, pk_is_steering((__u64)csd->func) ? pk_network_object() :
								       pk_party_now(c));
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

SEC("?tp_btf/hrtimer_expire_entry")
int BPF_PROG(pk_hrtimer_interrupt, struct hrtimer *timer)
{
	struct pk_cpu *c = pk_interrupt_hook();
	__u64 plain, function, party;
	__u8 basis = PK_BASIS_QUEUER;

	if (!c->irq_since || timer->is_soft)
		return 0;
	plain = pk_plain(c, timer);
	function = pk_hrtimer_function(plain);
	if (function == config.known[PK_KNOWN_PERF_CLOCK])
		c->due = timer->_softexpires;
	if (function == config.known[PK_KNOWN_TICK] ||
	    function == config.known[PK_KNOWN_PERF_CLOCK]) {
		party = PK_KERNEL;
		basis = PK_BASIS_OWN;
	} else if (function == config.known[PK_KNOWN_WAKEUP]) {
		party = pk_sleeper_of(plain);
		basis = PK_BASIS_OWNER;
	} else {
		party = pk_noted(pk_timer_object(plain));
	}
	pk_turn_to(c, function, party, basis);
	return 0;
}

/* Those of sleepers tell whose they are; the kernel's clock and ours are nobody's. */
SEC("?tp_btf/hrtimer_start")
int BPF_PROG(pk_hrtimer_start, struct hrtimer *timer)
{
	struct pk_cpu *c = pk_interrupt_hook();
	__u64 plain = pk_plain(c, timer);
	__u64 function = pk_hrtimer_function(plain);
	__u64 party;

	if (function == config.known[PK_KNOWN_TICK] ||
	    function == config.known[PK_KNOWN_PERF_CLOCK] ||
	    function == config.known[PK_KNOWN_WAKEUP])
		return 0;
	/* One that starts itself anew, when it expires, stays whose it was. */
	party = pk_party_now(c);
	if (party)
		pk_note(pk_timer_object(plain), party);
	return 0;
}

/* Run once by the process that records, to say which it is. */
SEC("?raw_tp")
int pk_introduce(void *ctx)
{
	self = pk_current_label(this_cpu(), bpf_get_current_task_btf());
	return 0;
}
