/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A server at work for a client asks the kernel for what is done at once, elsewhere: see client.bpf.h. */
#ifndef PKPROF_ASKS_BPF_H
#define PKPROF_ASKS_BPF_H

#include "clients/client.bpf.h"
#include "core/run.bpf.h"
#include "who/party.bpf.h"

/* As pk_party_now(), with the client that a process works for. */
static __always_inline __u64 pk_party_asking(struct pk_cpu *c)
{
	__u64 party = pk_party_now(c);

	if (!config.clients || !party || pk_in_interrupt(c) ||
	    bpf_get_current_task_btf()->flags & PF_KTHREAD)
		return party;
	pk_client_of_message(c);
	return pk_label_at_work(party);
}

#endif
