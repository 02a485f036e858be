// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Memory: kswapd and kcompactd work for those whose allocations found too little, in proportion
 * to how often they did; the more recent, the more it counts. The reaper of the killed works for
 * whoever found nothing at all.
 */
#include "core/hook.bpf.h"
#include "process/served.bpf.h"
#include "who/party.bpf.h"

#include <bpf/bpf_tracing.h>

SEC("?tp_btf/mm_vmscan_wakeup_kswapd")
int BPF_PROG(pk_kswapd_woken, int node)
{
	struct pk_cpu *c = pk_hook(PK_HOOKS_LASTING);

	return pk_vote(c, pk_object_of(PK_SALT_KSWAPD, node, 0), pk_party_now(c), 1, PK_VOTE_FADES);
}

SEC("?tp_btf/mm_compaction_wakeup_kcompactd")
int BPF_PROG(pk_kcompactd_woken, int node)
{
	struct pk_cpu *c = pk_hook(PK_HOOKS_LASTING);

	return pk_vote(c, pk_object_of(PK_SALT_KCOMPACTD, node, 0), pk_party_now(c), 1,
		       PK_VOTE_FADES);
}

/* In the context of the allocation that could not be served. */
SEC("?raw_tp/mark_victim")
int pk_oom_victim(struct bpf_raw_tracepoint_args *ctx)
{
	struct pk_cpu *c = pk_hook(PK_HOOKS_LASTING);

	pk_note(pk_reaper_object(), pk_party_now(c));
	return 0;
}

/* khugepaged works for one process's memory at a time, and names it at the end of each part. */
SEC("?raw_tp")
int pk_khugepaged_scan(struct bpf_raw_tracepoint_args *ctx)
{
	struct mm_struct *mm = (void *)ctx->args[0];
	struct pk_cpu *c = pk_hook(PK_HOOKS_LASTING);

	if (!c || !huge_scan_sampled)
		return 0;
	if (bpf_core_field_exists(struct mm_struct, owner))
		pk_vote(c, pk_huge_object(), pk_process_of_task((__u64)BPF_CORE_READ(mm, owner)), 1,
			PK_VOTE_ADDS);
	huge_scan_sampled = 0;
	huge_scan++;
	return 0;
}
