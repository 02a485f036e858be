// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* What a process has mapped where its stack leads; see mapping.bpf.h. */
#include "process/mapping.bpf.h"

#include "process/file_name.bpf.h"
#include "process/label.bpf.h"
#include "process/mapper.bpf.h"

struct told_mappings_map {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct pk_mapping_key);
	__type(value, struct pk_mapping);
};

struct told_mappings_map told_mappings SEC(".maps");

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

/* What is mapped there, and by which file; false: there was no room to tell. */
static __always_inline bool pk_tell_area(struct pk_mapper *m, struct vm_area_struct *area)
{
	__u64 file = (__u64)BPF_CORE_READ(area, vm_file);
	struct pk_mapping *known;

	m->mapping.file = PK_FILE_NONE;
	m->mapping.offset = 0;
	if (file) {
		m->mapping.file = pk_file_number(file);
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
	if (bpf_ringbuf_output(&mapped, &m->told, sizeof(m->told), pk_ring_flags()))
		return false;
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

struct pk_frames {
	struct pk_stack *stack;
	struct pk_mapper *m;
	__u64 mm;
};

static long pk_tell_frame(__u32 i, struct pk_frames *f)
{
	struct pk_mapper *m = f->m;
	struct vm_area_struct *area;
	__u64 address, start;
	__u32 at, k;

	if (i >= PK_MAX_DEPTH)
		return 1;
	address = f->stack->ip[i] - (i ? 1 : 0); /* a call may be the last thing in its function */
	for (k = 0; k < PK_RANGES; k++) {
		if (address - m->range[k].start < m->range[k].length) {
			f->stack->ip[i] |= m->range[k].frame;
			return 0;
		}
	}
	if (m->walks >= PK_MOST_WALKS)
		return 1;
	m->walks++;
	area = (void *)pk_find_area(m, f->mm, address);
	if (!area || (__u64)BPF_CORE_READ(area, vm_mm) != f->mm)
		return 0;
	start = BPF_CORE_READ(area, vm_start);
	m->mapping.end = BPF_CORE_READ(area, vm_end);
	if (address < start || address >= m->mapping.end)
		return 0;
	m->key.start = start;
	m->mapping.file = PK_FILE_NONE;
	if (BPF_CORE_READ(area, vm_flags) & VM_EXEC && !pk_tell_area(m, area)) {
		m->lost++;
		return 0;
	}
	at = m->next++ & (PK_RANGES - 1);
	m->range[at].start = start;
	m->range[at].length = m->mapping.end - start;
	m->range[at].frame = pk_file_of_frames(m->mapping.file, start);
	f->stack->ip[i] |= m->range[at].frame;
	return 0;
}

/*
 * Where anything that was sampled is no longer mapped, or somewhere else, its pages had to leave the
 * translation buffers: the kernel counts that.
 */
static __always_inline void pk_remember_process(struct pk_mapper *m, struct task_struct *task,
						struct mm_struct *mm)
{
	__u64 process = pk_process_of(task), exec_id = task->self_exec_id;
	__u64 shape = BPF_CORE_READ(mm, exec_vm) << 40 ^ BPF_CORE_READ(mm, context.tlb_gen.counter);

	if (likely(m->process == process && m->exec_id == exec_id && m->shape == shape))
		return;
	m->process = process;
	m->exec_id = exec_id;
	m->shape = shape;
	__builtin_memset(m->range, 0, sizeof(m->range));
	m->key.process = process;
	m->key.exec_id = exec_id;
}

int pk_tell_mappings(struct pk_cpu *c, struct pk_stack *stack)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct mm_struct *mm = BPF_CORE_READ(task, mm); /* see pk_process_start() */
	struct pk_frames frames = {.stack = stack, .mm = (__u64)mm};

	if (!c || !stack || !mm || !config.mappings)
		return 0;
	frames.m = pk_take_mapper();
	if (!frames.m)
		return 0;
	pk_remember_process(frames.m, task, mm);
	frames.m->walks = 0;
	frames.m->lost = 0;
	bpf_loop(stack->depth, pk_tell_frame, &frames, 0);
	c->stats.mappings_lost += frames.m->lost;
	pk_give_back(frames.m);
	return 0;
}
