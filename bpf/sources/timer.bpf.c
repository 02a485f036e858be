// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Timers. One of a socket is for the socket; one that a sleeping process waits for, for that
 * process; any other, for whoever started it. Looking for the timers that are due is the kernel's
 * own work.
 */
#include "sources/timer.bpf.h"

#include "core/compat.bpf.h"
#include "core/hook.bpf.h"
#include "core/run.bpf.h"
#include "net/cpu_account.bpf.h"
#include "process/served.bpf.h"
#include "who/party.bpf.h"
#include "who/socket.bpf.h"

#include <bpf/bpf_tracing.h>

/* A timer on a sleeper's stack. */
static __noinline __u64 pk_sleeper(struct pk_cpu *c, __u64 timer)
{
	if (!c || !bpf_core_type_exists(struct process_timer))
		return 0;
	return pk_label_of_waiter(timer,
				  (__u64)BPF_CORE_READ((struct process_timer *)timer, task));
}

__u64 pk_timer_party(struct pk_cpu *c, __u32 *basis)
{
	__u64 function;

	if (!c || !basis || !c->timer.expiring)
		return 0;
	function = pk_timer_function(c->timer.expiring);
	*basis = PK_BASIS_OWNER;
	if (function && function == addresses.known[PK_KNOWN_PROCESS_TIMEOUT])
		return pk_sleeper(c, c->timer.expiring);
	*basis = PK_BASIS_QUEUER;
	return pk_timer_noted(c->timer.expiring, c->timer.expires);
}

int pk_timer_sample(struct pk_cpu *c, struct pk_place *place, struct pk_charge *charge)
{
	__u32 basis = PK_BASIS_QUEUER;
	__u64 party;

	if (!c || !place || !charge)
		return 0;
	if (!(place->at & PK_AT_CALL_TIMER))
		return pk_charge_label(c, charge, PK_KERNEL, PK_BASIS_OWN);
	charge->reason = pk_had_pause() ? PK_UNWATCHED : PK_UNTRACKED;
	party = pk_timer_party(c, &basis);
	return pk_charge_party(c, charge, party, basis);
}

/* Sockets' timers and those of sleepers tell by themselves whose they are, and are the most. */
SEC("?tp_btf/timer_start")
int BPF_PROG(pk_timer_start, struct timer_list *timer)
{
	struct pk_cpu *c = pk_hook(PK_HOOKS_WORK);
	__u64 function = (__u64)timer->function;
	__u64 party;

	if (function == addresses.known[PK_KNOWN_PROCESS_TIMEOUT] ||
	    function == addresses.timer_function[PK_TIMER_RETRANSMIT] ||
	    function == addresses.timer_function[PK_TIMER_DELACK] ||
	    function == addresses.timer_function[PK_TIMER_KEEPALIVE])
		return 0;
	party = pk_party_now(c);
	/* One that starts itself anew, when it expires, stays whose it was. */
	if (!party && c->timer.expiring == (__u64)timer)
		party = pk_timer_noted(pk_plain(c, timer), c->timer.expires);
	pk_note_timer(pk_plain(c, timer), timer->expires, party);
	return 0;
}

/* A socket's timer, and an account waits that it may settle. */
static __noinline int pk_timer_slow(struct pk_cpu *c, __u64 socket, __u8 vec)
{
	if (!c || !socket || !pk_enter(c))
		return 0;
	if (!pk_same_run(c)) {
		pk_net_close(c);
	} else {
		if (c->wait.charge.vec == PK_VEC_NONE)
			c->wait.charge.vec = vec;
		pk_net_settle(c, socket);
	}
	pk_leave(c);
	return 0;
}

/* What a timer can settle: what came before it, or before the vector was known. */
static __always_inline bool pk_waits_for_timer(struct pk_cpu *c)
{
	return c->hot.armed == PK_PHASE_ENTRY || c->hot.armed == PK_PHASE_TRANSMIT;
}

SEC("?tp_btf/timer_expire_entry")
int BPF_PROG(pk_timer_expire, struct timer_list *timer)
{
	struct pk_cpu *c = pk_hook(PK_HOOKS_WORK);

	c->timer.expiring = (__u64)timer;
	c->timer.expires = timer->expires;
	if (likely(!pk_waits_for_timer(c)))
		return 0;
	return pk_timer_slow(c, pk_socket_expiring(c, PK_VEC_TIMER), PK_VEC_TIMER);
}

SEC("?tp_btf/hrtimer_expire_entry")
int BPF_PROG(pk_hrtimer_expire, struct hrtimer *timer)
{
	struct pk_cpu *c = pk_hook(PK_HOOKS_WORK);

	if (!timer->is_soft)
		return 0;
	c->hot.hrtimer = (__u64)timer;
	c->timer.hrtimer_expires = timer->_softexpires;
	if (likely(!pk_waits_for_timer(c)))
		return 0;
	return pk_timer_slow(c, pk_socket_expiring(c, PK_VEC_HRTIMER), PK_VEC_HRTIMER);
}
