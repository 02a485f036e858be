/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Events (the paper's svdevent): work on account until it is known for whom it was.
 *
 * An object in flight has a number (object.bpf.h). Charges wait under that number in a slot,
 * until a process takes the object. The four verbs are the paper's (its Table A.1):
 *
 *   hash       pk_hash       puts a charge on the account of an object
 *   pass       pk_pass       moves an account to the object's successor
 *   merge      both of them  where the object has an account already, the two are joined
 *   attribute  pk_attribute  charges all of an account to a process
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

#include "core/state.bpf.h"
#include "who/count.bpf.h"

static __always_inline __u32 pk_slot_tag(__u64 object)
{
	return (__u32)(object >> 32) | 1;
}

/* Is there something on this object's account? */
static __always_inline bool pk_on_account(__u64 object)
{
	return slot_tags[object & (PK_SLOTS - 1)] == pk_slot_tag(object);
}

/* Counts a charge for someone at once. */
int pk_charge_label(struct pk_cpu *c, struct pk_charge *charge, __u64 label, __u32 basis);

/* Counts a charge for the object's owner, whom user space will look for. */
int pk_charge_owner(struct pk_cpu *c, struct pk_charge *charge, __u64 object, __u32 basis);

static __always_inline int pk_charge_nobody(struct pk_cpu *c, struct pk_charge *charge,
					    __u8 reason)
{
	return pk_charge_label(c, charge, PK_UNCLAIMED + reason, PK_BASIS_PROVISIONAL);
}

/* Puts a charge on the account of an object. */
int pk_hash(struct pk_cpu *c, __u64 object, struct pk_charge *charge);

/* Moves an account to the object's successor, where it joins what is there already. */
int pk_pass(struct pk_cpu *c, __u64 from, __u64 to);

/*
 * Charges the account of an object to a process. `who` carries the label, the basis and, where
 * the process was seen to take the object, its system call and user stack.
 */
int pk_attribute(struct pk_cpu *c, __u64 object, struct pk_key *who);

#endif
