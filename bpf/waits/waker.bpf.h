/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Who ends a wait: the thread that wakes, with its stack, and who had woken that one in the meantime.
 * In an interrupt it is whom that works for, never the thread that it came in the middle of.
 */
#ifndef PKPROF_WAKER_BPF_H
#define PKPROF_WAKER_BPF_H

#include "core/run.bpf.h"
#include "process/served.bpf.h"
#include "stack/place.bpf.h"
#include "waits/disk.bpf.h"
#include "waits/row.bpf.h"
#include "waits/waiter.bpf.h"
#include "who/count.bpf.h"
#include "who/object.bpf.h"
#include "who/party.bpf.h"

enum { PK_WAKER_WORDS = sizeof(struct pk_waker) / sizeof(__u64) };

static __always_inline void pk_note_waking(struct pk_cpu *c, struct pk_waiter *w, __u64 now)
{
	struct task_struct *task = bpf_get_current_task_btf();

	w->woken_by = 0;
	if (pk_in_interrupt(c) || !task->pid)
		return;
	w->woken_by = pk_thread_number(task);
	w->woken_label = pk_current_label(c, task);
	w->woken_at = now;
}

/* Who had woken those who woke, as far as they were woken in the course of this wait. */
static __noinline int pk_follow_wakers(struct pk_cpu *c, struct pk_waker *out, __u64 thread, __u64 since)
{
	struct pk_waiter *w;
	__u32 i;

	for (i = 1; i < PK_WAKERS; i++) {
		w = pk_find_waiter(c, thread, false);
		if (!w || w->window != window || !w->woken_by || w->woken_at < since)
			return 0;
		out->who[i] = w->woken_label;
		thread = w->woken_by;
	}
	return 0;
}

/* Which end of its connection the socket is that was told of data. */
static __always_inline bool pk_is_passive_end(__u64 skp, __u16 family)
{
	struct unix_sock *own = (void *)skp, *other;
	struct inet_bind_bucket *port;

	if (family == AF_UNIX) {
		other = (void *)BPF_CORE_READ(own, peer);
		return BPF_CORE_READ(own, addr) && (!other || !BPF_CORE_READ(other, addr));
	}
	if (BPF_CORE_READ((struct sock *)skp, sk_protocol) != IPPROTO_TCP)
		return BPF_CORE_READ_BITFIELD_PROBED((struct sock *)skp, sk_userlocks) & SOCK_BINDPORT_LOCK;
	port = BPF_CORE_READ((struct inet_connection_sock *)skp, icsk_bind_hash);
	return !port || BPF_CORE_READ(port, fastreuse) >= 0; /* below 0: connect() has chosen it */
}

/* Of a datagram that has just come, where its header says that it is from. */
static __noinline int pk_note_sender(struct pk_waker *out, __u64 skp)
{
	const __u32 source_v4 = 12, source_v6 = 8; /* struct iphdr, struct ipv6hdr */
	struct sk_buff_head *queue = (void *)(skp + bpf_core_field_offset(struct sock, sk_receive_queue));
	struct sk_buff *last = BPF_CORE_READ(queue, prev);
	__u64 header;

	if (!last || (__u64)last == (__u64)queue)
		return 0;
	header = (__u64)BPF_CORE_READ(last, head) + BPF_CORE_READ(last, network_header);
	if (BPF_CORE_READ(last, protocol) == bpf_htons(ETH_P_IP)) {
		out->family = AF_INET;
		return bpf_probe_read_kernel(out->address, 4, (void *)(header + source_v4));
	}
	out->family = AF_INET6;
	return bpf_probe_read_kernel(out->address, sizeof(out->address), (void *)(header + source_v6));
}

/*
 * The other end of a connection of TCP: on this machine, it is known as a socket here is. Of what has
 * none, an address.
 */
static __noinline int pk_note_peer(struct pk_waker *out, __u64 skp)
{
	struct sock *sk = (void *)skp;
	__u16 family = BPF_CORE_READ(sk, __sk_common.skc_family);
	__u64 net, local, remote;
	struct in6_addr l6, r6;
	__u32 ports;

	if (!skp || (family != AF_INET && family != AF_INET6))
		return 0;
	out->question = pk_is_passive_end(skp, family);
	if (BPF_CORE_READ(sk, sk_protocol) != IPPROTO_TCP)
		return pk_note_sender(out, skp);
	ports = pk_sock_portpair(skp, BPF_CORE_READ(sk, __sk_common.skc_portpair));
	net = (__u64)BPF_CORE_READ(sk, __sk_common.skc_net.net);
	if (family == AF_INET) {
		local = BPF_CORE_READ(sk, __sk_common.skc_rcv_saddr);
		remote = BPF_CORE_READ(sk, __sk_common.skc_daddr);
		out->address[0] = remote;
	} else {
		BPF_CORE_READ_INTO(&l6, sk, __sk_common.skc_v6_rcv_saddr);
		BPF_CORE_READ_INTO(&r6, sk, __sk_common.skc_v6_daddr);
		local = pk_fold_v6(l6.in6_u.u6_addr32);
		remote = pk_fold_v6(r6.in6_u.u6_addr32);
		__builtin_memcpy(out->address, r6.in6_u.u6_addr32, sizeof(out->address));
	}
	out->family = family;
	out->party = pk_tcp_object(net, remote, local,
				   pk_portpair(bpf_htons(ports >> 16), bpf_ntohs(ports & 0xffff)));
	return 0;
}

