/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Events (the paper's svdevent): work on account until it is known for whom it was.
 *
 * An object in flight has a number (object.bpf.h). Charges wait under that number in a slot,
 * until a process takes the object. The four verbs are the paper's (its Table A.1):
 *
 *   pk_hash       puts a charge on the account of an object
 *   pk_pass       moves an account to the object's successor
 *   pk_merge      joins an account to another one
 *   pk_attribute  charges all of an account to a process
 *
 * A process that takes an object tests one 32-bit tag to see whether anything is on its account:
 * that is all that a consumer's hook costs when nothing is.
 *
 * Where a slot is taken by another object, is full, or is held by another CPU, the charge goes to
 * the tables under the object's number instead ("spilled"), and user space finds the object's
 * owner. Nothing is lost then, but the consumer's call path is.
 */
#ifndef PKPROF_ACCOUNT_BPF_H
#define PKPROF_ACCOUNT_BPF_H

#include "count.bpf.h"
#include "state.bpf.h"

static __always_inline __u32 pk_slot_tag(__u64 object)
{
	return (__u32)(object >> 32) | 1;
}

/* Is there something on this object's account? */
static __always_inline bool pk_on_account(__u64 object)
{
	return slot_tags[object & (PK_SLOTS - 1)] == pk_slot_tag(object);
}

static __always_inline bool pk_lock_slot(struct pk_slot *slot)
{
	return __sync_val_compare_and_swap(&slot->lock, 0, 1) == 0;
}

static __always_inline void pk_unlock_slot(struct pk_slot *slot)
{
	__sync_val_compare_and_swap(&slot->lock, 1, 0);
}

/* Counts a charge for someone at once. */
static __always_inline void pk_charge_label(struct pk_cpu *c, const struct pk_charge *charge,
					    __u64 label, __u8 basis)
{
	struct pk_key key = {
		.ran_on = charge->ran_on,
		.served = label,
		.kstack = charge->kstack,
		.syscall = PK_NO_SYSCALL,
		.kind = charge->kind,
		.vec = charge->vec,
		.basis = basis,
		.served_kind = PK_SERVED_LABEL,
	};

	pk_count(c, &key, charge->ns, charge->samples);
}

static __always_inline void pk_charge_nobody(struct pk_cpu *c, const struct pk_charge *charge,
					     __u8 reason)
{
	pk_charge_label(c, charge, PK_UNCLAIMED + reason, PK_BASIS_PROVISIONAL);
}

/* Counts a charge for the object's owner, whom user space will look for. */
static __always_inline void pk_charge_owner(struct pk_cpu *c, const struct pk_charge *charge,
					    __u64 object, __u8 basis)
{
	struct pk_key key = {
		.ran_on = charge->ran_on,
		.served = object,
		.kstack = charge->kstack,
		.syscall = PK_NO_SYSCALL,
		.kind = charge->kind,
		.vec = charge->vec,
		.basis = basis,
		.served_kind = PK_SERVED_OBJECT,
		.reason = charge->reason,
	};

	pk_count(c, &key, charge->ns, charge->samples);
}

static __always_inline void pk_spill(struct pk_cpu *c, const struct pk_charge *charge,
				     __u64 object)
{
	c->stats.spilled++;
	pk_charge_owner(c, charge, object, PK_BASIS_OWNER);
}

/* Empties a slot into the tables. The slot is locked. */
static __noinline int pk_spill_slot(struct pk_cpu *c, struct pk_slot *slot)
{
	if (!c || !slot)
		return 0;
	for (__u32 i = 0; i < PK_SLOT_CHARGES; i++) {
		if (i >= slot->used)
			break;
		pk_spill(c, &slot->charge[i], slot->object);
	}
	slot->used = 0;
	return 0;
}

static __noinline int pk_hash(struct pk_cpu *c, __u64 object, const struct pk_charge *charge)
{
	__u32 index = object & (PK_SLOTS - 1);
	struct pk_slot *slot = &slots[index];
	__u32 used;

	if (!c || !charge)
		return 0;
	if (!pk_lock_slot(slot)) {
		pk_spill(c, charge, object);
		return 0;
	}
	if (slot->used && slot->object != object)
		pk_spill_slot(c, slot);
	slot->object = object;
	used = slot->used;
	if (used >= PK_SLOT_CHARGES) {
		/* The oldest make room: their consumer is late. */
		pk_spill_slot(c, slot);
		used = 0;
	}
	/* Same stack, same place: one charge. */
	if (used && used <= PK_SLOT_CHARGES) {
		struct pk_charge *last = &slot->charge[(used - 1) & 15];

		if (used - 1 < PK_SLOT_CHARGES && last->kstack == charge->kstack &&
		    last->ran_on == charge->ran_on && last->vec == charge->vec &&
		    last->reason == charge->reason) {
			last->ns += charge->ns;
			last->samples += charge->samples;
			slot_tags[index] = pk_slot_tag(object);
			pk_unlock_slot(slot);
			return 0;
		}
	}
	if (used < PK_SLOT_CHARGES) {
		slot->charge[used] = *charge;
		slot->used = used + 1;
	}
	slot_tags[index] = pk_slot_tag(object);
	pk_unlock_slot(slot);
	return 0;
}

/*
 * Charges the account of an object to a process. `key` carries the label, the basis and, where
 * the process was seen to take the object, its system call and user stack.
 */
static __noinline int pk_attribute(struct pk_cpu *c, __u64 object, const struct pk_key *who)
{
	__u32 index = object & (PK_SLOTS - 1);
	struct pk_slot *slot = &slots[index];
	struct pk_key key;

	if (!c || !who)
		return 0;
	if (!pk_lock_slot(slot))
		return 0; /* it stays on account: the next taker's */
	if (slot->object == object) {
		key = *who;
		for (__u32 i = 0; i < PK_SLOT_CHARGES; i++) {
			if (i >= slot->used)
				break;
			key.ran_on = slot->charge[i].ran_on;
			key.kstack = slot->charge[i].kstack;
			key.kind = slot->charge[i].kind;
			key.vec = slot->charge[i].vec;
			pk_count(c, &key, slot->charge[i].ns, slot->charge[i].samples);
		}
		slot->used = 0;
		slot_tags[index] = 0;
		c->stats.consumed++;
	}
	pk_unlock_slot(slot);
	return 0;
}

#endif
