// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Page faults in a call: on which pages, and where in the kernel. An event of the thread's own, so
 * that nobody else pays for it; it fires at each fault, after the page is there.
 */
#include "debox/place.bpf.h"
#include "debox/record.bpf.h"

#include <linux/bpf_perf_event.h>

enum { DB_PAGE_MASK = 4095 };

/* The entry for this page; a new one if it has none yet. Returns 1 + its number. */
static __noinline __u32 db_fault_entry(struct debox_record *r, __u64 page, __u32 place)
{
	__u32 n;

	if (!r)
		return 0;
	n = r->faults;
	for (__u32 i = 0; i < DEBOX_FAULTS; i++) {
		struct debox_fault *f = &r->fault[i];

		if (i < n && f->address == page)
			return i + 1;
		if (i == n) {
			*f = (struct debox_fault){ .address = page, .place = place };
			r->faults = n + 1;
			return i + 1;
		}
	}
	r->faults_left_out++;
	return 0;
}

static __always_inline int db_fault(struct bpf_perf_event_data *ctx, bool major)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct db_thread *t = db_find(task->pid);
	struct debox_record *r;
	struct db_cpu *c;
	struct debox_fault *f;
	__u64 ip = ctx->regs.rip;

	if (!t)
		return 0;
	c = db_this_cpu();
	if (!c)
		return 0;
	r = db_record_of_now(c, t);
	if (!r)
		return 0;
	/* Without marks the thread's own counters say how many, once the call is over. */
	if (t->wants & DB_MARKED) {
		if (major)
			r->major_faults++;
		else
			r->minor_faults++;
	}
	if (!(t->wants & DB_FAULTS))
		return 0;
	f = db_fault_of(r, db_fault_entry(r, ctx->addr & ~(__u64)DB_PAGE_MASK,
					  (__s64)ip < 0 ? db_place(c, ip) : 0));
	if (!f)
		return 0;
	if (major)
		f->major++;
	else
		f->minor++;
	return 0;
}

SEC("?perf_event")
int db_minor_fault(struct bpf_perf_event_data *ctx)
{
	return db_fault(ctx, false);
}

SEC("?perf_event")
int db_major_fault(struct bpf_perf_event_data *ctx)
{
	return db_fault(ctx, true);
}