/* The end of a request wakes, which was `own`'s. */
static __always_inline __u64 pk_disk_waited_for(struct pk_cpu *c, __u64 since, __u64 own)
{
	return own ? pk_ahead_at_disk(c, since, own) : 0;
}

/* In a softirq: its stack says which, and how far it has come. */
static __noinline int pk_wakes_in_softirq(struct pk_cpu *c, struct pk_waker *out, void *ctx,
					  struct pk_scratch *s, __u64 since)
{
	long size = bpf_get_stack(ctx, s->stack.ip, sizeof(s->stack.ip), 0);
	struct pk_place *place;

	out->context = PK_WOKEN_BY_SOFTIRQ;
	if (size <= 0)
		return 0;
	place = pk_read_place(s, (__u64)size / sizeof(__u64));
	out->vec = place->vec;
	if (!place->async)
		return 0;
	s->stack.depth = place->depth;
	out->kstack = pk_store_stack(c, place->hash, &s->stack);
	if (place->at & PK_AT_RECEIVE)
		return pk_note_peer(out, c->hot.sk);
	if (place->vec == PK_VEC_BLOCK)
		out->party = pk_disk_waited_for(c, since, pk_done_in_run(c));
	return 0;
}

/* What a process tells another one over a Unix socket is said of the other's socket first. */
static __always_inline bool pk_asks_over_unix(struct pk_cpu *c)
{
	struct sock *sk = (void *)c->hot.sk;

	return sk && BPF_CORE_READ(sk, __sk_common.skc_family) == AF_UNIX &&
	       pk_is_passive_end((__u64)sk, AF_UNIX);
}

static __noinline int pk_wakes_in_task(struct pk_cpu *c, struct pk_waker *out, void *ctx,
				       struct pk_scratch *s, __u64 since)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct pk_key *key = pk_fresh_key(); /* for its fields alone */
	__u32 basis;

	out->who[0] = pk_current_label(c, task);
	out->context = task->flags & PF_KTHREAD ? PK_WOKEN_BY_KTHREAD : PK_WOKEN_BY_TASK;
	out->kstack = pk_waiter_kernel_stack(c, ctx, &s->stack);
	if (task->flags & PF_KTHREAD) {
		out->party = pk_thread_party(pk_plain(c, task), &basis);
		/* A loop device's: it ends requests by itself. */
		if (pk_read_place(s, s->stack.depth)->at & PK_AT_COMPLETE)
			out->party = pk_disk_waited_for(c, since, out->party);
		return 0;
	}
	pk_current_syscall(task, key);
	out->syscall = key->syscall;
	out->compat = key->compat;
	out->exec_id = task->self_exec_id;
	out->question = pk_asks_over_unix(c);
	return 0;
}

struct pk_waker_loop {
	__u64 *words;
	__u64 hash;
};

static long pk_hash_word(__u32 i, struct pk_waker_loop *l)
{
	if (i + 1 >= PK_WAKER_WORDS)
		return 1;
	l->hash = mix(l->hash, l->words[i + 1]); /* the first is the number itself */
	return 0;
}

static __always_inline void pk_begin_waker(struct pk_waker *waker, struct task_struct *woken)
{
	__builtin_memset(waker, 0, sizeof(*waker));
	waker->syscall = PK_NO_SYSCALL;
	waker->lock = pk_futex_of(woken);
}

/* Noted, under the number that is returned. */
static __always_inline __u64 pk_keep_waker(struct pk_waker *waker)
{
	struct pk_waker_loop l = { .words = (void *)waker, .hash = config.seed };
	__u64 number;

	bpf_loop(PK_WAKER_WORDS - 1, pk_hash_word, &l, 0);
	number = l.hash ? l.hash : 1;
	waker->number = number;
	bpf_map_update_elem(&wakers, &number, waker, BPF_ANY);
	return number;
}

/* Who ends a wait that began at `since`: noted, under the number that is returned. */
static __always_inline __u64 pk_note_waker(struct pk_cpu *c, void *ctx, struct task_struct *woken, __u64 since)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct pk_wait_scratch *s = pk_wait_memory(c);

	if (!s)
		return 0;
	pk_begin_waker(&s->waker, woken);
	if (pk_serving_softirq(c) && !pk_preempt_bits(c, HARDIRQ_MASK | NMI_MASK)) {
		pk_wakes_in_softirq(c, &s->waker, ctx, &s->scratch, since);
	} else if (pk_in_interrupt(c) || !task->pid) {
		s->waker.context = PK_WOKEN_BY_INTERRUPT;
		s->waker.vec = c->irq.since ? c->irq.part.kind : PK_EXACT_DEVICE;
		s->waker.party = pk_disk_waited_for(c, since, pk_done_here(c));
	} else {
		pk_wakes_in_task(c, &s->waker, ctx, &s->scratch, since);
		/* From here: in Linux 6.1 calls that are in each other have 512 bytes of stack together. */
		if (!(task->flags & PF_KTHREAD))
			s->waker.ustack = pk_user_stack(c, ctx, &s->scratch.stack);
		pk_follow_wakers(c, &s->waker, pk_thread_number(task), since);
	}
	return pk_keep_waker(&s->waker);
}

#endif
