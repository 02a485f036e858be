/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A message is sent, and taken; see client.bpf.h. Called from the hooks on sockets. */
#ifndef PKPROF_MESSAGE_BPF_H
#define PKPROF_MESSAGE_BPF_H

#include "clients/client.bpf.h"
#include "core/hook.bpf.h"
#include "core/run.bpf.h"
#include "who/count.bpf.h"
#include "who/object.bpf.h"

enum {
	PK_SALT_FLOW = 0x666c,
	PK_PURE_ACK = 2, /* sk_buff.truesize of one: skb_set_tcp_pure_ack() in net/ipv4/tcp_output.c */
};

/* Addresses of the machine itself mean another socket in each network namespace. */
static __always_inline bool pk_is_loopback(__u64 address)
{
	return (address & 0xff) == 127 || address == bpf_htonl(1) /* ::1, folded */;
}

static __always_inline bool pk_is_v4_mapped(const __be32 *a)
{
	return a[0] == 0 && a[1] == 0 && a[2] == bpf_htonl(0xffff);
}

static __always_inline __u64 pk_flow_number(__u64 net, __u64 active, __u64 passive, __u32 ports)
{
	__u64 h = config.seed ^ PK_SALT_FLOW;

	if (pk_is_loopback(passive))
		h = mix(h, net);
	return mix(mix(mix(h, active), passive), ports) | 1;
}

/* Of a connection of TCP, the same at both ends. */
static __always_inline __u64 pk_tcp_flow(struct sock *sk, bool active)
{
	__u64 net = pk_plain(this_cpu(), sk->__sk_common.skc_net.net), local, remote;
	__u16 lport = sk->__sk_common.skc_num, rport = bpf_ntohs(sk->__sk_common.skc_dport);
	struct in6_addr l6, r6;

	if (sk->__sk_common.skc_family == AF_INET) {
		local = sk->__sk_common.skc_rcv_saddr;
		remote = sk->__sk_common.skc_daddr;
	} else {
		l6 = sk->__sk_common.skc_v6_rcv_saddr;
		r6 = sk->__sk_common.skc_v6_daddr;
		local = pk_fold_v6(l6.in6_u.u6_addr32);
		remote = pk_fold_v6(r6.in6_u.u6_addr32);
	}
	if (active)
		return pk_flow_number(net, local, remote, (__u32)lport << 16 | rport);
	return pk_flow_number(net, remote, local, (__u32)rport << 16 | lport);
}

/* A port that connect() has chosen is not to be shared by those that are bound to it. */
static __always_inline bool pk_has_connected(struct sock *sk)
{
	struct inet_bind_bucket *port =
		BPF_CORE_READ((struct inet_connection_sock *)sk, icsk_bind_hash);

	return port && BPF_CORE_READ(port, fastreuse) < 0;
}

static __always_inline bool pk_is_tcp(struct sock *sk)
{
	return sk->sk_protocol == IPPROTO_TCP && sk->__sk_common.skc_family != AF_UNIX;
}

/* Which end of its connection a socket is. What has no such ends is told by what it does first. */
static __always_inline __u8 pk_role_of(struct sock *sk, bool takes)
{
	__u16 family = sk->__sk_common.skc_family;
	__u8 by_what_it_does = takes ? PK_ROLE_PASSIVE : PK_ROLE_ACTIVE;
	struct unix_sock *own, *other;

	if (family == AF_INET || family == AF_INET6) {
		if (pk_is_tcp(sk))
			return pk_has_connected(sk) ? PK_ROLE_ACTIVE : PK_ROLE_PASSIVE;
		return BPF_CORE_READ_BITFIELD_PROBED(sk, sk_userlocks) & SOCK_BINDPORT_LOCK ?
			       PK_ROLE_PASSIVE :
			       PK_ROLE_ACTIVE;
	}
	if (family != AF_UNIX)
		return by_what_it_does;
	own = (void *)sk;
	other = (void *)BPF_CORE_READ(own, peer);
	if (sk->sk_type == SOCK_DGRAM && !other)
		return BPF_CORE_READ(own, addr) ? PK_ROLE_PASSIVE : PK_ROLE_ACTIVE;
	if (!other || !BPF_CORE_READ(own, addr) == !BPF_CORE_READ(other, addr))
		return by_what_it_does;
	return BPF_CORE_READ(own, addr) ? PK_ROLE_PASSIVE : PK_ROLE_ACTIVE;
}

