/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The CPU's own account: network work whose socket is not known yet.
 *
 * The sampler opens it (sample.bpf.h has the rules). It passes from the CPU to the packet that comes
 * next, from the packet to the socket that a hook names, and is hashed there until a process takes the
 * data.
 *
 * A hook that fires in another context must not settle: each first makes sure that this is still
 * the same run of the same softirq (pk_same_run).
 */
#ifndef PKPROF_CPU_ACCOUNT_BPF_H
#define PKPROF_CPU_ACCOUNT_BPF_H

#include "core/compat.bpf.h"
#include "core/hook.bpf.h"
#include "core/run.bpf.h"
#include "core/state.bpf.h"
#include "stack/place.bpf.h"
#include "who/account.bpf.h"
#include "who/object.bpf.h"
#include "who/party.bpf.h"

/* The packet that the account is for now, and whom it is addressed to, for when no hook says. */
static __always_inline void pk_net_at_packet(struct pk_cpu *c, __u64 skb,
					     struct pk_packet_info *info)
{
	c->wait.packet = skb;
	c->wait.datagram = info->datagram;
	c->wait.object = info->object;
	c->wait.listener = info->listener;
	c->wait.waits = info->waits;
	c->wait.guess = 0;
	c->wait.shared = info->shared;
	c->wait.charge.reason = info->reason;
}

static __always_inline void pk_net_address(struct pk_cpu *c, __u64 skb, bool at_data)
{
	struct pk_packet_info *info = pk_info(c);

	pk_parse_packet(skb, at_data, info);
	pk_net_at_packet(c, skb, info);
}

/*
 * Whose account gets what was done for a packet that a driver hands over. It may go on to another
 * CPU, where it brings its account; a segment of TCP may be joined with others, and goes by its
 * connection at once.
 */
static __always_inline __u64 pk_handed_over(__u64 skb, struct pk_packet_info *info)
{
	pk_parse_packet(skb, true, info);
	return info->waits ? info->object : pk_packet_object(skb, info);
}

/*
 * A sample's worth was for this object: of receiving, or of telling other CPUs; of sending that was
 * put off.
 */
int pk_net_vote(struct pk_cpu *c, __u64 object, const struct pk_charge *charge);

static __always_inline int pk_net_hash(struct pk_cpu *c, __u64 object, struct pk_charge *charge)
{
	pk_net_vote(c, object, charge);
	return pk_hash(c, object, charge);
}

static __always_inline void pk_net_settle(struct pk_cpu *c, __u64 object)
{
	c->wait.untold = 0;
	if (c->wait.charge.samples)
		pk_net_hash(c, object, &c->wait.charge);
	if (c->wait.charge.vec == PK_VEC_TASKLET)
		c->sender = object;
	if (c->wait.carried) {
		pk_pass(c, c->wait.carried, object);
		c->wait.carried = 0;
	}
	c->hot.armed = PK_PHASE_NONE;
}

/* The work is over and no hook named a socket. */
int pk_net_close(struct pk_cpu *c);

#endif
