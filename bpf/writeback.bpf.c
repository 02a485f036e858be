// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The page cache: writing back is for those who made the pages dirty.
 *
 * A clean file that becomes dirty is that process's. Where several write to one, each page is a
 * vote. That hook runs often, so a budget may turn it off for a while; the other one stays.
 */
#include "compat.bpf.h"
#include "hook.bpf.h"
#include "party.bpf.h"
#include "served.bpf.h"

#include <bpf/bpf_tracing.h>

SEC("?tp_btf/writeback_dirty_inode_enqueue")
int BPF_PROG(pk_inode_dirty, struct inode *inode)
{
	struct pk_cpu *c = pk_rare_hook();

	return pk_vote(c, pk_inode_object(pk_plain(c, inode)), pk_party_now(c), 1, PK_VOTE_BEGINS);
}

static __noinline int pk_dirty_slow(struct pk_cpu *c, __u64 mappingp, __u64 pages, __u64 dirtier)
{
	struct address_space *mapping = (void *)mappingp;
	__u64 object;

	if (!c)
		return 0;
	object = pk_inode_object((__u64)BPF_CORE_READ(mapping, host));
	c->dirtied = mappingp;
	c->dirtier = dirtier;
	c->dirtied_object = object;
	return pk_vote(c, object, pk_party_now(c), pages, PK_VOTE_ADDS);
}

/*
 * A page becomes dirty. Mostly it is the same process and the same file as a moment ago. Of what
 * kernel threads make dirty, requests to loop devices tell more (pk_vote_for_loop).
 */
SEC("?tp_btf/writeback_dirty_folio")
int BPF_PROG(pk_folio_dirty, struct folio *folio, struct address_space *mapping)
{
	struct pk_cpu *c = pk_hook();
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 plain = pk_plain(c, mapping);
	__u64 pages, label;

	if (task->flags & PF_KTHREAD)
		return 0;
	label = pk_label_of(task);
	pages = pk_folio_pages(pk_plain(c, folio));
	if (likely(c->dirtied == plain && c->dirtier == label &&
		   c->vote_key[0].object == c->dirtied_object && c->vote[0].weight)) {
		c->vote[0].weight += pages;
		return 0;
	}
	return pk_dirty_slow(c, plain, pages, label);
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
