// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* What is done for a sample, by where in the network's work it fell; the rules stand in sample.bpf.h. */
#include "net/sample.bpf.h"

#include "net/likely.bpf.h"
#include "pkprof/net_row.h"
#include "who/socket.bpf.h"

static __always_inline void pk_net_arm(struct pk_cpu *c, struct pk_place *place,
				       struct pk_charge *charge, __u32 phase)
{
	c->wait.tap = (place->at & PK_AT_TAP) != 0;
	c->wait.untold = 0;
	if (c->sampler.resting & PK_REST_PACKETS)
		c->wait.packets = pk_packets(c);
	pk_arm(c, charge,
	       place->at & PK_AT_NAPI_THREAD ? PK_RUNS_UNKNOWN : pk_softirq_runs(c, charge->vec),
	       phase);
}

/* In a packet that is not known: for the socket that a hook names before it ends, or for nobody. */
static __always_inline void pk_net_at_unknown(struct pk_cpu *c)
{
	c->wait.packet = 0;
	c->wait.datagram = 0;
	c->wait.object = PK_UNWATCHED_PARTY;
	c->wait.listener = 0;
	c->wait.waits = 0;
	c->wait.guess = 1;
	c->wait.shared = 0;
}

/*
 * Does the stack say for which packet the CPU is at work, and is it known whom what is addressed so is
 * for? Then the hook at every packet is not needed for this sample. While it rests the last socket stays
 * where it was, and is forgotten here if it is not the packet's.
 */
static __always_inline bool pk_packet_is_told(struct pk_cpu *c, struct pk_place *place)
{
	struct pk_packet_info *info = pk_info(c);

	/* Once a socket has the packet it may be freed already: joined with another, or read. */
	if (place->at & PK_AT_NAMED && c->hot.sk && config.packets)
		return true;
	if (!config.packets || !place->packet || place->at & PK_AT_TAP)
		return false;
	if (!(c->sampler.resting & PK_REST_PACKETS) && place->packet != c->hot.skb)
		return false;
	pk_parse_packet(place->packet, false, info);
	if (!info->object || info->shared || info->datagram)
		return false;
	if (c->sampler.resting & PK_REST_PACKETS && !pk_is_addressed_to(info, c->hot.sk))
		c->hot.sk = 0;
	return !c->hot.sk || info->waits ||
	       (pk_is_addressed_to(info, c->hot.sk) && pk_has_port_alone(info->object, c->hot.sk));
}

/* Samples of a packet on its way to being passed on, for one that meets it there. */
enum { PK_WAY_UP = 4 };

/* Inside the processing of a received packet. */
static __always_inline int pk_net_sample_packet(struct pk_cpu *c, struct pk_place *place,
						struct pk_charge *charge)
{
	bool told = pk_packet_is_told(c, place), passed_on, tap, tcp;
	struct sock *sk = (void *)c->hot.sk;

	tcp = sk ? BPF_CORE_READ(sk, sk_protocol) == IPPROTO_TCP : told && pk_info(c)->waits;
	passed_on = !sk && place->at & PK_AT_TRANSMIT;
	/* A packet that is passed on takes its account along, from samples that do not show it yet. */
	if (passed_on)
		c->stats.needed_packets += PK_WAY_UP;
	else if (!(c->sampler.resting & PK_REST_PACKETS))
		c->stats.needed_packets += sk && !told;
	/* Who sends over a connection takes what was done for it. */
	c->stats.needed_sending += passed_on ? PK_WAY_UP : tcp;
	if (c->sampler.resting & PK_REST_PACKETS) {
		c->hot.skb = place->packet;
		if (!told) {
			pk_net_arm(c, place, charge, PK_PHASE_PACKET);
			pk_net_at_unknown(c);
			c->wait.untold = 1;
			return 0;
		}
	}
	if (c->sampler.resting & PK_REST_SENDING && passed_on)
		return pk_charge_nobody(c, charge, PK_UNWATCHED);
	tap = sk && BPF_CORE_READ(sk, __sk_common.skc_family) == AF_PACKET;

