/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * For whom is this context at work? A party is a label or, with its upper bit set, the number of
 * an object whose own parties are asked in turn: a disk request is for the file whose pages it
 * writes, the file for the process that made them dirty.
 *
 * Kernel threads work on what others gave them. Who that was is known when the work is given, and
 * needed when it is done: hence notes (pk_note), and for what has several givers, votes (pk_vote),
 * by which user space splits it.
 */
#ifndef PKPROF_PARTY_BPF_H
#define PKPROF_PARTY_BPF_H

#include "core/state.bpf.h"
#include "who/account.bpf.h"

/* Seeds that keep the kinds of objects apart. */
enum {
	PK_SALT_WORK = 0x776b,
	PK_SALT_CONTEXT = 0x6378,
	PK_SALT_INODE = 0x696e,
	PK_SALT_BIO = 0x6269,
	PK_SALT_PLACE = 0x706c,
	PK_SALT_SENT_ON = 0x736f,
	PK_SALT_LOOP = 0x6c6f,
	PK_SALT_JOURNAL = 0x6a62,
	PK_SALT_KSWAPD = 0x6b73,
	PK_SALT_KCOMPACTD = 0x6b63,
	PK_SALT_HUGE = 0x6875,
	PK_SALT_REAPER = 0x6f6f,
	PK_SALT_RCU = 0x7263,
	PK_SALT_TIMER = 0x746d,
	PK_SALT_NETWORK = 0x6e65,
	PK_SALT_SENDING = 0x7365,
	PK_SALT_DISK = 0x6469,
	PK_SALT_CALL = 0x6361,
	PK_SALT_RESCHEDULE = 0x7265,
	PK_SALT_WAKING = 0x7761,
};

/* The party of work that was given while pkprof was not watching. */
enum { PK_UNWATCHED_PARTY = PK_UNCLAIMED + PK_UNWATCHED };

/* Noted of a disk request where nobody is known that it is for. */
enum { PK_NOBODY = PK_UNCLAIMED + PK_UNTRACKED };

/* Hooks were off before this window; the first one is not after a pause. */
static __always_inline bool pk_had_pause(void)
{
	return window != 1;
}

/* What was noted of a request in this window, if anything was, as a party. */
static __always_inline __u64 pk_disk_party(__u64 noted)
{
	if (!noted && pk_had_pause())
		return PK_UNWATCHED_PARTY;
	return noted == PK_NOBODY ? 0 : noted;
}

static __always_inline __u64 pk_object_of(__u32 salt, __u64 a, __u64 b)
{
	return mix(mix(config.seed ^ salt, a), b) | PK_OBJECT;
}

/*
 * The same from a function of its own, for what is not in a hurry: a verifier goes through it once.
 * It takes numbers only, and no typed pointers for such.
 */
__u64 pk_object_by_call(__u32 salt, __u64 a, __u64 b);

static __always_inline __u64 pk_work_object(__u64 work, __u64 function)
{
	return pk_object_of(PK_SALT_WORK, work, function);
}

/* A timer that was started: one that someone else started anew, unseen, expires at another time. */
static __always_inline __u64 pk_timer_object(__u64 timer, __u64 expires)
{
	return pk_object_of(PK_SALT_TIMER, timer, expires);
}

static __always_inline __u64 pk_inode_object(__u64 inode)
{
	return pk_object_of(PK_SALT_INODE, inode, BPF_CORE_READ((struct inode *)inode, i_ino));
}

/*
 * Bios that a thread sends on to other disks are for those who wanted their places: whose the last
 * one was, in this window; in window 0 it is noted that the thread does so.
 */
static __always_inline __u64 pk_remapping_object(__u64 taskp, __u32 in_window)
{
	__u64 pid = BPF_CORE_READ((struct task_struct *)taskp, pid);

	return pk_object_by_call(PK_SALT_SENT_ON, taskp, pid << 32 | in_window);
}

/* A loop device: what its threads do is for those whose requests it gets. */
static __always_inline __u64 pk_loop_object(__u64 device)
{
	return pk_object_of(PK_SALT_LOOP, device, 0);
}

/*
 * What RCU puts off on a CPU is for whoever uses the kernel there. A kworker that may run on any
 * says not where it was put off: that is for all of them.
 */
enum { PK_ALL_CPUS = ~0U };

static __always_inline __u64 pk_rcu_object_of(__u32 cpu)
{
	return pk_object_of(PK_SALT_RCU, cpu, 0);
}

static __always_inline __u64 pk_rcu_object(void)
{
	return pk_rcu_object_of(bpf_get_smp_processor_id());
}

/* The one thread that frees the memory of killed processes. */
static __always_inline __u64 pk_reaper_object(void)
{
	return pk_object_by_call(PK_SALT_REAPER, 0, 0);
}

/* The number of khugepaged's scan of a part of some process's memory; whether a sample met it. */
extern __u64 huge_scan;
extern __u64 huge_scan_sampled;

