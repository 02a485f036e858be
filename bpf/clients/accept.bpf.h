/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Who accepts a connection works for whoever connected.
 *
 * Where a program may be attached to the kernel's functions, accepting itself is seen. Elsewhere no
 * hook is in it, and one on all system calls would cost each of them more than this is worth. But
 * connections are accepted in the order in which they came. So each is noted as it comes to its
 * listening socket: what has come, less what the socket has in its queue, was accepted. A thread that
 * is woken for one is known from then on to accept there. It is looked at when it matters: when it is
 * sampled, forks, wakes another thread, or asks somebody. Of several threads at one socket it is not
 * known which of them it was, but for a connection that one is woken for.
 */
#ifndef PKPROF_ACCEPT_BPF_H
#define PKPROF_ACCEPT_BPF_H

#include "clients/message.bpf.h"
#include "core/run.bpf.h"

/* A connection has come to this listening socket. */
int pk_connection_comes(struct pk_cpu *c, __u64 sk, __u64 question, __u32 client);

/* Accepting is seen itself: 1. */
extern __u32 accepts_are_seen;

static __always_inline struct pk_listener *pk_listener_at(__u32 place)
{
	place &= PK_LISTENERS - 1;
	if (!config.clients) /* and there is no map */
		return NULL;
	return bpf_map_lookup_elem(&listeners, &place);
}

/* The number of the connection that came last to a listening Unix socket; whoever connects is at it. */
static __always_inline __u64 pk_unix_connects(struct pk_cpu *c, struct sock *sk)
{
	struct unix_sock *accepted = (void *)BPF_CORE_READ(sk, sk_receive_queue.prev, sk);
	__u64 connects = (__u64)BPF_CORE_READ(accepted, peer), question = pk_sock_object(connects);
	struct pk_worker *worker = pk_worker_of(bpf_get_current_task_btf(), true);

	if (!connects || !worker || bpf_get_current_task_btf()->flags & PF_KTHREAD)
		return 0;
	pk_note_accepted(worker, true);
	pk_note_message(question, connects, pk_client_of_message(c),
			worker->client ? worker->question : question);
	return question;
}

static __noinline int pk_listener_is_ready(struct pk_cpu *c, struct sock *sk)
{
	struct sock *accepted = NULL;
	struct tcp_sock *tcp;
	struct pk_flow *flow;
	__u64 question;
	__u32 client;

	if (!c)
		return 0;
	if (sk->__sk_common.skc_family == AF_UNIX) {
		question = pk_unix_connects(c, sk);
	} else {
		tcp = bpf_skc_to_tcp_sock(sk);
		if (!tcp)
			return 0;
		accepted = tcp->inet_conn.icsk_accept_queue.rskq_accept_tail->sk;
		question = pk_tcp_flow(accepted, false);
	}
	flow = pk_noted_message(question);
	client = flow ? flow->client : accepted ? pk_remote_end(c, accepted) : 0;
	return pk_connection_comes(c, pk_plain(c, sk), flow ? flow->question : 0, client);
}

/* A socket has something for whoever reads it: if it listens, a connection. */
static __always_inline void pk_connection_may_come(struct pk_cpu *c, struct sock *sk)
{
	c->coming.listener = 0;
	if (unlikely(sk->__sk_common.skc_state == TCP_LISTEN))
		pk_listener_is_ready(c, sk);
}

/*
 * Whether a thread that is woken now is for the connection that has just come to this CPU. A listening
 * socket wakes right after it has said so, in the same context.
 */
static __always_inline bool pk_wakes_to_accept(struct pk_cpu *c)
{
	enum { AT_ONCE_NS = 20000 };

	return unlikely(c->coming.listener) && c->coming.softirq == (pk_serving_softirq(c) == 1) &&
	       bpf_ktime_get_ns() - c->coming.ns < AT_ONCE_NS;
}

static __always_inline void pk_woken_to_accept(struct pk_cpu *c, struct pk_worker *worker)
{
	__u32 place = c->coming.listener, at = worker->listener[0] && worker->listener[0] != place;
	struct pk_listener *listener = pk_listener_at(place - 1);

	c->coming.listener = 0; /* one of those that wait is woken */
	if (!listener)
		return;
	if (!listener->acceptor)
		listener->acceptor = worker->thread;
	else if (listener->acceptor != worker->thread)
		listener->several = 1;
	at &= PK_LISTENS - 1;
	worker->listener[at] = place;
	worker->accepted[at] = listener->came - 1;
	worker->to_accept |= 1 << at;
}

#endif
