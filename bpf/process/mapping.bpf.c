// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* What a process has mapped where its stack leads; see mapping.bpf.h. */
#include "process/mapping.bpf.h"

#include "process/file_name.bpf.h"
#include "process/label.bpf.h"
#include "process/mapper.bpf.h"

#include "pkprof/unwind_abi.h"

struct told_mappings_map {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct pk_mapping_key);
	__type(value, struct pk_mapping);
};

struct told_mappings_map told_mappings SEC(".maps");

/* Files of which a mapping was told; see pk_is_new_file(). */
static __u64 mapped_files[PK_UNWIND_FILES];

/* Nodes of a maple tree are aligned to that; the type is in the low bits of what points to them. */
#define PK_MAPLE_NODE_MASK 255
#define PK_MAPLE_TYPE(entry) ((entry) >> 3 & 15)

#define PK_PIVOTS_OF(type) (bpf_core_field_size(((struct type *)0)->pivot) / sizeof(__u64))

/* 1 or 0, without a branch: a verifier goes through each way that a loop of them can take. */
static __always_inline __u64 pk_is_less(__u64 a, __u64 b)
{
	return ((~a & b) | ((~a | b) & (a - b))) >> 63;
}

/* In which slot of a node it is: pivots are the slots' last addresses, and 0 behind the last slot. */
__noinline __u64 pk_slot_of_node(struct pk_mapper *m, __u64 address, __u64 pivots)
{
	__u64 i, slot = 0, before = 1;

	if (!m)
		return 0;
#pragma nounroll
	for (i = 0; i < PK_PIVOTS; i++) {
		__u64 pivot = m->pivots[i];

		before &= pk_is_less(pivot, address) & pk_is_less(i, pivots);
		before &= is_some(pivot) | !i;
		forget_value(before);
		slot += before;
	}
	return slot;
}

static long pk_go_down(__u32 level, struct pk_mapper **of)
{
	struct pk_mapper *m = *of;
	__u64 node = m->entry & ~(__u64)PK_MAPLE_NODE_MASK, type = PK_MAPLE_TYPE(m->entry);
	bool leaf = type == bpf_core_enum_value(enum maple_type, maple_leaf_64);
	__u64 pivot_at = bpf_core_field_offset(struct maple_range_64, pivot);
	__u64 slot_at = bpf_core_field_offset(struct maple_range_64, slot);
	__u64 pivots = PK_PIVOTS_OF(maple_range_64);

	m->entry = 0;
	if (type == bpf_core_enum_value(enum maple_type, maple_arange_64)) {
		pivot_at = bpf_core_field_offset(struct maple_arange_64, pivot);
		slot_at = bpf_core_field_offset(struct maple_arange_64, slot);
		pivots = PK_PIVOTS_OF(maple_arange_64);
	} else if (!leaf && type != bpf_core_enum_value(enum maple_type, maple_range_64)) {
		return 1;
	}
	if (bpf_probe_read_kernel(m->pivots, sizeof(m->pivots), (void *)(node + pivot_at)))
		return 1;
	slot_at += pk_slot_of_node(m, m->address, pivots) * sizeof(__u64);
	if (bpf_probe_read_kernel(&m->entry, sizeof(m->entry), (void *)(node + slot_at)))
		return 1;
	return leaf;
}

/*
 * The area of memory that the address may be in, as the process's tree has it at this moment; 0 if
 * there is none. Others may change the tree, so whoever uses it looks whether it is in there.
 */
static __always_inline __u64 pk_find_area(struct pk_mapper *m, __u64 mm, __u64 address)
{
	m->address = address;
	m->entry = (__u64)BPF_CORE_READ((struct mm_struct *)mm, mm_mt.ma_root);
	if ((m->entry & 3) != 2)
		return 0; /* no node, but all that there is */
	bpf_loop(PK_TREE_LEVELS, pk_go_down, &m, 0);
	return m->entry;
}

/* Of a new file user space is to make a table before long; see user/unwind.bpf.h. */
static __always_inline bool pk_is_new_file(__u64 file)
{
	return config.unwind && mapped_files[file & (PK_UNWIND_FILES - 1)] != file;
}

