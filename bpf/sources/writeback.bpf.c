// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The page cache: writing back is for those who made the pages dirty.
 *
 * A clean file that becomes dirty is that process's. Where several write to one, each page is a
 * vote. That hook runs often, and is off while pkprof does not watch; the other one stays on.
 */
#include "core/compat.bpf.h"
#include "core/hook.bpf.h"
#include "process/served.bpf.h"
#include "who/party.bpf.h"

#include <bpf/bpf_tracing.h>

SEC("?tp_btf/writeback_dirty_inode_enqueue")
int BPF_PROG(pk_inode_dirty, struct inode *inode)
{
	struct pk_cpu *c = pk_hook(PK_HOOKS_LASTING);

	return pk_vote(c, pk_inode_object(pk_plain(c, inode)), pk_party_now(c), 1, PK_VOTE_BEGINS);
}

static __noinline int pk_dirty_slow(struct pk_cpu *c, __u64 inode, __u64 number, __u64 pages)
{
	if (!c)
		return 0;
	c->disk.dirtier = pk_party_now(c);
	c->disk.dirtied = inode;
	c->disk.dirtied_number = number;
	c->disk.dirtied_object = pk_inode_object(inode);
	return pk_vote(c, c->disk.dirtied_object, c->disk.dirtier, pages, PK_VOTE_ADDS);
}

/*
 * A page becomes dirty. Mostly it is the same process and the same file as a moment ago. Of what
 * kernel threads make dirty, requests to loop devices tell more (pk_vote_for_loop).
 */
SEC("?tp_btf/writeback_dirty_folio")
int BPF_PROG(pk_folio_dirty, struct folio *folio, struct address_space *mapping)
{
	struct pk_cpu *c = pk_hook(PK_HOOKS_WORK);
	struct task_struct *task = bpf_get_current_task_btf();
	struct inode *inode;
	__u64 pages, plain;

	if (!mapping || task->flags & PF_KTHREAD)
		return 0;
	inode = mapping->host;
	pages = pk_folio_pages(pk_plain(c, folio));
	plain = pk_plain(c, inode);
	if (likely(c->disk.dirtied == plain && c->disk.dirtied_number == inode->i_ino &&
		   c->disk.dirtier == pk_label_of(task)))
		return pk_vote(c, c->disk.dirtied_object, c->disk.dirtier, pages, PK_VOTE_ADDS);
	return pk_dirty_slow(c, plain, inode->i_ino, pages);
}

/* A worker begins with a file, and is at it until it begins with another, or the flush is over. */
SEC("?tp_btf/writeback_single_inode_start")
int BPF_PROG(pk_inode_written, struct inode *inode)
{
	struct pk_cpu *c = pk_hook(PK_HOOKS_LASTING);
	struct task_struct *task = bpf_get_current_task_btf();

	if (task->flags & PF_WQ_WORKER)
		pk_note(pk_context_object(pk_plain(c, task)), pk_inode_object(pk_plain(c, inode)));
	return 0;
}

/* What was put together for the last file has gone to the disk, too. */
SEC("?tp_btf/writeback_pages_written")
int BPF_PROG(pk_flush_done)
{
	struct pk_cpu *c = pk_hook(PK_HOOKS_LASTING);
	struct task_struct *task = bpf_get_current_task_btf();

	if (task->flags & PF_WQ_WORKER)
		pk_note(pk_context_object(pk_plain(c, task)), 0);
	return 0;
}

/* A process takes part in a transaction of a file system's journal. */
SEC("?tp_btf/jbd2_handle_start")
int BPF_PROG(pk_journal_handle, unsigned int dev, unsigned int tid)
{
	struct pk_cpu *c = pk_hook(PK_HOOKS_WORK);

	return pk_vote(c, pk_object_of(PK_SALT_JOURNAL, dev, tid), pk_party_now(c), 1, PK_VOTE_ADDS);
}
