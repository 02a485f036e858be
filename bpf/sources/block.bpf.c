// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Disks: a request is for whoever submitted the bio that it began with. Bios are noted where they
 * are submitted, and looked up where requests are completed. A request without a bio, a flush of
 * the disk's cache, is for whoever had it sent to the disk.
 *
 * These hooks are off while pkprof does not watch. Memory and places on disks are used again, so a note
 * holds for its own window only: the window is part of its number.
 */
#include "sources/block.bpf.h"

#include "clients/asks.bpf.h"
#include "core/hook.bpf.h"
#include "sources/interrupt.bpf.h"
#include "who/debox_charge.bpf.h"

#include <bpf/bpf_tracing.h>

int pk_block_sample(struct pk_cpu *c, struct pk_place *place, struct pk_charge *charge)
{
	if (!c || !place || !charge)
		return 0;
	charge->reason = PK_EXPIRED;
	/* Its hook ran where its end begins. */
	if (place->at & PK_AT_COMPLETE)
		return pk_charge_party(c, charge, c->disk.done, PK_BASIS_SUBMITTER);
	if (c->hot.busy) /* it has interrupted a slow path, which is at work on the CPU's account */
		return pk_charge_owner(c, charge, pk_disk_object(), PK_BASIS_VOTED);
	c->wait.object = pk_done_in_run(c); /* after the last request, if no other comes */
	c->wait.guess = 1;
	c->wait.waits = 0;
	pk_arm(c, charge, pk_softirq_runs(c, charge->vec), PK_PHASE_REQUEST);
	return 0;
}

/* Of a bio, or of a request that has none. */
static __always_inline __u64 pk_bio_object(__u64 bio)
{
	return pk_object_of(PK_SALT_BIO, bio, window);
}

/* A request for a loop device is for the file behind it, too. */
static __noinline int pk_vote_for_loop(struct pk_cpu *c, __u64 devicep, __u64 bytes, __u64 party)
{
	struct loop_device *device = (void *)devicep;
	__u64 file;

	if (!c || !bpf_core_type_exists(struct loop_device))
		return 0;
	file = (__u64)BPF_CORE_READ(device, lo_backing_file);
	if (c->disk.loop != devicep || c->disk.loop_file != file) {
		c->disk.loop_file_object = pk_inode_object(
			(__u64)BPF_CORE_READ((struct file *)file, f_inode));
		c->disk.loop_object = pk_loop_object(devicep);
		c->disk.loop_file = file;
		c->disk.loop = devicep;
	}
	if (bytes < 4096)
		bytes = 4096; /* a flush, a discard */
	pk_vote(c, c->disk.loop_object, party, bytes, PK_VOTE_FADES);
	pk_vote(c, c->disk.loop_file_object, party, bytes, PK_VOTE_ADDS);
	return 0;
}

/* A place on a disk, which a bio is for; by the 32 bits that block_split says of it. */
static __always_inline __u64 pk_place_object(__u32 dev, __u32 sector)
{
	return pk_object_of(PK_SALT_PLACE, (__u64)dev << 32 | sector, window);
}

/* Where nobody is known that is noted, too, or it would be taken for given in a pause. */
static __always_inline void pk_note_giver(__u64 object, __u64 party)
{
	pk_note_in(PK_NOTES_OF_DISKS, object, party ? party : PK_NOBODY);
}

/* A disk that is made of others sends bios on, some from threads of its own: see pk_block_bio_remap. */
static __always_inline void pk_note_place(struct gendisk *disk, __u32 sector, __u64 party)
{
	if (disk->fops->submit_bio)
		pk_note_giver(pk_place_object(disk->major << 20 | disk->first_minor, sector), party);
}

/* The party of what was given; where that was in a pause, PK_UNWATCHED_PARTY. */
static __always_inline __u64 pk_giver(__u64 object)
{
	return pk_disk_party(pk_noted_in(PK_NOTES_OF_DISKS, object));
}

/* That a thread is about to send this bio on. */
static __always_inline __u64 pk_remapping(__u64 bio)
{
	return bio ^ bpf_get_current_task() ^ window;
}

/*
 * A bio that is sent on to another device passes here again: whoever does that is at work for the
 * same party, or pk_block_bio_remap has said for which.
 */
