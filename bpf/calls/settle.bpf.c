// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Whom calls in softirqs are for: what waits on a CPU until a hook names a party, and the network's
 * rules for naming it. They are those of samples (net/cpu_account.bpf.h), but for what a sample
 * reads off its stack:
 *
 *   in a packet                          the socket that a hook names; failing that, by its headers
 *   after it, before the next begins     the same
 *   before the first                     as for that one; if none comes, by votes
 *   a packet for several receivers       the first, up to where it is delivered to the next
 */
#include "calls/settle.bpf.h"

#include "calls/call_table.bpf.h"
#include "who/object.bpf.h"
#include "who/party.bpf.h"
#include "who/socket.bpf.h"

struct pk_settling {
	struct pk_waiting_calls *p;
	__u32 cpu;
};

static long pk_settle_call(__u32 i, struct pk_settling *s)
{
	struct pk_waiting_calls *p = s->p;
	__u32 at = (p->start + i) & (PK_CALLS_PENDING - 1);

	pk_add_call(this_cpu(), s->cpu, p->call[at].function, p->call[at].caller, p->party, p->how);
	return 0;
}

/* Those up to `end`. */
static __noinline int pk_settle_calls(__u32 end)
{
	__u32 cpu = bpf_get_smp_processor_id() & (PK_MAX_CPUS - 1);
	struct pk_settling s = { .p = bpf_map_lookup_elem(&waiting_calls, &cpu), .cpu = cpu };
	struct pk_cpu *c = this_cpu();

	if (!s.p || s.p->start >= end)
		return 0;
	c->calls.busy[PK_IN_SOFTIRQ] = bpf_get_current_task();
	bpf_loop(end - s.p->start, pk_settle_call, &s, 0);
	c->calls.busy[PK_IN_SOFTIRQ] = 0;
	s.p->start = end;
	return 0;
}

static __always_inline struct pk_waiting_calls *pk_calls_waiting_here(void)
{
	__u32 cpu = bpf_get_smp_processor_id() & (PK_MAX_CPUS - 1);

	return bpf_map_lookup_elem(&waiting_calls, &cpu);
}

int pk_calls_are_for(struct pk_cpu *c, __u64 party, __u32 how)
{
	struct pk_waiting_calls *p = pk_calls_waiting_here();

	if (!c || !p)
		return 0;
	if (!c->calls.party) {
		p->party = party;
		p->how = how;
		pk_settle_calls(p->end);
	}
	p->start = 0;
	p->end = 0;
	p->next = PK_NO_CALL;
	c->calls.how = how;
	c->calls.party = party;
	return 0;
}

/* The packet is over, and no hook named its socket. */
static __always_inline void pk_name_by_headers(struct pk_cpu *c, struct pk_waiting_calls *p)
{
	__u64 object = p->object;

	p->party = object ? object : PK_UNCLAIMED + p->reason;
	p->how = object ? PK_CALL_HOW(PK_BASIS_OWNER, p->reason) :
			  PK_CALL_HOW(PK_BASIS_PROVISIONAL, 0);
	if (object && p->listener)
		pk_vote(c, object, p->listener, 1, PK_VOTE_FALLBACK);
}

int pk_calls_of_packet(struct pk_cpu *c, __u64 skb)
{
	struct pk_waiting_calls *p = pk_calls_waiting_here();
	struct pk_packet_info *info;
	__u32 next;

	if (!c || !p)
		return 0;
	info = pk_info(c);
	pk_parse_packet(skb, true, info);
	/* The same again: decapsulated, or up from a bridge; or the next fragment. */
	if (p->packet && p->packet != skb && !(p->datagram && p->datagram == info->datagram) &&
	    !c->calls.party) {
		next = p->next == PK_NO_CALL ? p->end : p->next;
		if (p->start < next) {
			pk_name_by_headers(c, p);
			pk_settle_calls(next);
		}
	}
	p->next = PK_NO_CALL;
	p->packet = skb;
	p->datagram = info->datagram;
	p->object = info->object;
	p->listener = info->waits ? info->listener : 0;
	p->reason = info->reason;
	p->shared = info->shared;
	c->calls.party = 0;
	return 0;
}

int pk_calls_of_socket(struct pk_cpu *c, __u64 skp)
{
	struct pk_waiting_calls *p = pk_calls_waiting_here();
	__u64 object;

	if (!c || !p)
		return 0;
	/* A sniffer looks on. A handshake is for who will have the connection: by its headers. */
	if (BPF_CORE_READ((struct sock *)skp, __sk_common.skc_family) == AF_PACKET ||
	    pk_sock_listens(skp))
		return 0;
	object = pk_net_socket(c, skp);
	pk_vote(c, pk_network_object(), object, 1, PK_VOTE_FADES);
	return pk_calls_are_for(c, object, PK_CALL_HOW(PK_BASIS_OWNER, PK_EXPIRED));
}

int pk_calls_of_sending(struct pk_cpu *c, __u64 skb, __u64 sk)
{
	struct pk_waiting_calls *p = pk_calls_waiting_here();

	if (!c || !p || c->calls.party)
		return 0;
	if (sk && !pk_sock_of_kernel(sk))
		return pk_calls_are_for(c, pk_net_socket(c, sk),
					PK_CALL_HOW(PK_BASIS_OWNER, PK_EXPIRED));
	if (!sk && p->packet == skb) {
		p->object = 0;
		p->reason = PK_FORWARDED;
	}
	return 0;
}

int pk_calls_of_drop(struct pk_cpu *c, __u64 skb, __u64 rx_sk)
{
	struct pk_waiting_calls *p = pk_calls_waiting_here();

	if (!c || !p || c->calls.party || p->packet != skb)
		return 0;
	if (rx_sk) /* its buffer is full: still work for it */
		return pk_calls_are_for(c, pk_sock_object(rx_sk),
					PK_CALL_HOW(PK_BASIS_OWNER, PK_EXPIRED));
	/* The last segments of a connection end here too: its owner is known. */
	if (!p->object || !bpf_map_lookup_elem(&owners, &p->object)) {
		p->object = 0;
		if (p->reason == PK_EXPIRED)
			p->reason = PK_DROPPED;
	}
	return 0;
}

int pk_calls_end(struct pk_cpu *c)
{
	struct pk_waiting_calls *p = pk_calls_waiting_here();

	if (!c || !p || c->calls.party || p->start >= p->end)
		return 0;
	if (p->packet) {
		pk_name_by_headers(c, p);
		return pk_settle_calls(p->end);
	}
	p->how = PK_CALL_HOW(PK_BASIS_VOTED, PK_EXPIRED);
	switch (c->calls.vec - 1) {
	case PK_VEC_NET_RX:
		p->party = pk_network_object();
		break;
	case PK_VEC_NET_TX:
		p->party = pk_sending_object();
		break;
	case PK_VEC_BLOCK:
	case PK_VEC_IRQ_POLL:
		p->party = pk_disk_object();
		break;
	default:
		p->party = PK_UNCLAIMED + PK_UNTRACKED;
		p->how = PK_CALL_HOW(PK_BASIS_PROVISIONAL, 0);
	}
	return pk_settle_calls(p->end);
}