	if (sk && tap == ((place->at & PK_AT_TAP) != 0) && !pk_sock_listens(c->hot.sk)) {
		pk_net_hash(c, pk_net_socket(c, c->hot.sk), charge);
		return 0;
	}
	/* On its way out, and its hook has run; before that, what was sent last is another. */
	if (place->at & PK_AT_TRANSMIT && c->hot.sent && !(place->at & PK_AT_TAP)) {
		if (!c->hot.tx_sk) {
			struct pk_packet_info *info = pk_info(c);

			pk_parse_packet(c->hot.skb, false, info);
			charge->reason = PK_FORWARDED;
			c->stats.needed_packets++;
			pk_hash(c, pk_packet_object(c->hot.skb, info), charge);
			return 0;
		}
		if (!pk_sock_of_kernel(c->hot.tx_sk)) {
			pk_net_hash(c, pk_net_socket(c, c->hot.tx_sk), charge);
			return 0;
		}
	}
	pk_net_arm(c, place, charge, PK_PHASE_PACKET);
	c->wait.untold = !told && !passed_on;
	pk_net_address(c, c->hot.skb, false);
	/* Which fragments belong together the hooks alone tell, whether or not one names the socket. */
	if (c->wait.datagram) {
		c->stats.needed_packets++;
		c->wait.untold = 0;
	}
	if (place->at & PK_AT_DELIVER)
		c->wait.shared = 0; /* already in the delivery to one of them */
	return 0;
}

/* Whose sending this softirq comes at the end of, where it does: the label; 0 for a kernel thread. */
static __always_inline __u64 pk_sends_now(const struct pk_charge *charge)
{
	return bpf_get_current_task_btf()->flags & PF_KTHREAD ? 0 : charge->ran_on;
}

/* A row of the table: what is done for the sample. */
static __always_inline int pk_net_timer(struct pk_cpu *c, struct pk_place *place,
					struct pk_charge *charge)
{
	__u64 object = pk_socket_expiring(c, place->vec);

	return object ? pk_hash(c, object, charge) : pk_charge_nobody(c, charge, PK_EXPIRED);
}

static __always_inline int pk_net_transmit(struct pk_cpu *c, struct pk_place *place,
					   struct pk_charge *charge)
{
	__u64 object = pk_net_socket(c, c->hot.tx_sk);

	if (place->vec == PK_VEC_TASKLET)
		c->sender = object;
	return pk_net_hash(c, object, charge);
}

static __always_inline int pk_net_steer_own(struct pk_cpu *c, struct pk_charge *charge)
{
	pk_net_vote(c, pk_sends_now(charge), charge);
	return pk_charge_party(c, charge, pk_sends_now(charge), PK_BASIS_OWNER);
}

/* The packet may have gone on by now: by its address. */
static __always_inline int pk_net_steer_passed(struct pk_cpu *c, struct pk_place *place,
					       struct pk_charge *charge)
{
	pk_net_arm(c, place, charge, PK_PHASE_PACKET);
	pk_net_address(c, c->hot.skb, false);
	return pk_net_close(c);
}

/* After its hook: what the hook would have done. */
static __always_inline int pk_net_handover(struct pk_cpu *c, struct pk_charge *charge)
{
	struct pk_packet_info *info = pk_info(c);
	__u64 object = pk_handed_over(c->hot.skb, info);

	charge->reason = info->reason;
	c->stats.needed_packets += !info->waits;
	return pk_hash(c, object, charge);
}

/* A queue may hold its packets back for now: it has nothing to name. */
static __always_inline int pk_net_send(struct pk_cpu *c, struct pk_place *place,
				       struct pk_charge *charge)
{
	c->wait.guess = 1;
	c->wait.object = place->at & PK_AT_SEND	     ? pk_deferred_sender(c) :
			 place->vec == PK_VEC_NET_TX ? pk_sending_object() :
						       pk_network_object();
	pk_net_arm(c, place, charge, PK_PHASE_TRANSMIT);
	return 0;
}

/* Inside one that is none of a socket's; else between tasklets or after the last. */
static __always_inline int pk_net_tasklets(struct pk_cpu *c, struct pk_place *place,
					   struct pk_charge *charge)
{
	charge->reason = PK_UNTRACKED;
	if (place->foreign)
		return pk_charge_nobody(c, charge, PK_UNTRACKED);
	c->wait.object = pk_deferred_sender(c);
	c->wait.guess = 1;
	pk_net_arm(c, place, charge, PK_PHASE_TRANSMIT);
	return 0;
}

/*
 * Inside one that is none of a socket's: its hook, if it has one, has run. Between timers interrupts
 * are off, but for where they are turned on.
 */
static __always_inline int pk_net_hrtimers(struct pk_cpu *c, struct pk_place *place,
					   struct pk_charge *charge)
{
	charge->reason = PK_UNTRACKED;
	if (place->foreign && place->unlock != 1 && c->hot.hrtimer &&
	    !pk_socket_expiring(c, PK_VEC_HRTIMER))
		return pk_charge_party(c, charge,
				       pk_timer_noted(*(volatile __u64 *)&c->hot.hrtimer,
						      c->timer.hrtimer_expires),
				       PK_BASIS_QUEUER);
	/* After the last timer of the run. Before that, a timer may be anybody's. */
	if (place->unlock + 1 == place->depth) {
		c->wait.object = pk_socket_expiring(c, PK_VEC_HRTIMER);
		c->wait.waits = 1;
	}
	pk_net_arm(c, place, charge, PK_PHASE_TRANSMIT);
	return 0;
}