SEC("?tp_btf/block_bio_queue")
int BPF_PROG(pk_block_bio_queue, struct bio *bio)
{
	struct pk_cpu *c = pk_hook(PK_HOOKS_DISKS);
	__u64 plain = pk_plain(c, bio);
	bool remapped = c->disk.remapped_bio == pk_remapping(plain);
	__u64 party = remapped ? c->disk.remapped_party : pk_party_asking(c);
	struct gendisk *disk;

	c->disk.remapped_bio = 0;
	if (!window)
		return 0;
	pk_note_giver(pk_bio_object(plain), party);
	disk = bio->bi_bdev->bd_disk;
	if (disk->major == LOOP_MAJOR)
		pk_vote_for_loop(c, (__u64)disk->private_data, bio->bi_iter.bi_size, party);
	else
		pk_note_place(disk, bio->bi_iter.bi_sector, party);
	return 0;
}

/*
 * A bio is split: the first part may be a new one, or the rest goes to the disk later as if it had
 * come from the start, without passing pk_block_bio_queue. `sector`: where the rest begins.
 */
SEC("?tp_btf/block_split")
int BPF_PROG(pk_block_split, struct bio *bio, unsigned int sector)
{
	struct pk_cpu *c = pk_hook(PK_HOOKS_DISKS);
	__u64 plain = pk_plain(c, bio);
	__u64 party = pk_party_asking(c);

	if (!window)
		return 0;
	pk_note_giver(pk_bio_object(plain), party);
	pk_note_place(bio->bi_bdev->bd_disk, sector, party);
	return 0;
}

/*
 * A bio is sent on to another disk; `dev` and `sector` are what it was for. A thread that sends on
 * what many gave it (dm-crypt's, md's) is at work for whoever wanted that place, until the next.
 */
SEC("?tp_btf/block_bio_remap")
int BPF_PROG(pk_block_bio_remap, struct bio *bio, unsigned int dev, unsigned long sector)
{
	struct pk_cpu *c = pk_hook(PK_HOOKS_DISKS);
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 plain = pk_plain(c, bio);
	__u64 party;

	if (!(task->flags & PF_KTHREAD) || !window)
		return 0;
	party = pk_giver(pk_place_object(dev, sector));
	/* Pieces of work have their own parties: those who queued them. */
	if (!(task->flags & PF_WQ_WORKER)) {
		pk_note(pk_remapping_object(bpf_get_current_task(), 0), PK_KERNEL);
		pk_note(pk_remapping_object(bpf_get_current_task(), window),
			party ? party : PK_NOBODY);
	}
	if (!party)
		return 0;
	c->disk.remapped_bio = pk_remapping(plain);
	c->disk.remapped_party = party;
	return 0;
}

SEC("?tp_btf/block_rq_issue")
int BPF_PROG(pk_block_rq_issue, struct request *rq)
{
	struct pk_cpu *c = pk_hook(PK_HOOKS_DISKS);

	if (!rq->bio && window)
		pk_note_giver(pk_bio_object(pk_plain(c, rq)), pk_party_asking(c));
	return 0;
}

/* Taken, not measured: the end of a request is as dear as giving back 32 pages. */
static __always_inline __u64 pk_cost_of_end(unsigned int bytes)
{
	return 32 + bytes / 4096;
}

SEC("?tp_btf/block_rq_complete")
int BPF_PROG(pk_block_rq_complete, struct request *rq, int error, unsigned int bytes)
{
	struct pk_cpu *c = pk_hook(PK_HOOKS_DISKS);
	__u64 bio = pk_plain(c, rq->bio);

	c->disk.done = pk_giver(pk_bio_object(bio ? bio : pk_plain(c, rq)));
	c->disk.done_in = pk_interrupts(c);
	if (config.debox)
		pk_tell_done(c->disk.done, c->disk.done_in);
	pk_vote(c, pk_disk_object(), c->disk.done, pk_cost_of_end(bytes), PK_VOTE_FADES);
	if (c->irq.since)
		pk_interrupt_completed(c, c->disk.done);
	if (likely(c->hot.armed != PK_PHASE_REQUEST && c->hot.armed != PK_PHASE_ENTRY))
		return 0;
	/* In a hard interrupt in the middle of that softirq, it is not what was waited for. */
	if (c->hot.busy || pk_preempt_bits(c, HARDIRQ_MASK) == 1)
		return 0;
	c->hot.armed = PK_PHASE_NONE;
	if (pk_same_run(c))
		return pk_charge_party(c, &c->wait.charge, c->disk.done, PK_BASIS_SUBMITTER);
	return pk_charge_party(c, &c->wait.charge, c->wait.object, PK_BASIS_PROVISIONAL);
}
