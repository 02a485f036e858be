// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The accounts and the tables behind them; see account.bpf.h and count.bpf.h. */
#include "who/account.bpf.h"

#include "core/run.bpf.h"
#include "who/debox_charge.bpf.h"

static __always_inline bool pk_lock_slot(struct pk_slot *slot)
{
	return __sync_val_compare_and_swap(&slot->lock, 0, 1) == 0;
}

static __always_inline void pk_unlock_slot(struct pk_slot *slot)
{
	__sync_val_compare_and_swap(&slot->lock, 1, 0);
}

/*
 * A new row for a table that is nearly full: the time is kept, the stacks are not. What is no stack
 * but says what the time was for stays.
 */
static __always_inline void pk_shorten(struct pk_cpu *c, struct pk_key *row)
{
	if (row->kind == PK_INTERRUPT || row->kind == PK_MEASURED || row->kind == PK_USAGE ||
	    !(row->kstack | row->ustack))
		return;
	row->kstack = 0;
	if (row->kind != PK_WORK)
		row->ustack = 0;
	c->stats.rows_shortened++;
}

/* Once in each program: the verifier would go through a copy for each of an account's charges. */
__noinline int pk_count(struct pk_cpu *c, struct pk_key *key, __u64 ns, __u32 samples)
{
	struct pk_count *v, fresh = { .ns = ns, .samples = samples };
	struct pk_cpu *me = this_cpu();
	struct pk_key *row = &me->scratch.row[pk_level(me)];
	__u32 zero = 0;
	void *table = bpf_map_lookup_elem(&counts, &zero);
	bool measured;

	if (!c || !key)
		return 0;
	*row = *key;
	if (config.debox)
		pk_tell_debox(row, ns);
	if (table) {
		v = bpf_map_lookup_elem(table, row);
		if (!v && unlikely(rows >= rows_with_stacks)) {
			pk_shorten(c, row);
			v = bpf_map_lookup_elem(table, row);
		}
		if (!v) {
			if (!bpf_map_update_elem(table, row, &fresh, BPF_NOEXIST)) {
				__sync_fetch_and_add(&rows, 1);
				return 0;
			}
			v = bpf_map_lookup_elem(table, row); /* another CPU was first? */
		}
		if (v) {
			__sync_fetch_and_add(&v->ns, ns);
			__sync_fetch_and_add(&v->samples, samples);
			return 0;
		}
	}
	if (row->kind == PK_WAIT || row->kind == PK_USAGE) { /* no CPU time */
		c->stats.usage_lost++;
		return 0;
	}
	/* Where all is measured, samples only say how it is divided. */
	measured = row->kind == PK_MEASURED || row->kind == PK_INTERRUPT || row->kind == PK_STOLEN;
	if (!config.measure || measured)
		c->stats.lost_ns += ns;
	if (!measured)
		c->stats.lost_samples += samples;
	return 0;
}

/* What a charge says of the row that it goes to. */
static __always_inline struct pk_key *pk_key_of(struct pk_cpu *c, struct pk_charge *charge)
{
	struct pk_key *key = pk_fresh_key();

	key->ran_on = charge->ran_on;
	key->kstack = charge->kstack;
	key->kind = charge->kind;
	key->vec = charge->vec;
	if (charge->kind == PK_WORK)
		key->work_function = c->sampler.work_function;
	return key;
}

int pk_charge_label(struct pk_cpu *c, struct pk_charge *charge, __u64 label, __u32 basis)
{
	struct pk_key *key;

	if (!c || !charge)
		return 0;
	key = pk_key_of(c, charge);
	key->served = label;
	key->basis = basis;
	return pk_count(c, key, charge->ns, charge->samples);
}

int pk_charge_owner(struct pk_cpu *c, struct pk_charge *charge, __u64 object, __u32 basis)
{
	struct pk_key *key;

	if (!c || !charge)
		return 0;
	key = pk_key_of(c, charge);
	key->served = object;
	key->served_kind = PK_SERVED_OBJECT;
	key->basis = basis;
	key->reason = charge->reason;
	return pk_count(c, key, charge->ns, charge->samples);
}

static __always_inline void pk_spill(struct pk_cpu *c, struct pk_charge *charge,
				     __u64 object)
{
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

int pk_hash(struct pk_cpu *c, __u64 object, struct pk_charge *charge)
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
		    last->ran_on == charge->ran_on && last->kind == charge->kind &&
		    last->vec == charge->vec && last->reason == charge->reason) {
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

int pk_pass(struct pk_cpu *c, __u64 from, __u64 to)
{
	__u32 index = from & (PK_SLOTS - 1);
	struct pk_slot *slot = &slots[index];

	if (!c || from == to)
		return 0;
	if (!pk_lock_slot(slot))
		return 0;
	if (slot->object == from) {
		for (__u32 i = 0; i < PK_SLOT_CHARGES; i++) {
			if (i >= slot->used)
				break;
			pk_hash(c, to, &slot->charge[i]); /* in the same slot: spilled to the successor's owner */
		}
		slot->used = 0;
		slot_tags[index] = 0;
	}
	pk_unlock_slot(slot);
	return 0;
}

int pk_attribute(struct pk_cpu *c, __u64 object, struct pk_key *who)
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
	}
	pk_unlock_slot(slot);
	return 0;
}


/*
 * A large table allocates as it grows: it has one element ready on each CPU at first, and gets more
 * only after the interrupt that took it. The second stack of the first sample would find none.
 * User space runs this once on each CPU for each table, which sets the refilling going.
 *
 * Calls are counted by contexts from the first one on: so the CPU's area is to be known by then.
 */
SEC("?raw_tp")
int pk_warm(void *ctx)
{
	__u32 zero = 0;
	struct pk_scratch *s = bpf_map_lookup_elem(&scratch, &zero);
	struct pk_count none = {};
	struct pk_cpu *me = this_cpu();
	__u64 id = 0;
	void *table;

	pk_learn_percpu(me, bpf_get_current_task_btf());
	table = bpf_map_lookup_elem(&counts, &zero);
	if (table) {
		bpf_map_update_elem(table, &me->scratch.row[0], &none, BPF_ANY);
		bpf_map_delete_elem(table, &me->scratch.row[0]);
	}
	table = bpf_map_lookup_elem(&stacks, &zero);
	if (table && s) {
		bpf_map_update_elem(table, &id, &s->stack, BPF_ANY);
		bpf_map_delete_elem(table, &id);
	}
	return 0;
}
