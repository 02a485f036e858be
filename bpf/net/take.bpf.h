/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A process takes what was done for its socket. */
#ifndef PKPROF_NET_TAKE_BPF_H
#define PKPROF_NET_TAKE_BPF_H

#include "clients/client.bpf.h"
#include "core/hook.bpf.h"
#include "net/cpu_account.bpf.h"
#include "process/served.bpf.h"

/* A kernel thread that takes (a disk's that lies behind a network) does so for those it works for. */
static __noinline int pk_thread_takes(struct pk_cpu *c, __u64 object)
{
	struct pk_key who = { .syscall = PK_NO_SYSCALL };
	__u32 basis = PK_BASIS_PROVISIONAL;

	if (!c)
		return 0;
	who.served = pk_thread_party(bpf_get_current_task(), &basis);
	if (!who.served) {
		who.served = PK_UNCLAIMED + PK_UNTRACKED;
		basis = PK_BASIS_PROVISIONAL;
	}
	who.served_kind = who.served & PK_OBJECT ? PK_SERVED_OBJECT : PK_SERVED_LABEL;
	who.basis = basis;
	who.reason = PK_UNTRACKED;
	return pk_attribute(c, object, &who);
}

/* What else is done for this socket is for those whose messages come over it. */
static __noinline int pk_vote_for_client(struct pk_cpu *c, __u64 object)
{
	struct task_struct *task = bpf_get_current_task_btf();

	if (!c)
		return 0;
	return pk_vote(c, object, pk_label_at_work(pk_label_of(task)), 1, PK_VOTE_FADES);
}

/*
 * The current process has its hands on a socket that has work on account: it is the one the work
 * was for. Its call path, down to the system call, goes with it.
 */
static __noinline int pk_take(struct pk_cpu *c, void *ctx, __u64 object, __u8 basis)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct pk_key who = { .basis = basis, .syscall = PK_NO_SYSCALL };
	struct pk_scratch *s;
	__u64 owner;
	__u32 one = 1;

	if (!c)
		return 0;
	if (task->flags & PF_KTHREAD)
		return pk_thread_takes(c, object);
	who.served = pk_current_label(c, task);
	pk_current_syscall(task, &who);
	s = bpf_map_lookup_elem(&scratch, &one);
	if (s && !config.measure)
		who.ustack = pk_user_stack(c, ctx, &s->stack);
	who.exec_id = task->self_exec_id;
	if (config.clients)
		who.client = pk_client_now();
	owner = pk_process_of(task);
	/*
	 * Whichever thread closes it, it was for all of them. No branch, since Linux 6.1 takes one here
	 * for dead.
	 */
	who.served ^= (who.served ^ owner) & (is_some(basis ^ PK_BASIS_OWNER) - 1);
	pk_attribute(c, object, &who);
	bpf_map_update_elem(&owners, &object, &owner, BPF_ANY);
	if (config.clients)
		pk_vote_for_client(c, object);
	return 0;
}

/*
 * Is this connection in the hands of the process at work? If not, a process may yet be at work on it:
 * one that hands the kernel packets of others, through a tun device.
 */
static __always_inline bool pk_is_used(struct sock *sk)
{
	return sk->sk_lock.owned;
}

/* Is anything on account in this socket's slot? The one test that every call pays. */
static __always_inline bool pk_may_have_account(struct pk_cpu *c, struct sock *sk)
{
	__u32 v;

	if (sk->sk_protocol == IPPROTO_TCP)
		v = pk_sock_portpair(pk_plain(c, sk), sk->__sk_common.skc_portpair);
	else
		v = (__u32)(pk_plain(c, sk) >> 6);
	return slot_tags[pk_slot_of(v) & (PK_SLOTS - 1)] != 0;
}

static __always_inline int pk_socket_taken(struct pk_cpu *c, void *ctx, struct sock *sk)
{
	__u64 object;

	if (likely(!pk_may_have_account(c, sk)))
		return 0;
	object = pk_sock_object(pk_plain(c, sk));
	if (!pk_on_account(object))
		return 0;
	if (pk_serving_softirq(c) || !pk_enter(c))
		return 0;
	pk_take(c, ctx, object, PK_BASIS_CONSUMED);
	pk_leave(c);
	return 0;
}

#endif