static __always_inline struct pk_end *pk_end_of(struct sock *sk, bool takes)
{
	struct pk_end *end = bpf_sk_storage_get(&ends, sk, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!end)
		return NULL;
	if (unlikely(end->window != window)) { /* messages have come and gone unseen since */
		end->window = window;
		end->client = 0;
		end->next = 0;
	}
	if (likely(end->role))
		return end;
	if (pk_is_tcp(sk))
		end->flow = pk_tcp_flow(sk, pk_has_connected(sk));
	end->role = pk_role_of(sk, takes);
	return end;
}

/* Who sends at the passive end answers its client. */
static __always_inline void pk_answers(struct pk_cpu *c, struct pk_end *end)
{
	struct pk_flow *flow;

	end->taken = 0;
	if (!end->flow || !pk_worker_of(bpf_get_current_task_btf(), false))
		return;
	flow = pk_noted_message(end->flow);
	pk_client_answers(c, flow ? flow->client : end->remote, flow ? flow->question : 0);
}

/*
 * A question: its answer brings back whom it was asked for. `number`: of the note; 0: it is noted
 * elsewhere.
 */
static __always_inline void pk_asks(struct pk_cpu *c, struct pk_end *end, __u64 number, __u64 sender)
{
	struct pk_worker *worker = pk_worker_of(bpf_get_current_task_btf(), false);
	bool at_work;
	__u32 client;

	if (worker)
		pk_note_accepted(worker, true);
	at_work = worker && worker->client;
	client = !worker ? 0 : at_work ? worker->way : worker->own;
	end->client = at_work ? worker->client | (__u32)worker->rule << PK_CLIENT_RULE_SHIFT : 0;
	end->question = at_work ? worker->question : 0;
	if (!number)
		return;
	if (unlikely(!client))
		client = pk_client_of_message(c);
	pk_note_message(number, sender, client, at_work ? end->question : number);
}

/*
 * The client of the datagram that will be read next, with PK_NEXT_KNOWN; 0: there is none yet. Of small
 * ones no hook says that they are read.
 */
__u32 pk_next_datagram(struct pk_cpu *c, __u64 sk);

/* A datagram has come to a socket's queue. */
static __always_inline void pk_datagram_comes(struct pk_cpu *c, struct sock *sk)
{
	struct pk_end *end;

	if (sk->sk_protocol != IPPROTO_UDP || sk->__sk_common.skc_family == AF_UNIX)
		return;
	end = pk_end_of(sk, true);
	if (end && end->role == PK_ROLE_PASSIVE && !end->next)
		end->next = pk_next_datagram(c, pk_plain(c, sk));
}

/* A datagram is sent; `sk`: its socket. */
int pk_sends_datagram(struct pk_cpu *c, __u64 skb, __u64 sk);

/* A packet is on its way out: the message is noted before anyone can have it. */
static __always_inline void pk_client_queues(struct pk_cpu *c, struct sock *sk, struct sk_buff *skb)
{
	struct pk_end *end;
	bool tcp = pk_is_tcp(sk);

	if (tcp && skb->truesize == PK_PURE_ACK)
		return;
	if ((!tcp && sk->sk_protocol != IPPROTO_UDP) || pk_in_interrupt(c) ||
	    bpf_get_current_task_btf()->flags & PF_KTHREAD)
		return;
	end = pk_end_of(sk, false);
	if (!end)
		return;
	if (end->role == PK_ROLE_PASSIVE)
		return pk_answers(c, end);
	pk_asks(c, end, tcp ? end->flow : 0, pk_plain(c, sk));
	if (!tcp)
		pk_sends_datagram(c, pk_plain(c, skb), pk_plain(c, sk));
}

/*
 * The client at the other end of a connection, on another machine. What comes from this machine has a
 * note, unless it was sent before anyone took notes.
 */
