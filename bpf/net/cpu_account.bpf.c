// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Opening and closing the CPU's own account; the rules stand in cpu_account.bpf.h. */
#include "net/cpu_account.bpf.h"

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

/*
 * Was this TCP socket's sending ever deferred to a softirq? Its node in the list of such sockets
 * then does not point to itself any more.
 */
static __always_inline bool pk_was_deferred(__u64 skp)
{
	struct sock *sk = (void *)skp;
	__u64 node = skp + bpf_core_field_offset(struct tcp_sock, tsq_node);
	__u8 state = BPF_CORE_READ(sk, __sk_common.skc_state);

	if (state == TCP_NEW_SYN_RECV || state == TCP_TIME_WAIT ||
	    BPF_CORE_READ(sk, sk_type) != SOCK_STREAM ||
	    BPF_CORE_READ(sk, sk_protocol) != IPPROTO_TCP)
		return false;
	return (__u64)BPF_CORE_READ((struct tcp_sock *)skp, tsq_node.next) != node;
}

/*
 * Sending deferred to a softirq sends nothing if its process holds the socket just then, or the
 * window is closed. Most likely it was for the socket of one of the packets that this CPU received
 * or sent last: a buffer of its was freed here, and that is what put it on the list. Failing
 * that, for the one that last did send so.
 */
static __noinline __u64 pk_deferred_sender(struct pk_cpu *c)
{
	if (!c)
		return 0;
	if (c->hot.from && pk_was_deferred(c->hot.from))
		return pk_sock_object(c->hot.from);
	if (c->hot.tx_sk && pk_was_deferred(c->hot.tx_sk))
		return pk_sock_object(c->hot.tx_sk);
	if (c->hot.sk && pk_was_deferred(c->hot.sk))
		return pk_sock_object(c->hot.sk);
	return c->sender;
}

