// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* For whom softirqs wake processes of other CPUs; see waking.bpf.h. */
#include "sources/waking.bpf.h"

#include "sources/timer.bpf.h"
#include "who/party.bpf.h"

int pk_vote_for_waking(struct pk_cpu *c, struct pk_place *place, struct pk_charge *charge)
{
	__u64 party = PK_KERNEL;
	__u32 basis = 0;

	if (!c || !place || !charge)
		return 0;
	switch (place->vec) {
	case PK_VEC_NET_RX:
	case PK_VEC_NET_TX:
		party = pk_network_object();
		break;
	case PK_VEC_BLOCK:
	case PK_VEC_IRQ_POLL:
		party = pk_disk_object();
		break;
	case PK_VEC_TIMER:
		party = place->at & PK_AT_CALL_TIMER ? pk_timer_party(c, &basis) : PK_KERNEL;
		break;
	case PK_VEC_HRTIMER:
	case PK_VEC_TASKLET:
	case PK_VEC_HI:
		return 0;
	}
	return pk_vote(c, pk_waking_object(), party, charge->ns, PK_VOTE_FADES);
}