static __always_inline __u64 pk_huge_object(void)
{
	return pk_object_by_call(PK_SALT_HUGE, huge_scan, 0);
}

/* What a CPU does for the network before it sees a packet is for those whose packets it handles. */
static __always_inline __u64 pk_network_object(void)
{
	return pk_object_of(PK_SALT_NETWORK, bpf_get_smp_processor_id(), 0);
}

/* For whom this CPU's softirqs wake others. */
static __always_inline __u64 pk_waking_object(void)
{
	return pk_object_of(PK_SALT_WAKING, bpf_get_smp_processor_id(), 0);
}

/* The same of sending that was put off. */
static __always_inline __u64 pk_sending_object(void)
{
	return pk_object_of(PK_SALT_SENDING, bpf_get_smp_processor_id(), 0);
}

/* The same for disks, before it sees a request. */
static __always_inline __u64 pk_disk_object(void)
{
	return pk_object_of(PK_SALT_DISK, bpf_get_smp_processor_id(), 0);
}

/*
 * Notes lie in tables by the low bits of their object's number. A newer one in the same place
 * displaces an older. What two CPUs write there at the same time the check finds out. What is
 * displaced is not known any more, and its work unclaimed. So what comes in thousands a second has
 * tables of its own: a piece of work that is queued again and again, or a thread, would lose its
 * place to them every time.
 */
enum pk_notes { PK_NOTES_OF_WORK, PK_NOTES_OF_TIMERS, PK_NOTES_OF_DISKS };

static __always_inline struct pk_note *pk_note_at(enum pk_notes table, __u64 object)
{
	return &notes[table * PK_NOTES + (object & (PK_NOTES - 1))];
}

static __always_inline void pk_note_in(enum pk_notes table, __u64 object, __u64 party)
{
	struct pk_note *note = pk_note_at(table, object);

	note->party = party;
	note->check = object ^ party;
}

static __always_inline __u64 pk_noted_in(enum pk_notes table, __u64 object)
{
	struct pk_note *note = pk_note_at(table, object);
	__u64 check = note->check;
	__u64 party = note->party;

	return (check ^ party) == object ? party : 0;
}

static __always_inline void pk_note(__u64 object, __u64 party)
{
	pk_note_in(PK_NOTES_OF_WORK, object, party);
}

static __always_inline __u64 pk_noted(__u64 object)
{
	return pk_noted_in(PK_NOTES_OF_WORK, object);
}

static __always_inline void pk_note_timer(__u64 timer, __u64 expires, __u64 party)
{
	pk_note_in(PK_NOTES_OF_TIMERS, pk_timer_object(timer, expires), party);
}

static __always_inline __u64 pk_timer_noted(__u64 timer, __u64 expires)
{
	return pk_noted_in(PK_NOTES_OF_TIMERS, pk_timer_object(timer, expires));
}

/*
 * Whether older votes count less, or not at all from this one on; or whether it counts only where
 * nothing else is known in the end.
 */
enum pk_vote_kind { PK_VOTE_ADDS, PK_VOTE_FADES, PK_VOTE_BEGINS, PK_VOTE_FALLBACK };

/*
 * Adds to a party's part in an object. Votes for the same are put together: a CPU keeps a few, until
 * others take their place or user space takes the tables.
 */
int pk_vote(struct pk_cpu *c, __u64 object, __u64 party, __u64 weight, __u32 kind);

/* The place where such votes are kept. */
static __always_inline __u32 pk_pending_at(__u32 level, __u64 object, __u64 party)
{
	__u32 slot = (object ^ party * 0x9e3779b97f4a7c15ULL) >> 61;

	__u64 at = level * PK_PENDING + slot;

	forget_value(at); /* or the compiler, knowing its limit, leaves out the mask, and 6.1 refuses */
	return at & (PK_LEVELS * PK_PENDING - 1);
}

/* What was put together goes into the table of votes. */
int pk_cast_votes(struct pk_cpu *c);

/*
 * What a kernel thread is at now: the thread with its piece of work. A part of it may have a party
 * of its own, which is noted under this number: the file being written, for one.
 */
__u64 pk_context_object(__u64 task);

/* The function of the piece of work that a kernel thread is at; 0: it is at none. */
__u64 pk_thread_work(__u64 task);

/* Whose callbacks of RCU a kernel thread runs: those put off on this CPU, or on the one it is for. */
__u64 pk_callbacks_object(__u64 task);

/* Whom a kernel thread works for, and why so; 0 if that is not known. */
__u64 pk_thread_party(__u64 task, __u32 *basis);

/* Whom the current context works for; 0 if that is not known. */
__u64 pk_party_now(struct pk_cpu *c);

/* Counts a charge for a party at once; for nobody, if there is none. */
int pk_charge_party(struct pk_cpu *c, struct pk_charge *charge, __u64 party, __u32 basis);

#endif