/* For what the packet received last was: its socket, or else as its headers say. */
static __noinline int pk_as_last_received(struct pk_cpu *c)
{
	struct pk_packet_info *info;

	if (!c)
		return 0;
	c->wait.guess = 0;
	if (c->hot.sk && !pk_sock_listens(c->hot.sk)) {
		c->wait.object = pk_net_socket(c, c->hot.sk);
		c->wait.waits = 1;
		return 0;
	}
	info = pk_info(c);
	pk_parse_packet(c->hot.skb, false, info);
	c->wait.object = info->object;
	c->wait.listener = info->listener;
	c->wait.waits = info->waits;
	return 0;
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
 * The sockets that samples have met by the port of UDP that their packets were addressed to. Several
 * may share a port; that one has it alone is believed if only that one is met, again and again.
 */
enum {
	PK_PORTS = 64,
	PK_ALONE = 8, /* met so often */
	PK_NOT_ALONE = -256, /* from here on if another was met */
};

static struct {
	__u64 object;
	__u64 sk;
	__s64 met;
} ports[PK_PORTS] = {};

static __always_inline bool pk_has_port_alone(__u64 object, __u64 sk)
{
	__u32 at = object >> 8 & (PK_PORTS - 1);
	__s64 met = 0;

	if (pk_sock_is_alone(sk))
		return true;
	if (ports[at].object == object) {
		met = ports[at].met;
		if (ports[at].sk != sk)
			met = PK_NOT_ALONE;
	}
	ports[at].object = object;
	ports[at].sk = sk;
	ports[at].met = met + (met < PK_ALONE);
	return met >= PK_ALONE;
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

/* Are the hooks on sending needed for what this sample is of? */
static __always_inline bool pk_needs_sending(struct pk_place *place)
{
	return place->at & (PK_AT_TRANSMIT | PK_AT_SEND | PK_AT_QDISC) ||
	       (place->at & PK_AT_STEER && !place->inline_send) || place->vec == PK_VEC_HRTIMER ||
	       place->vec == PK_VEC_TASKLET;
}

int pk_net_sample(struct pk_cpu *c, struct pk_place *place, struct pk_charge *charge)
{
	__u64 object;
	__u32 phase;

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
	if (place->at & PK_AT_RECEIVE)
		return pk_net_sample_packet(c, place, charge);
	if (place->at & PK_AT_TIMER) {
		object = pk_socket_expiring(c, place->vec);
		return object ? pk_hash(c, object, charge) :
				pk_charge_nobody(c, charge, PK_EXPIRED);
	}
	if (pk_needs_sending(place)) {
		c->stats.needed_sending++;
		if (c->sampler.resting & PK_REST_SENDING)
			return pk_charge_nobody(c, charge, PK_UNWATCHED);
	}
	if (place->at & PK_AT_TRANSMIT) {
		if (!c->hot.tx_sk)
			return pk_charge_nobody(c, charge, PK_FORWARDED);
		object = pk_net_socket(c, c->hot.tx_sk);
		if (place->vec == PK_VEC_TASKLET)
			c->sender = object;
		return pk_net_hash(c, object, charge);
	}
	if (place->at & PK_AT_STEER && c->sampler.resting & PK_REST_SENDING) {
		pk_net_vote(c, pk_sends_now(charge), charge);
		return pk_charge_party(c, charge, pk_sends_now(charge), PK_BASIS_OWNER);
	}
	/* Telling other CPUs of packets queued for them: what was just sent over a veth, */
	if (place->at & PK_AT_STEER && c->hot.tx_sk)
		return pk_net_hash(c, pk_net_socket(c, c->hot.tx_sk), charge);
	/* or what a driver handed over last. It may have gone on by now: by its address. */
	if (place->at & PK_AT_STEER && !c->hot.tx_sk && c->hot.skb) {
		pk_net_arm(c, place, charge, PK_PHASE_PACKET);
		pk_net_address(c, c->hot.skb, false);
		return pk_net_close(c);
	}
	/* In the handing over itself, after its hook: what the hook would have done. */
	if (place->at & PK_AT_HANDOVER && !c->hot.tx_sk && c->hot.skb) {
		struct pk_packet_info *info = pk_info(c);

		object = pk_handed_over(c->hot.skb, info);
		charge->reason = info->reason;
		c->stats.needed_packets += !info->waits;
		return pk_hash(c, object, charge);
	}
	c->wait.object = 0;
	c->wait.listener = 0;
	c->wait.packet = 0;
	c->wait.shared = 0;
	c->wait.waits = 0;
	c->wait.guess = 0;
	if (place->at & (PK_AT_SEND | PK_AT_QDISC)) {
		phase = PK_PHASE_TRANSMIT;
		c->wait.guess = 1;
		/* A queue may hold its packets back for now: it has nothing to name. */
		c->wait.object = place->at & PK_AT_SEND	   ? pk_deferred_sender(c) :
			    place->vec == PK_VEC_NET_TX ? pk_sending_object() :
							  pk_network_object();
	} else if (place->vec == PK_VEC_HRTIMER || place->vec == PK_VEC_TASKLET) {
		phase = PK_PHASE_TRANSMIT;
		charge->reason = PK_UNTRACKED;
		/*
		 * Inside one that is none of a socket's: its hook, if it has one, has run. Between
		 * timers interrupts are off, but for where they are turned on.
		 */
		if (place->foreign && place->vec == PK_VEC_TASKLET)
			return pk_charge_nobody(c, charge, PK_UNTRACKED);
		if (place->foreign && place->unlock != 1 && c->hot.hrtimer &&
		    !pk_socket_expiring(c, PK_VEC_HRTIMER))
			return pk_charge_party(c, charge,
					       pk_timer_noted(*(volatile __u64 *)&c->hot.hrtimer,
							      c->timer.hrtimer_expires),
					       PK_BASIS_QUEUER);
		/* After the last timer of the run. Before that, a timer may be anybody's. */
		if (place->vec == PK_VEC_HRTIMER && place->unlock + 1 == place->depth) {
			c->wait.object = pk_socket_expiring(c, PK_VEC_HRTIMER);
			c->wait.waits = 1;
		}
		/* Between tasklets or after the last. */
		if (place->vec == PK_VEC_TASKLET) {
			c->wait.object = pk_deferred_sender(c);
			c->wait.guess = 1;
		}
	} else {
		phase = place->vec == PK_VEC_NONE ? PK_PHASE_ENTRY : PK_PHASE_BEFORE;
		/*
		 * Without a packet in this run: looking for one, or freeing buffers that were
		 * allocated here and read elsewhere. Nobody says whose they were.
		 */
		c->wait.guess = 1;
		/*
		 * In the softirq loop itself: of packets, disks, sockets and their timers a hook will
		 * tell in this run. Where none does, it runs what is the kernel's, the scheduler's
		 * softirq and RCU's.
		 */
		if (place->vec == PK_VEC_NONE) {
			charge->reason = PK_UNTRACKED;
			if (!(c->sampler.resting & PK_REST_PACKETS))
				c->wait.object = PK_KERNEL;
		} else {
			c->wait.object = pk_network_object();
		}
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
	}
	pk_net_arm(c, place, charge, phase);
	return 0;
}

