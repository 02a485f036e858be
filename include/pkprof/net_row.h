/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) OR Apache-2.0 */
/*
 * Where in the network's work a sample fell: the rows of the table in bpf/net/sample.bpf.h. It
 * is decided by what the stack says and by what the hooks said last, and by nothing else, so that it
 * is tested outside the kernel, too (tests/unit/kernel/net_row_test.cc).
 */
#ifndef PKPROF_NET_ROW_H
#define PKPROF_NET_ROW_H

#include "abi.h"

enum pk_net_row {
	PK_NET_PACKET,       /* in a received packet */
	PK_NET_TIMER,        /* in a socket's timer */
	PK_NET_UNWATCHED,    /* in sending, while its hooks rest */
	PK_NET_TRANSMIT,     /* in a packet on its way out */
	PK_NET_FORWARDED,    /* the same, of a packet that has no socket */
	PK_NET_STEER_OWN,    /* telling other CPUs of packets, at the end of the task's own sending */
	PK_NET_STEER_SENT,   /* telling them of what was sent last */
	PK_NET_STEER_PASSED, /* telling them of what a driver handed over last */
	PK_NET_HANDOVER,     /* taking a packet from a driver */
	PK_NET_SEND,         /* sending deferred to a softirq */
	PK_NET_TASKLETS,     /* in tasklets, or between them */
	PK_NET_HRTIMERS,     /* in high-resolution timers, or between them */
	PK_NET_LOOP,         /* in the softirq loop itself, between vectors */
	PK_NET_OUTSIDE,      /* receiving, outside any packet */
};

struct pk_net_seen {
	__u32 at;         /* enum pk_at */
	__u8 vec;         /* enum pk_vec */
	__u8 inline_send; /* the softirq comes at the end of the task's own sending */
	__u8 sent;        /* the packet that was sent last has a socket */
	__u8 received;    /* a driver has handed over a packet */
	__u32 resting;    /* enum pk_rest */
};

/* Whether the hooks on sending are needed for what this sample is of. */
static inline __attribute__((always_inline)) int pk_net_needs_sending(const struct pk_net_seen *seen)
{
	return seen->at & (PK_AT_TRANSMIT | PK_AT_SEND | PK_AT_QDISC) ||
	       (seen->at & PK_AT_STEER && !seen->inline_send) || seen->vec == PK_VEC_HRTIMER ||
	       seen->vec == PK_VEC_TASKLET;
}

static inline __attribute__((always_inline)) enum pk_net_row
pk_net_row_of(const struct pk_net_seen *seen)
{
	if (seen->at & PK_AT_RECEIVE)
		return PK_NET_PACKET;
	if (seen->at & PK_AT_TIMER)
		return PK_NET_TIMER;
	if (seen->resting & PK_REST_SENDING && pk_net_needs_sending(seen))
		return PK_NET_UNWATCHED;
	if (seen->at & PK_AT_TRANSMIT)
		return seen->sent ? PK_NET_TRANSMIT : PK_NET_FORWARDED;
	if (seen->at & PK_AT_STEER && seen->resting & PK_REST_SENDING)
		return PK_NET_STEER_OWN;
	if (seen->at & PK_AT_STEER && seen->sent)
		return PK_NET_STEER_SENT;
	if (seen->at & PK_AT_STEER && seen->received)
		return PK_NET_STEER_PASSED;
	if (seen->at & PK_AT_HANDOVER && !seen->sent && seen->received)
		return PK_NET_HANDOVER;
	if (seen->at & (PK_AT_SEND | PK_AT_QDISC))
		return PK_NET_SEND;
	if (seen->vec == PK_VEC_TASKLET)
		return PK_NET_TASKLETS;
	if (seen->vec == PK_VEC_HRTIMER)
		return PK_NET_HRTIMERS;
	return seen->vec == PK_VEC_NONE ? PK_NET_LOOP : PK_NET_OUTSIDE;
}

#endif