/* What is mapped there, and by which file; false: there was no room to tell. */
static __always_inline bool pk_tell_area(struct pk_mapper *m, struct vm_area_struct *area)
{
	__u64 file = (__u64)BPF_CORE_READ(area, vm_file);
	struct pk_mapping *known;

	m->mapping.file = PK_FILE_NONE;
	m->mapping.offset = 0;
	if (file) {
		m->mapping.file = pk_file_number(m->level, file);
		if (!m->mapping.file)
			return false;
		m->mapping.offset = BPF_CORE_READ(area, vm_pgoff) << 12;
	} else if ((__u64)BPF_CORE_READ(area, vm_mm, context.vdso) == m->key.start) {
		m->mapping.file = PK_FILE_VDSO;
	}
	known = bpf_map_lookup_elem(&told_mappings, &m->key);
	if (known && known->end == m->mapping.end && known->offset == m->mapping.offset &&
	    known->file == m->mapping.file)
		return true;
	m->told.kind = PK_MAPPED;
	m->told.pid = pk_tgid(bpf_get_current_task_btf());
	m->told.seen = bpf_ktime_get_ns();
	m->told.start = m->key.start;
	m->told.end = m->mapping.end;
	m->told.offset = m->mapping.offset;
	m->told.file = m->mapping.file;
	if (bpf_ringbuf_output(&mapped, &m->told, sizeof(m->told),
			       pk_is_new_file(m->told.file) ? BPF_RB_FORCE_WAKEUP : pk_ring_flags()))
		return false;
	mapped_files[m->told.file & (PK_UNWIND_FILES - 1)] = m->told.file;
	bpf_map_update_elem(&told_mappings, &m->key, &m->mapping, BPF_ANY);
	return true;
}

/* How frames say that they lie in that file; 0: not at all, also where addresses are longer. */
static __always_inline __u64 pk_file_of_frames(__u64 file, __u64 start)
{
	if (file == PK_FILE_NONE || start >> PK_FRAME_FILE_SHIFT)
		return 0;
	return PK_FRAME_IN_FILE | (file & PK_FRAME_FILE_MASK) << PK_FRAME_FILE_SHIFT;
}

/* What its place in .range holds from now on. */
static __always_inline __u64 pk_remember_range(struct pk_mapper *m, struct vm_area_struct *area)
{
	__u64 at = m->next++ & (PK_RANGES - 1);
	struct pk_range *range = &m->range[at];

	range->code = (BPF_CORE_READ(area, vm_flags) & VM_EXEC) != 0;
	m->mapping.file = PK_FILE_NONE;
	m->mapping.offset = 0;
	range->length = 0;
	if (range->code && !pk_tell_area(m, area)) {
		m->lost++;
		return PK_NO_RANGE;
	}
	range->start = m->key.start;
	range->length = m->mapping.end - m->key.start;
	range->frame = pk_file_of_frames(m->mapping.file, m->key.start);
	range->file = m->mapping.file;
	range->shift = m->mapping.offset - m->key.start;
	m->last = at;
	return at;
}

/* 6.1 takes no key from a caller's memory: the mapper is looked up again. */
__u64 pk_find_range(__u32 level, __u64 mm, __u64 address)
{
	struct vm_area_struct *area;
	__u64 k, last;
	struct pk_mapper *m;

	if (!config.mappings)
		return PK_NO_RANGE;
	m = pk_mapper_of(level);
	if (!m)
		return PK_NO_RANGE;
	last = m->last & (PK_RANGES - 1);
	if (likely(address - m->range[last].start < m->range[last].length))
		return last;
	for (k = 0; k < PK_RANGES; k++) {
		if (address - m->range[k].start < m->range[k].length) {
			m->last = k;
			return k;
		}
	}
	if (m->walks >= PK_MOST_WALKS)
		return PK_NO_RANGE;
	m->walks++;
	area = (void *)pk_find_area(m, mm, address);
	if (!area || (__u64)BPF_CORE_READ(area, vm_mm) != mm)
		return PK_NO_RANGE;
	m->key.start = BPF_CORE_READ(area, vm_start);
	m->mapping.end = BPF_CORE_READ(area, vm_end);
	if (address < m->key.start || address >= m->mapping.end)
		return PK_NO_RANGE;
	return pk_remember_range(m, area);
}

struct pk_frames {
	struct pk_stack *stack;
	struct pk_mapper *m;
	__u64 mm;
};

static long pk_tell_frame(__u32 i, struct pk_frames *f)
{
	__u64 address, k;

	if (i >= PK_MAX_DEPTH)
		return 1;
	address = f->stack->ip[i] - (i ? 1 : 0); /* a call may be the last thing in its function */
	k = pk_find_range(f->m->level, f->mm, address);
	if (k < PK_RANGES)
		f->stack->ip[i] |= f->m->range[k].frame;
	return f->m->walks >= PK_MOST_WALKS;
}

int pk_tell_mappings(struct pk_cpu *c, struct pk_stack *stack)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct mm_struct *mm = BPF_CORE_READ(task, mm); /* see pk_process_start() */
	struct pk_frames frames = {.stack = stack, .mm = (__u64)mm};

	if (!c || !stack || !mm || !config.mappings)
		return 0;
	frames.m = pk_take_mapper(c);
	if (!frames.m) {
		c->stats.mappings_lost++;
		return 0;
	}
	pk_begin_stack(frames.m, task, mm);
	bpf_loop(stack->depth, pk_tell_frame, &frames, 0);
	pk_end_stack(c, frames.m);
	return 0;
}
