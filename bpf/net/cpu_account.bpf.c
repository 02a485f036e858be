// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Closing the CPU's own account. */
#include "net/cpu_account.bpf.h"

#include "who/socket.bpf.h"

/* To each receiver of one packet an equal part of what was common to all. */
static __noinline int pk_net_share(struct pk_cpu *c)
{
	struct pk_charge part;
	__u32 n;

	if (!c || !c->wait.receivers)
		return 0;
	n = c->wait.receivers < PK_RECEIVERS ? c->wait.receivers : PK_RECEIVERS;
	part = c->wait.charge;
	part.ns = c->wait.charge.ns / n;
	for (__u32 i = 0; i < PK_RECEIVERS; i++) {
		if (i >= n)
			break;
		if (i == n - 1)
			part.ns = c->wait.charge.ns - part.ns * (n - 1);
		part.samples = i == 0 ? c->wait.charge.samples : 0;
		pk_net_hash(c, c->wait.sockets[i], &part);
	}
	return 0;
}

/* What the packet brought along is for the owner of what it was addressed to, or for nobody. */
static __noinline int pk_net_disown(struct pk_cpu *c)
{
	struct pk_key who = { .syscall = PK_NO_SYSCALL };

	if (!c)
		return 0;
	who.served = c->wait.object ? c->wait.object : PK_UNCLAIMED + c->wait.charge.reason;
	who.served_kind = c->wait.object & PK_OBJECT ? PK_SERVED_OBJECT : PK_SERVED_LABEL;
	who.basis = c->wait.object ? PK_BASIS_OWNER : PK_BASIS_PROVISIONAL;
	who.reason = c->wait.charge.reason;
	return pk_attribute(c, c->wait.carried, &who);
}

/* The socket whose account may keep the charge until a process comes for it; 0: none. */
static __always_inline __u64 pk_net_heir(struct pk_cpu *c)
{
	if (c->wait.receivers)
		return c->wait.sockets[0];
	/*
	 * Read for itself: where one number is in two registers, Linux 6.1's verifier takes states
	 * for equal in which it is not, and drops code that it then thinks is never reached.
	 */
	return c->wait.waits ? *(volatile __u64 *)&c->wait.object : 0;
}

__noinline int pk_net_vote(struct pk_cpu *c, __u64 object, const struct pk_charge *charge)
{
	if (!c || !charge || !charge->ns)
		return 0;
	if (charge->vec == PK_VEC_NET_RX)
		return pk_vote(c, pk_network_object(), object, charge->ns, PK_VOTE_FADES);
	if (charge->vec == PK_VEC_NET_TX)
		return pk_vote(c, pk_sending_object(), object, charge->ns, PK_VOTE_FADES);
	return 0;
}

int pk_net_close(struct pk_cpu *c)
{
	__u64 heir;

	if (!c)
		return 0;
	c->stats.needed_packets += c->wait.untold;
	c->wait.untold = 0;
	heir = pk_net_heir(c);
	if (!c->wait.charge.samples) {
		/* Nothing but what the packet brought along. */
	} else if (c->wait.receivers) {
		pk_net_share(c);
	} else if (heir) {
		if (c->wait.listener)
			pk_vote(c, heir, c->wait.listener, 1, PK_VOTE_FALLBACK);
		pk_net_hash(c, heir, &c->wait.charge);
	} else {
		if (!c->wait.guess)
			pk_net_vote(c, c->wait.object, &c->wait.charge);
		pk_charge_party(c, &c->wait.charge, c->wait.object,
				c->wait.guess ? PK_BASIS_PROVISIONAL : PK_BASIS_OWNER);
	}
	if (c->wait.carried && heir) {
		pk_pass(c, c->wait.carried, heir);
	} else if (c->wait.carried) {
		pk_net_disown(c);
	}
	c->wait.carried = 0;
	c->hot.armed = PK_PHASE_NONE;
	return 0;
}
