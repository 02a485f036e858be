// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The page cache: writing back is for those who made the pages dirty.
 *
 * A clean file that becomes dirty is that process's. Where several write to one, the sampler's
 * own samples of them in the system calls that write are their votes (pk_vote_for_written), and
 * no hook runs for each page.
 */
#include "hook.bpf.h"
#include "party.bpf.h"

#include <bpf/bpf_tracing.h>

/* The first one's vote: little beside a sample's, which weighs the time it stands for. */
enum { PK_FIRST_VOTE = 1000 };

SEC("?tp_btf/writeback_dirty_inode_enqueue")
int BPF_PROG(pk_inode_dirty, struct inode *inode)
{
	struct pk_cpu *c = pk_rare_hook();

	return pk_vote(c, pk_inode_object(pk_plain(c, inode)), pk_party_now(c), PK_FIRST_VOTE, PK_VOTE_BEGINS);
}

/* A kernel thread begins with a file, and is at it until it begins with another. */
SEC("?tp_btf/writeback_single_inode_start")
int BPF_PROG(pk_inode_written, struct inode *inode)
{
	struct pk_cpu *c = pk_rare_hook();
	struct task_struct *task = bpf_get_current_task_btf();

	if (task->flags & PF_KTHREAD)
		pk_note(pk_context_object(pk_plain(c, task)), pk_inode_object(pk_plain(c, inode)));
	return 0;
}

/* A process takes part in a transaction of a file system's journal. */
SEC("?tp_btf/jbd2_handle_start")
int BPF_PROG(pk_journal_handle, unsigned int dev, unsigned int tid)
{
	struct pk_cpu *c = pk_rare_hook();

	return pk_vote(c, pk_object_of(PK_SALT_JOURNAL, dev, tid), pk_party_now(c), 1, PK_VOTE_ADDS);
}
