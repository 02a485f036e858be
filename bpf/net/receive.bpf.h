/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A socket that a hook names; see receive.bpf.c. */
#ifndef PKPROF_NET_RECEIVE_BPF_H
#define PKPROF_NET_RECEIVE_BPF_H

#include "core/state.bpf.h"

/* The CPU works for this socket, and an account waits. */
int pk_socket_slow(struct pk_cpu *c, __u64 sk);

static __always_inline int pk_socket_found(struct pk_cpu *c, struct sock *sk)
{
	c->hot.sk = (__u64)sk;
	if (likely(!c->hot.armed))
		return 0;
	return pk_socket_slow(c, pk_plain(c, sk));
}

#endif
