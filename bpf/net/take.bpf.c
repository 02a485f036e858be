// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The network's hooks in the processes: data is received, a connection opened or closed. */
#include "net/take.bpf.h"

#include "clients/message.bpf.h"
#include "core/hook.bpf.h"
#include "net/cpu_account.bpf.h"
#include "net/receive.bpf.h"

#include <bpf/bpf_tracing.h>
#include <linux/errno.h>

/* An error is taken, too: that the connection was reset, for one. */
SEC("?tp_btf/sock_recv_length")
int BPF_PROG(pk_sock_recv_length, struct sock *sk, int ret)
{
	struct pk_cpu *c = pk_hook(PK_HOOKS_WORK);

	if (ret == -EAGAIN) {
		c->stats.taken_in_vain++;
		return 0;
	}
	if (config.clients && ret > 0 && !pk_is_tcp(sk))
		pk_takes_message(c, ctx, sk);
	return pk_socket_taken(c, ctx, sk);
}

/* TCP, also where sock_recv_length does not fire: splice. */
SEC("?tp_btf/tcp_rcv_space_adjust")
int BPF_PROG(pk_tcp_rcv_space_adjust, struct sock *sk)
{
	struct pk_cpu *c = pk_hook(PK_HOOKS_WORK);

	if (config.clients)
		pk_takes_message(c, ctx, sk);
	return pk_socket_taken(c, ctx, sk);
}

/* Before there was a tracepoint. */
SEC("?fexit/sock_recvmsg")
int BPF_PROG(pk_sock_recvmsg, struct socket *sock, void *msg, int flags, int ret)
{
	struct pk_cpu *c = pk_hook(PK_HOOKS_WORK);

	if (ret == -EAGAIN)
		return 0;
	if (config.clients && ret > 0 && !pk_is_tcp(sock->sk))
		pk_takes_message(c, ctx, sock->sk);
	return pk_socket_taken(c, ctx, sock->sk);
}

/*
 * Opening and closing. In a process that holds it, it is the owner that does so, and may be gone
 * before anyone asks; else a handshake has found its socket.
 */
SEC("?tp_btf/inet_sock_set_state")
int BPF_PROG(pk_inet_sock_set_state, struct sock *sk)
{
	struct pk_cpu *c = pk_hook(PK_HOOKS_WORK);
	__u64 object;

	if (pk_serving_softirq(c) != 0 || !pk_is_used(sk))
		return pk_socket_found(c, sk);
	if (bpf_get_current_task_btf()->flags & PF_KTHREAD)
		return 0;
	object = pk_sock_object(pk_plain(c, sk));
	if (!pk_enter(c))
		return 0;
	if (pk_on_account(object)) {
		pk_take(c, ctx, object, PK_BASIS_OWNER);
	} else {
		struct task_struct *task = bpf_get_current_task_btf();
		__u64 owner = pk_process_of(task);

		pk_current_label(c, task);
		bpf_map_update_elem(&owners, &object, &owner, BPF_ANY);
	}
	pk_leave(c);
	return 0;
}