/*
 * Without a packet in this run: looking for one, or freeing buffers that were allocated here and read
 * elsewhere. Nobody says whose they were. In the softirq loop itself: of packets, disks, sockets and
 * their timers a hook will tell in this run. Where none does, it runs what is the kernel's, the
 * scheduler's softirq and RCU's.
 */
static __always_inline int pk_net_outside(struct pk_cpu *c, struct pk_place *place,
					  struct pk_charge *charge)
{
	bool in_loop = place->vec == PK_VEC_NONE;

	c->wait.guess = 1;
	if (!in_loop)
		c->wait.object = pk_network_object();
	else if (!(c->sampler.resting & PK_REST_PACKETS))
		c->wait.object = PK_KERNEL;
	if (in_loop)
		charge->reason = PK_UNTRACKED;
	/* At the end of the task's own sending: its packet raised this softirq. */
	if (place->inline_send && !(place->at & PK_AT_FREE)) {
		if (c->hot.tx_sk) {
			c->wait.object = pk_net_socket(c, c->hot.tx_sk);
			c->wait.waits = 1;
			c->wait.guess = 0;
		} else if (c->sampler.resting & PK_REST_SENDING && pk_sends_now(charge)) {
			c->wait.object = pk_sends_now(charge);
			c->wait.guess = 0;
		}
	}
	/* This loop runs for packets only: if none comes, the last one was this run's. */
	if (place->at & PK_AT_BACKLOG && !(c->sampler.resting & PK_REST_PACKETS))
		pk_as_last_received(c);
	pk_net_arm(c, place, charge, in_loop ? PK_PHASE_ENTRY : PK_PHASE_BEFORE);
	return 0;
}

static __always_inline void pk_net_forget_object(struct pk_cpu *c)
{
	c->wait.object = 0;
	c->wait.listener = 0;
	c->wait.packet = 0;
	c->wait.shared = 0;
	c->wait.waits = 0;
	c->wait.guess = 0;
}

int pk_net_sample(struct pk_cpu *c, struct pk_place *place, struct pk_charge *charge)
{
	struct pk_net_seen seen;
	enum pk_net_row row;

	if (!c || !place || !charge)
		return 0;
	charge->reason = PK_EXPIRED;
	if (c->hot.busy) {
		/* It has interrupted a slow path, which is at work on the CPU's account; */
		if (!(place->at & PK_AT_HOOK) && place->vec == PK_VEC_NET_RX)
			return pk_charge_owner(c, charge, pk_network_object(), PK_BASIS_VOTED);
		/* or is in one: that is pkprof's own work. */
		return pk_charge_label(c, charge, PK_KERNEL, PK_BASIS_OWN);
	}
	c->stats.network++;
	seen = (struct pk_net_seen){
		.at = place->at,
		.vec = place->vec,
		.inline_send = place->inline_send,
		.sent = c->hot.tx_sk != 0,
		.received = c->hot.skb != 0,
		.resting = c->sampler.resting,
	};
	row = pk_net_row_of(&seen);
	if (row == PK_NET_PACKET)
		return pk_net_sample_packet(c, place, charge);
	if (row == PK_NET_TIMER)
		return pk_net_timer(c, place, charge);
	c->stats.needed_sending += pk_net_needs_sending(&seen);
	if (row == PK_NET_UNWATCHED)
		return pk_charge_nobody(c, charge, PK_UNWATCHED);
	if (row == PK_NET_TRANSMIT)
		return pk_net_transmit(c, place, charge);
	if (row == PK_NET_FORWARDED)
		return pk_charge_nobody(c, charge, PK_FORWARDED);
	if (row == PK_NET_STEER_OWN)
		return pk_net_steer_own(c, charge);
	if (row == PK_NET_STEER_SENT)
		return pk_net_hash(c, pk_net_socket(c, c->hot.tx_sk), charge);
	if (row == PK_NET_STEER_PASSED)
		return pk_net_steer_passed(c, place, charge);
	if (row == PK_NET_HANDOVER)
		return pk_net_handover(c, charge);
	pk_net_forget_object(c);
	if (row == PK_NET_SEND)
		return pk_net_send(c, place, charge);
	if (row == PK_NET_TASKLETS)
		return pk_net_tasklets(c, place, charge);
	if (row == PK_NET_HRTIMERS)
		return pk_net_hrtimers(c, place, charge);
	return pk_net_outside(c, place, charge);
}