static __always_inline __u32 pk_remote_end(struct pk_cpu *c, struct sock *sk)
{
	__u64 at = pk_plain(c, sk), remote;
	__u32 family = AF_INET, port = config.clients & PK_CLIENTS_PORTS ? sk->__sk_common.skc_dport : 0;
	struct in6_addr r6;

	if (sk->__sk_common.skc_family == AF_INET) {
		remote = sk->__sk_common.skc_daddr;
		at += bpf_core_field_offset(struct sock, __sk_common.skc_daddr);
	} else {
		r6 = sk->__sk_common.skc_v6_daddr;
		remote = pk_fold_v6(r6.in6_u.u6_addr32);
		at += bpf_core_field_offset(struct sock, __sk_common.skc_v6_daddr);
		if (pk_is_v4_mapped(r6.in6_u.u6_addr32))
			at += 12;
		else
			family = AF_INET6;
	}
	return pk_is_loopback(remote) ? 0 : pk_remote_client(at, family, port);
}

/* A client takes an answer: the call by which it does so is the one that its server has worked for. */
static __noinline int pk_take_call(struct pk_cpu *c, void *ctx, __u64 question)
{
	struct pk_scratch *s;
	__u32 one = 1;

	if (!c || pk_serving_softirq(c) || !pk_enter(c))
		return 0;
	s = bpf_map_lookup_elem(&scratch, &one);
	if (s)
		pk_give_calls(c, question, pk_user_stack(c, ctx, &s->stack));
	pk_leave(c);
	return 0;
}

/* Whether samples wait for this answer. */
static __always_inline bool pk_is_awaited(__u64 question)
{
	struct pk_awaited *first = pk_awaited_at(question, 0);

	return unlikely(first && first->question == question);
}

/*
 * The current process takes what came over this socket. Where that is an answer for which samples wait,
 * returns the connection's number. By itself, since calls that are in each other share 6.1's 512 bytes.
 */
static __noinline __u64 pk_takes(struct pk_cpu *c, struct sock *sk)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u16 family = sk->__sk_common.skc_family;
	struct pk_worker *worker;
	struct pk_flow *flow;
	struct pk_end *end;
	__u64 question;
	__u32 client;

	if (!c || task->flags & PF_KTHREAD)
		return 0;
	end = pk_end_of(sk, true);
	worker = pk_worker_of(task, true);
	if (!end || !worker)
		return 0;
	if (end->role == PK_ROLE_ACTIVE) { /* an answer: to what it was asked for */
		client = end->client;
		pk_client_takes(c, client & PK_CLIENT_PLACE, client >> PK_CLIENT_RULE_SHIFT,
				end->question);
		question = end->flow ? end->flow : pk_sock_object(pk_plain(c, sk));
		return pk_is_awaited(question) ? question : 0;
	}
	flow = end->flow ? pk_noted_message(end->flow) : NULL;
	if (family != AF_UNIX)
		worker->arrived = 0; /* of a message that was not taken */
	client = flow ? flow->client : worker->arrived;
	if (sk->sk_protocol == IPPROTO_UDP && family != AF_UNIX) {
		client = end->next & PK_CLIENT_PLACE;
		end->next = pk_next_datagram(c, pk_plain(c, sk));
	}
	if (!client && end->flow) {
		if (!end->remote)
			end->remote = pk_remote_end(c, sk);
		client = end->remote;
	}
	/* Whose it is is not known: still that of whoever woke it for this. */
	if (!worker->arrived && (client || worker->rule != PK_CLIENT_WOKEN))
		pk_client_takes(c, client, PK_CLIENT_TAKEN, flow ? flow->question : 0);
	worker->arrived = 0;
	/* Of a stream, what comes between two answers is one request. */
	if (client && (!end->taken || sk->sk_type == SOCK_DGRAM))
		pk_count_request(c);
	end->taken = 1;
	return 0;
}

static __always_inline void pk_takes_message(struct pk_cpu *c, void *ctx, struct sock *sk)
{
	__u64 question = pk_takes(c, sk);

	if (question)
		pk_take_call(c, ctx, question);
}

#endif
