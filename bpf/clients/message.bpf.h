/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A message is sent, and taken; see client.bpf.h. Called from the hooks on sockets. */
#ifndef PKPROF_MESSAGE_BPF_H
#define PKPROF_MESSAGE_BPF_H

#include "clients/end.bpf.h"
#include "clients/event.bpf.h"
#include "core/hook.bpf.h"
#include "core/run.bpf.h"
#include "who/count.bpf.h"
#include "who/object.bpf.h"

enum {
	PK_PURE_ACK = 2, /* sk_buff.truesize of one: skb_set_tcp_pure_ack() in net/ipv4/tcp_output.c */
};

/* Who sends at the passive end answers its client: the one that it took from last. */
static __always_inline void pk_answers(struct pk_cpu *c, struct pk_end *end)
{
	struct pk_worker *worker = pk_worker_of(bpf_get_current_task_btf(), false);
	__u32 client = end->client;
	__u64 question = end->question;
	struct pk_flow *flow;

	end->taken = 0;
	if (!end->flow || !worker)
		return;
	if (unlikely(!client)) {
		pk_is_answered(worker, 0); /* what was taken was sent before anyone took notes */
		flow = pk_noted_message(end->flow);
		client = flow ? flow->client : end->remote;
		question = flow ? flow->question : 0;
	}
	pk_client_answers(c, worker, client, question);
}

/* Notes a message. Where the note is there already, the other end's CPU keeps what it has of it. */
static __always_inline void pk_notes_message(__u64 number, __u64 sender, __u32 client, __u64 question)
{
	struct pk_flow *flow = pk_flow_at(number >> 32);

	if (unlikely(!flow || flow->number != number || flow->sender != sender)) {
		pk_note_message(number, sender, client, question);
		return;
	}
	if (flow->client != client)
		flow->client = client;
	if (flow->question != question)
		flow->question = question;
	if (flow->window != window)
		flow->window = window;
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
	pk_notes_message(number, sender, client, at_work ? end->question : number);
}

/*
 * The client of the datagram that will be read next, with PK_NEXT_KNOWN; 0: there is none yet. Of small
 * ones no hook says that they are read.
 */
__u32 pk_next_datagram(struct pk_cpu *c, __u64 sk);

/* The same of Unix sockets, whoever sends. */
__u32 pk_next_unix_datagram(__u64 sk);
int pk_unix_datagram_comes(struct pk_cpu *c, __u64 receiver);

/* Whom a Unix socket's last datagram was sent for, as pk_end.client; the question, 0 if none is known. */
__u64 pk_asked_by_datagram(__u64 sk, __u32 *client);

/*
 * The current thread has put a message into a Unix socket's queue, and is about to wake the reader. A
 * socket that has a peer gets messages from nobody else. Then the peer's process is in sending it now.
 */
static __noinline int pk_unix_message_comes(struct pk_cpu *c, struct sock *sk)
{
	struct unix_sock *receiver = bpf_skc_to_unix_sock(sk);
	struct pk_end *end;
	struct sock *peer;

	if (!c || !receiver || bpf_get_current_task_btf()->flags & PF_KTHREAD)
		return 0;
	c->stats.unix_messages++;
	peer = receiver->peer;
	if (peer) {
		end = pk_end_of(peer, false);
		if (!end)
			return 0;
		if (end->role == PK_ROLE_PASSIVE)
			end->taken = 0;
		else
			pk_asks(c, end, pk_is_unix_stream(peer) ? end->flow : pk_sock_object(pk_plain(c, peer)),
				pk_plain(c, peer));
		return 0;
	}
	if (sk->sk_type != SOCK_DGRAM)
		return 0;
	pk_unix_datagram_comes(c, pk_plain(c, sk));
	end = pk_end_of(sk, true);
	if (end && !end->next)
		end->next = pk_next_unix_datagram(pk_plain(c, sk));
	return 0;
}

/* A message has come to a socket's queue. */
static __always_inline void pk_message_comes(struct pk_cpu *c, struct sock *sk)
{
	__u16 family = sk->__sk_common.skc_family;
	struct pk_end *end;

	if (family == AF_UNIX)
		pk_unix_message_comes(c, sk);
	if (family == AF_UNIX || sk->sk_protocol != IPPROTO_UDP)
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

/* Whether samples wait for the answer over this connection. */
static __always_inline bool pk_is_awaited(__u64 question)
{
	struct pk_flow *flow = pk_flow_of(question);

	return unlikely(flow && flow->awaited);
}

/* The client of a datagram that is taken, and of the next one. */
static __always_inline __u32 pk_takes_datagram(struct pk_cpu *c, struct pk_end *end, struct sock *sk)
{
	__u32 client = end->next & PK_CLIENT_PLACE;
	struct pk_flow *flow;
	__u64 peer;

	if (sk->__sk_common.skc_family != AF_UNIX) {
		end->next = pk_next_datagram(c, pk_plain(c, sk));
		return client;
	}
	peer = (__u64)BPF_CORE_READ((struct unix_sock *)sk, peer);
	if (!peer) {
		end->next = pk_next_unix_datagram(pk_plain(c, sk));
		return client;
	}
	flow = pk_noted_message(pk_sock_object(peer));
	return flow ? flow->client : 0;
}

/* An answer, or a message, of which there is a note under the connection's number or none. */
static __always_inline bool pk_is_datagram(struct sock *sk)
{
	return sk->__sk_common.skc_family == AF_UNIX ? pk_is_unix_datagram(sk) :
						      sk->sk_protocol == IPPROTO_UDP;
}

/*
 * The current process takes what came over this socket. Where that is an answer for which samples wait,
 * returns the connection's number. By itself, since calls that are in each other share 6.1's 512 bytes.
 */
static __noinline __u64 pk_takes(struct pk_cpu *c, struct sock *sk)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct pk_worker *worker;
	struct pk_flow *flow;
	struct pk_end *end;
	__u64 question = 0;
	__u32 client = 0;

	if (!c || task->flags & PF_KTHREAD)
		return 0;
	end = pk_end_of(sk, true);
	worker = pk_worker_of(task, true);
	if (!end || !worker)
		return 0;
	if (end->role == PK_ROLE_ACTIVE) { /* an answer: to what it was asked for */
		client = end->client;
		question = end->question;
		if (unlikely(pk_is_unix_datagram(sk)))
			question = pk_asked_by_datagram(pk_plain(c, sk), &client);
		pk_client_takes(c, task, worker, client & PK_CLIENT_PLACE,
				client >> PK_CLIENT_RULE_SHIFT, question);
		question = end->flow ? end->flow : pk_sock_object(pk_plain(c, sk));
		return pk_is_awaited(question) ? question : 0;
	}
	if (pk_is_datagram(sk)) {
		client = pk_takes_datagram(c, end, sk);
	} else if (end->flow) {
		flow = pk_noted_message(end->flow);
		if (flow) {
			client = flow->client;
			question = flow->question;
		} else if (sk->__sk_common.skc_family != AF_UNIX) {
			if (!end->remote)
				end->remote = pk_remote_end(c, sk);
			client = end->remote;
		}
	}
	end->client = client;
	end->question = question;
	/* Whose it is is not known: still that of whoever woke it for this. */
	if (client || worker->rule != PK_CLIENT_WOKEN)
		pk_client_takes(c, task, worker, client, PK_CLIENT_TAKEN, question);
	/* Of a stream, what comes between two answers is one request. */
	if (client && (!end->taken || sk->sk_type == SOCK_DGRAM))
		pk_count_request(c, worker);
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
