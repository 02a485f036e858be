/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The CPU's own account: network work whose socket is not known yet.
 *
 * The sampler opens it (pk_net_sample). It passes from the CPU to the packet that comes next, from
 * the packet to the socket that a hook names, and is hashed there until a process takes the data.
 * The rules, by where the sample fell:
 *
 *   in a packet, after a hook named its socket    that socket
 *   in a packet, before                           the socket that the next hook names; failing
 *                                                 that, the connection in the packet's headers
 *   receiving, outside any packet                 as for the next packet of this run
 *   in a packet on its way out                    the packet's socket; none: forwarded
 *   a socket's timer                              the timer's socket
 *   sending deferred to a softirq                 the socket of the next packet queued
 *
 * A hook that fires in another context must not settle: each first makes sure that this is still
 * the same run of the same softirq (pk_same_run).
 */
#ifndef PKPROF_NET_BPF_H
#define PKPROF_NET_BPF_H

#include "account.bpf.h"
#include "compat.bpf.h"
#include "object.bpf.h"
#include "place.bpf.h"
#include "state.bpf.h"

#define PK_RUNS_UNKNOWN (~0U)

/* How often the vector has run on this CPU; for PK_VEC_NONE, how often NET_RX has. */
static __always_inline __u32 pk_softirq_runs(struct pk_cpu *c, __u8 vec)
{
	__u32 runs = PK_RUNS_UNKNOWN;
	__u64 base = c->percpu + config.kernel_stat;

	if (!c->percpu || !config.kernel_stat)
		return PK_RUNS_UNKNOWN;
	if (vec == PK_VEC_NONE)
		vec = PK_VEC_NET_RX;
	if (vec > PK_VEC_RCU)
		return PK_RUNS_UNKNOWN;
	base += bpf_core_field_offset(struct kernel_stat, softirqs) + vec * sizeof(__u32);
	bpf_probe_read_kernel(&runs, sizeof(runs), (void *)base);
	return runs;
}

/* -1 when it cannot be told. */
static __always_inline int pk_serving_softirq(struct pk_cpu *c)
{
	__u32 count = 0;

	if (!c->percpu || !config.preempt_count)
		return -1;
	bpf_probe_read_kernel(&count, sizeof(count), (void *)(c->percpu + config.preempt_count));
	return (count & SOFTIRQ_OFFSET) != 0;
}

static __always_inline bool pk_same_run(struct pk_cpu *c)
{
	__u32 runs;

	if (bpf_get_current_task() != c->task)
		return false;
	if (c->runs == PK_RUNS_UNKNOWN)
		return true;
	if (!pk_serving_softirq(c))
		return false;
	runs = pk_softirq_runs(c, c->charge.vec);
	/* Opened before the vector was known: its run has begun since. */
	if (c->charge.vec == PK_VEC_NONE)
		return runs - c->runs <= 1;
	return runs == c->runs;
}

static __always_inline void pk_net_arm(struct pk_cpu *c, struct task_struct *task,
				       const struct pk_place *place,
				       const struct pk_charge *charge, __u32 phase)
{
	c->charge = *charge;
	c->task = (__u64)task;
	c->receivers = 0;
	c->tap = (place->at & PK_AT_TAP) != 0;
	c->timer = place->timer;
	c->runs = place->at & PK_AT_NAPI_THREAD ? PK_RUNS_UNKNOWN :
						  pk_softirq_runs(c, charge->vec);
	c->stats.armed++;
	c->armed = phase;
}

/* Notes whom the packet is addressed to, for when no hook says. */
static __always_inline void pk_net_address(struct pk_cpu *c, __u64 skb, bool at_data)
{
	struct pk_packet_info info;

	c->packet = skb;
	pk_parse_packet(skb, at_data, &info);
	c->object = info.object;
	c->waits = info.waits;
	c->shared = info.shared;
	c->charge.reason = info.reason;
}

static __always_inline void pk_net_settle(struct pk_cpu *c, __u64 object)
{
	c->stats.settled++;
	pk_hash(c, object, &c->charge);
	c->armed = PK_PHASE_NONE;
}

