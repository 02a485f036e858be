// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Rows of exact time; see exact.bpf.h. */
#include "timed/exact.bpf.h"

#include "process/served.bpf.h"
#include "who/count.bpf.h"

int pk_put_row(struct pk_cpu *c, struct pk_exact *row)
{
	struct pk_key *key;
	__u64 ns, count;

	if (!c || !row || !row->count)
		return 0;
	key = pk_fresh_key();
	key->ran_on = row->ran_on;
	key->served = row->served;
	key->served_kind = row->served & PK_OBJECT ? PK_SERVED_OBJECT : PK_SERVED_LABEL;
	key->function = row->function;
	key->number = row->number;
	key->kind = row->kind < PK_EXACT_RUN ? PK_INTERRUPT : PK_MEASURED;
	key->exact_kind = row->kind;
	key->basis = row->basis;
	key->reason = PK_UNTRACKED;
	ns = row->ns;
	count = row->count;
	row->ns = 0;
	row->count = 0;
	pk_count(c, key, ns, count);
	return 0;
}

int pk_add_exact(struct pk_cpu *c, struct pk_exact *what, __u64 ns)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct pk_exact *row;
	__u64 ran_on;

	if (!c || !what || !started || stopped || pk_is_away(c))
		return 0;
	ran_on = task->pid ? pk_label_of(task) : PK_IDLE;
	row = &c->measure.exact[(ran_on >> 32 ^ what->function >> 4 ^ what->number ^ what->kind) &
			(PK_EXACT_ROWS - 1)];
	if (row->served != what->served || row->ran_on != ran_on ||
	    row->function != what->function || row->kind != what->kind ||
	    row->number != what->number || !row->count) {
		pk_put_row(c, row);
		pk_current_label(c, task); /* so that user space knows it */
		row->ran_on = ran_on;
		row->served = what->served;
		row->function = what->function;
		row->number = what->number;
		row->kind = what->kind;
		row->basis = what->basis;
	}
	row->ns += ns;
	row->count++;
	return 0;
}

int pk_put_exact(struct pk_cpu *c)
{
	if (!c)
		return 0;
	for (__u32 i = 0; i < PK_EXACT_ROWS; i++)
		pk_put_row(c, &c->measure.exact[i]);
	if (!c->measure.softirq_ends)
		pk_put_row(c, &c->measure.softirq);
	return 0;
}
