// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Connections come, and are accepted; see accept.bpf.h. */
#include "clients/accept.bpf.h"

#include "clients/event.bpf.h"

#include <bpf/bpf_tracing.h>

struct listeners_map listeners SEC(".maps");
__u32 accepts_are_seen;

/* A socket's place + 1. Where all near are taken, the first goes. */
static __always_inline __u32 pk_listener_place(__u64 sk)
{
	__u32 first = mix(config.seed, sk) >> 32, place = first, i;
	struct pk_listener *one;

	for (i = 0; i < PK_NEAR; i++) {
		one = pk_listener_at(first + i);
		if (!one)
			return 0;
		if (one->sk == sk && one->window == window)
			return ((first + i) & (PK_LISTENERS - 1)) + 1;
		if (!one->sk || one->window != window)
			place = first + i;
	}
	one = pk_listener_at(place);
	if (!one)
		return 0;
	one->sk = sk;
	one->acceptor = 0;
	one->several = 0;
	one->came = 0;
	one->window = window;
	return (place & (PK_LISTENERS - 1)) + 1;
}

int pk_connection_comes(struct pk_cpu *c, __u64 sk, __u64 question, __u32 client)
{
	struct pk_listener *listener;
	__u32 place, at;

	if (!c || accepts_are_seen)
		return 0;
	place = pk_listener_place(sk);
	listener = place ? pk_listener_at(place - 1) : NULL;
	if (!listener)
		return 0;
	listener->queued =
		BPF_CORE_READ((struct sock *)sk, __sk_common.skc_family) == AF_UNIX ?
			bpf_core_field_offset(struct sock, sk_receive_queue.qlen) :
			bpf_core_field_offset(struct sock, sk_ack_backlog);
	at = listener->came & (PK_COME - 1);
	listener->last[at].question = question;
	listener->last[at].client = client;
	listener->came++;
	c->coming.ns = bpf_ktime_get_ns();
	c->coming.softirq = pk_serving_softirq(c) == 1;
	c->coming.listener = place;
	return 0;
}

/* How many of those that came were accepted. */
static __always_inline __u32 pk_accepted_of(struct pk_listener *listener)
{
	__u32 came = listener->came, queued = 0;

	bpf_probe_read_kernel(&queued, sizeof(queued), (void *)listener->sk + listener->queued);
	return came - queued;
}

int pk_look_for_accepted(__u32 works)
{
	struct pk_worker *worker = pk_worker_of(bpf_get_current_task_btf(), false);
	__u32 i, accepted, which;
	struct pk_listener *listener;
	bool woken;

	if (!worker)
		return 0;
	for (i = 0; i < PK_LISTENS; i++) {
		if (!worker->listener[i])
			return 0;
		listener = pk_listener_at(worker->listener[i] - 1);
		if (!listener || listener->window != window || listener->came == worker->accepted[i])
			continue;
		accepted = pk_accepted_of(listener);
		if ((__s32)(accepted - worker->accepted[i]) <= 0)
			continue;
		woken = worker->to_accept & (1U << i);
		which = listener->several ? worker->accepted[i] : accepted - 1;
		worker->accepted[i] = accepted;
		worker->to_accept &= ~(1 << i);
		if (!works || (listener->several && !woken) || listener->came - which > PK_COME)
			continue;
		which &= PK_COME - 1;
		if (!listener->last[which].client)
			continue;
		pk_works_for(worker, listener->last[which].client, PK_CLIENT_TAKEN,
			     listener->last[which].question);
	}
	return 0;
}

/* `sk`: the socket of the connection that the current thread has accepted. */
static __noinline int pk_accepts(struct pk_cpu *c, struct sock *sk)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct pk_worker *worker;
	struct pk_flow *flow;
	struct pk_end *end;
	__u64 question;
	__u32 client;

	if (!c)
		return 0;
	accepts_are_seen = 1;
	end = pk_end_of(sk, true);
	worker = pk_worker_of(task, true);
	if (!end || !worker)
		return 0;
	question = end->flow;
	if (sk->__sk_common.skc_family == AF_UNIX)
		question = pk_sock_object((__u64)BPF_CORE_READ((struct unix_sock *)sk, peer));
	flow = pk_noted_message(question);
	client = flow ? flow->client : 0;
	if (!client && sk->__sk_common.skc_family != AF_UNIX)
		client = end->remote = pk_remote_end(c, sk);
	if (client)
		pk_client_takes(c, task, worker, client, PK_CLIENT_TAKEN, flow ? flow->question : 0);
	return 0;
}

/* It has none where it failed. Further arguments differ between kernels. */
SEC("?fexit/inet_accept")
int BPF_PROG(pk_client_accepts, struct socket *sock, struct socket *accepted)
{
	struct pk_cpu *c = pk_hook(PK_HOOKS_CLIENTS);

	if (accepted->sk)
		pk_accepts(c, accepted->sk);
	return 0;
}

SEC("?fexit/unix_accept")
int BPF_PROG(pk_client_accepts_unix, struct socket *sock, struct socket *accepted)
{
	struct pk_cpu *c = pk_hook(PK_HOOKS_CLIENTS);

	if (accepted->sk)
		pk_accepts(c, accepted->sk);
	return 0;
}
