// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Interrupts that CPUs send one another, to have functions called and to have another task looked
 * for: they are for whoever asked. Where the kernel does not say which call is whose, those who
 * asked share what the calls take.
 */
#include "clients/asks.bpf.h"
#include "core/hook.bpf.h"
#include "process/served.bpf.h"
#include "sources/interrupt.bpf.h"
#include "who/object.bpf.h"
#include "who/party.bpf.h"

#include <bpf/bpf_tracing.h>

/* Where the kernel does not say which function is called for whom, all of them together. */
static __always_inline __u64 pk_calls_object(void)
{
	return pk_object_of(PK_SALT_CALL, 0, 0);
}

SEC("?raw_tp")
int pk_call_entry(void *ctx)
{
	struct pk_cpu *c = pk_hook(PK_HOOKS_INTERRUPTS);

	pk_irq_begin(c, PK_EXACT_CALL, config.share_calls ? pk_calls_object() : PK_KERNEL);
	c->irq.part.basis = config.share_calls ? PK_BASIS_VOTED : PK_BASIS_OWN;
	return 0;
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

	pk_irq_begin(c, PK_EXACT_RESCHEDULE, pk_noted(pk_reschedule_object(bpf_get_smp_processor_id())));
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
	__u64 party = pk_party_asking(c);

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
		pk_is_steering(function) ? pk_network_object() : pk_party_asking(c));
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
		pk_irq_begin(c, PK_EXACT_CALL, 0);
		c->irq.part.number = PK_CALL_POLLED;
	}
	if (pk_is_waking(function))
		woken = pk_woken_by_call(csd);
	if (woken)
		pk_irq_turn_to(c, function, pk_label_of_task((__u64)woken), PK_BASIS_OWNER);
	else
		pk_irq_turn_to(c, function, pk_noted(pk_call_object(csd)), PK_BASIS_QUEUER);
	return 0;
}

SEC("?raw_tp/csd_function_exit")
int pk_csd_exit(void *ctx)
{
	struct pk_cpu *c = pk_hook(PK_HOOKS_INTERRUPTS);

	return c->irq.part.kind == PK_EXACT_CALL && c->irq.part.number == PK_CALL_POLLED ? pk_irq_end(c) : 0;
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

	pk_vote_for_calls(c, pk_party_asking(c));
	return 0;
}

SEC("?fentry/smp_call_function_single")
int BPF_PROG(pk_call_one)
{
	struct pk_cpu *c = pk_hook(PK_HOOKS_INTERRUPTS);

	pk_vote_for_calls(c, pk_party_asking(c));
	return 0;
}

SEC("?fentry/smp_call_function_single_async")
int BPF_PROG(pk_call_later, int cpu, struct __call_single_data *csd)
{
	struct pk_cpu *c = pk_hook(PK_HOOKS_INTERRUPTS);

	pk_vote_for_calls(c, pk_is_steering((__u64)csd->func) ? pk_network_object() :
								pk_party_asking(c));
	return 0;
}