/* The work is over and no hook named a socket. */
static __noinline int pk_net_close(struct pk_cpu *c)
{
	struct pk_charge part;
	__u32 n;

	if (!c)
		return 0;
	n = c->receivers;
	c->stats.closed++;
	if (n > 0 && n <= 4) {
		/* One packet, several receivers: to each an equal part of what was common. */
		part = c->charge;
		part.ns = c->charge.ns / n;
		for (__u32 i = 0; i < 4; i++) {
			if (i >= n)
				break;
			if (i == n - 1)
				part.ns = c->charge.ns - part.ns * (n - 1);
			part.samples = i == 0 ? c->charge.samples : 0;
			pk_hash(c, c->sockets[i], &part);
		}
	} else if (c->object && c->waits) {
		pk_hash(c, c->object, &c->charge);
	} else if (c->object) {
		pk_charge_owner(c, &c->charge, c->object, PK_BASIS_OWNER);
	} else {
		pk_charge_nobody(c, &c->charge, c->charge.reason);
	}
	c->armed = PK_PHASE_NONE;
	return 0;
}

/* Inside the processing of a received packet. */
static __always_inline void pk_net_sample_packet(struct pk_cpu *c, struct task_struct *task,
						 const struct pk_place *place,
						 struct pk_charge *charge)
{
	struct sock *sk = (void *)c->sk;
	bool tap = sk && BPF_CORE_READ(sk, __sk_common.skc_family) == AF_PACKET;

	if (sk && tap == ((place->at & PK_AT_TAP) != 0) && !pk_sock_listens(c->sk)) {
		pk_hash(c, pk_sock_object(c->sk), charge);
		return;
	}
	if (place->at & PK_AT_TRANSMIT && !(place->at & PK_AT_TAP)) {
		if (!c->tx_sk) {
			pk_charge_nobody(c, charge, PK_FORWARDED);
			return;
		}
		if (!pk_sock_of_kernel(c->tx_sk)) {
			pk_hash(c, pk_sock_object(c->tx_sk), charge);
			return;
		}
	}
	pk_net_arm(c, task, place, charge, PK_PHASE_PACKET);
	pk_net_address(c, c->skb, false);
	if (place->at & PK_AT_DELIVER)
		c->shared = 0; /* already in the delivery to one of them */
}

/* Receiving, sending or a socket's timer in a softirq, or in a threaded NAPI. */
static __noinline int pk_net_sample(struct pk_cpu *c, struct task_struct *task,
				    struct pk_place *place, struct pk_charge *charge)
{
	__u32 phase;

	if (!c || !place || !charge)
		return 0;
	charge->reason = PK_EXPIRED;
	if (c->busy) {
		/* In a hook's slow path: that is pkprof's own work. */
		pk_charge_label(c, charge, PK_KERNEL, PK_BASIS_OWN);
		return 0;
	}
	if (place->at & PK_AT_RECEIVE) {
		pk_net_sample_packet(c, task, place, charge);
		return 0;
	}
	if (place->at & PK_AT_TRANSMIT) {
		if (!c->tx_sk)
			pk_charge_nobody(c, charge, PK_FORWARDED);
		else
			pk_hash(c, pk_sock_object(c->tx_sk), charge);
		return 0;
	}
	c->object = 0;
	c->packet = 0;
	c->shared = 0;
	c->waits = 0;
	if (place->at & PK_AT_TIMER) {
		phase = PK_PHASE_TIMER;
	} else if (place->at & (PK_AT_SEND | PK_AT_QDISC)) {
		phase = PK_PHASE_TRANSMIT;
	} else {
		phase = place->vec == PK_VEC_NONE ? PK_PHASE_ENTRY : PK_PHASE_BEFORE;
		if (place->vec == PK_VEC_NONE)
			charge->reason = PK_UNTRACKED;
		/* At the end of the task's own sending: its packet raised this softirq. */
		if (place->inline_send && c->tx_sk) {
			c->object = pk_sock_object(c->tx_sk);
			c->waits = 1;
		}
	}
	pk_net_arm(c, task, place, charge, phase);
	return 0;
}

#endif
