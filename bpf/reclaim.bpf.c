// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Memory: kswapd and kcompactd work for those whose allocations found too little, in proportion
 * to how often they did; the more recent, the more it counts.
 */
#include "hook.bpf.h"
#include "party.bpf.h"
#include "served.bpf.h"

#include <bpf/bpf_tracing.h>

SEC("?tp_btf/mm_vmscan_wakeup_kswapd")
int BPF_PROG(pk_kswapd_woken, int node)
{
	struct pk_cpu *c = pk_rare_hook();

	return pk_vote(c, pk_object_of(PK_SALT_KSWAPD, node, 0), pk_party_now(c), 1, PK_VOTE_FADES);
}

SEC("?tp_btf/mm_compaction_wakeup_kcompactd")
int BPF_PROG(pk_kcompactd_woken, int node)
{
	struct pk_cpu *c = pk_rare_hook();

	return pk_vote(c, pk_object_of(PK_SALT_KCOMPACTD, node, 0), pk_party_now(c), 1,
		       PK_VOTE_FADES);
}

/* khugepaged works for one process's memory at a time, which names its owner. */
SEC("?tp_btf/mm_khugepaged_scan_pmd")
int BPF_PROG(pk_khugepaged_scan, struct mm_struct *mm)
{
	__u64 party = 0;

	pk_rare_hook();
	if (bpf_core_field_exists(struct mm_struct, owner))
		party = pk_process_of_task((__u64)BPF_CORE_READ(mm, owner));
	pk_note(pk_context_object(bpf_get_current_task()), party);
	return 0;
}
