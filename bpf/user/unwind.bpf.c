// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The way up a stack of user code; see unwind.bpf.h. */
#include "user/unwind.bpf.h"

#include "process/mapping.bpf.h"

/* An array of blocks for each file; see pk_unwind_block. */
struct unwind_table {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE | BPF_F_INNER_MAP);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct pk_unwind_block));
};

struct unwind_tables_map {
	__uint(type, BPF_MAP_TYPE_HASH_OF_MAPS);
	__uint(max_entries, PK_UNWIND_FILES);
	__type(key, __u64); /* number of the file */
	__array(values, struct unwind_table);
};

struct unwind_tables_map unwind_tables SEC(".maps");

struct unfinished_ring {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20); /* or more, by how many CPUs there are */
};

struct unfinished_ring unfinished SEC(".maps");

/* Rules by what their address is: 32 bits of that above those of the rule. */
static __u64 user_rules[PK_USER_RULES];

/* What is no rule: the file has no table. */
#define PK_NO_RULE (~0U)

enum {
	PK_UNWIND_STEPS = 16, /* of a search: a page has fewer rows than a power of two of these */
	USER_CS = 0x33,	      /* arch/x86/include/asm/segment.h */
	PK_STACK_ALIGN = 7,
};

static __always_inline __u64 pk_table_word(void *table, __u64 number)
{
	__u32 block = number / PK_BLOCK_WORDS;
	struct pk_unwind_block *b = bpf_map_lookup_elem(table, &block);

	return b ? b->word[number & (PK_BLOCK_WORDS - 1)] : 0;
}

static __always_inline __u32 pk_search_table(void *table, __u64 offset)
{
	__u32 zero = 0;
	struct pk_unwind_block *head = bpf_map_lookup_elem(table, &zero);
	__u64 page, row, more;

	if (!head)
		return PK_RULE(PK_BY_NOTHING, 0, 0);
	head->word[PK_HEAD_USED] = bpf_ktime_get_ns();
	if (offset < head->word[PK_HEAD_FIRST])
		return PK_RULE(PK_BY_NOTHING, 0, 0);
	page = (offset - head->word[PK_HEAD_FIRST]) >> (head->word[PK_HEAD_SHIFT] & 63);
	if (page >= head->word[PK_HEAD_PAGES])
		return PK_RULE(PK_BY_NOTHING, 0, 0);
	row = pk_table_word(table, PK_BLOCK_WORDS + page);
	more = row >> 32;
	row = (__u32)row;
#pragma nounroll
	for (__u32 i = 0; i < PK_UNWIND_STEPS && more; i++) {
		__u64 half = (more + 1) / 2;

		if (pk_table_word(table, row + half) >> 32 <= offset) {
			row += half;
			more -= half;
		} else {
			more = half - 1;
		}
	}
	return pk_table_word(table, row);
}

/* How the code at that offset in the file leaves its frame. */
__noinline __u32 pk_find_rule(__u64 file, __u64 offset)
{
	__u64 hash = (offset ^ file << 40) * 0x9e3779b97f4a7c15ULL ^ file * 0xc4ceb9fe1a85ec53ULL;
	__u64 *place = &user_rules[hash >> 20 & (PK_USER_RULES - 1)];
	__u64 entry = *place;
	__u32 tag = hash >> 32 | 1, rule;
	void *table;

	if (likely(entry >> 32 == tag))
		return entry;
	if (!config.unwind) /* and there is no map */
		return PK_NO_RULE;
	table = bpf_map_lookup_elem(&unwind_tables, &file);
	if (!table)
		return PK_NO_RULE;
	rule = pk_search_table(table, offset);
	*place = (__u64)tag << 32 | rule;
	return rule;
}

static __always_inline bool pk_user_words(void *to, __u32 bytes, __u64 at)
{
	return !bpf_probe_read_user(to, bytes, (void *)at);
}

/*
 * Registers that nobody saves for another, a bit each: what is called in hand-written code, and does
 * not use one, leaves it as it is.
 */
#define PK_CALLER_SAVED 0x0f37

/* Of the registers that the kernel keeps, by DWARF's number of it. */
static __always_inline __u64 pk_user_register(struct pk_user_walk *w, __u32 number)
{
	__u64 word = 0x0123678904ed5bcaULL >> (number & 15) * 4 & 15;

	bpf_probe_read_kernel(&w->word[2], 8, (void *)(w->regs + word * 8));
	return w->word[2];
}

/* What a signal interrupted goes on where its registers say. */
static __always_inline int pk_leave_signal(struct pk_user_walk *w)
{
	__u64 *word = w->word;

	if (!pk_user_words(word, PK_SIGNAL_IP + 8 - PK_SIGNAL_FP, w->sp + PK_SIGNAL_FP))
		return PK_STACK_UNREADABLE;
	w->fp = word[0];
	w->sp = word[(PK_SIGNAL_SP - PK_SIGNAL_FP) / 8];
	w->ip = word[(PK_SIGNAL_IP - PK_SIGNAL_FP) / 8];
	w->exact = 1;
	return 0;
}

/*
 * Where nothing is known of the code. Frame pointers may lead to another stack, but not back. The
 * first function has 0 there; so may any that was interrupted and keeps something else in it.
 */
static __always_inline int pk_leave_by_fp(struct pk_user_walk *w)
{
	if (!w->fp)
		return w->exact ? PK_STACK_NO_CFI : PK_STACK_WHOLE;
	if (w->fp & PK_STACK_ALIGN || !pk_user_words(w->word, 16, w->fp) || w->word[0] == w->fp)
		return PK_STACK_NO_CFI;
	w->sp = w->fp + 16;
	w->fp = w->word[0];
	w->ip = w->word[1];
	w->exact = 0;
	return w->ip ? 0 : PK_STACK_WHOLE;
}

/* Where the caller's stack pointer is after the return; 0: not to be had. */
static __always_inline __u64 pk_user_cfa(struct pk_user_walk *w, __u32 kind, __s64 words)
{
	__u64 *word = w->word;

	switch (kind) {
	case PK_BY_SP:
		return w->sp + words * 8;
	case PK_BY_FP:
		return w->fp + words * 8;
	case PK_BY_PLT:
		return w->sp + 8 + ((__s64)(w->ip & 15) >= words ? 8 : 0);
	case PK_BY_WORD_AT_FP:
		return pk_user_words(word, 8, w->fp + words * 8) ? *word : 0;
	case PK_BY_WORD_AT_SP:
		return pk_user_words(word, 8, w->sp + words * 8) ? *word + 8 : 0;
	case PK_BY_REGISTER:
		if (w->depth > 1 && !(PK_CALLER_SAVED >> (words & 15) & 1))
			return 0;
		return pk_user_register(w, words) + (words >> 4) * 8;
	case PK_BY_RETURN:
		return w->depth == 1 ? w->sp + (words >> 4) * 8 : 0;
	}
	return 0;
}

/* Leaves a frame by its rule; else enum pk_stack_end. */
static __noinline int pk_leave_frame(struct pk_user_walk *w, __u32 rule)
{
	__u32 kind = PK_RULE_KIND(rule);
	__s64 words = PK_RULE_WORD(rule), fp_word = PK_RULE_FP_WORD(rule);
	__u64 cfa;

	if (kind == PK_BY_END)
		return PK_STACK_WHOLE;
	if (kind == PK_BY_SIGNAL)
		return pk_leave_signal(w);
	if (kind == PK_BY_NOTHING || kind >= PK_BY_OTHER)
		return pk_leave_by_fp(w);
	cfa = pk_user_cfa(w, kind, words);
	if (cfa <= w->sp && !(kind == PK_BY_RETURN && cfa == w->sp))
		return cfa ? PK_STACK_ASTRAY : PK_STACK_UNREADABLE;
	if (!pk_user_words(w->word, 16, cfa - 16))
		return PK_STACK_UNREADABLE;
	w->ip = kind == PK_BY_RETURN ? pk_user_register(w, words) : w->word[1];
	if (fp_word == -2)
		w->fp = w->word[0];
	else if (fp_word == PK_FP_LOST)
		w->fp = 1; /* leads nowhere */
	else if (fp_word != PK_FP_KEPT &&
		 !pk_user_words(&w->fp, sizeof(w->fp), fp_word == PK_FP_AT_FP ? w->fp : cfa + fp_word * 8))
		return PK_STACK_UNREADABLE;
	w->sp = cfa;
	w->exact = 0;
	return w->ip ? 0 : PK_STACK_WHOLE;
}

struct pk_user_frames {
	struct pk_stack *stack;
	struct pk_mapper *m;
};

static __always_inline __u64 pk_user_place(struct pk_user_walk *w)
{
	return w->ip - 1 + is_some(w->exact);
}

/* Leaves the frame at hand, whose range is known; else .end says why not. */
static __noinline int pk_leave_range(struct pk_mapper *m, __u64 k)
{
	struct pk_range *range = &m->range[k & (PK_RANGES - 1)];
	struct pk_user_walk *w = &m->walk;
	__u32 rule = PK_RULE(PK_BY_NOTHING, 0, 0);

	if (range->file != PK_FILE_NONE)
		rule = pk_find_rule(range->file, pk_user_place(w) + range->shift);
	if (rule == PK_NO_RULE) {
		w->untabled = 1;
		w->end = PK_STACK_NO_TABLE;
		return 1;
	}
	w->end = pk_leave_frame(w, rule);
	return w->end != 0;
}

static long pk_user_frame(__u32 i, struct pk_user_frames *f)
{
	__u64 k;

	if (i >= PK_MAX_DEPTH)
		return 1;
	k = pk_find_range(f->m->level, f->m->walk.mm, pk_user_place(&f->m->walk));
	if (k >= PK_RANGES || !f->m->range[k].code) {
		f->m->walk.end = PK_STACK_ASTRAY;
		if (!i) {
			f->stack->ip[0] = f->m->walk.ip;
			f->m->walk.depth = 1;
		}
		return 1;
	}
	/* Whoever looks for it takes all but the innermost for returned to, and looks a byte before. */
	f->stack->ip[i] = (pk_user_place(&f->m->walk) + is_some(i)) | f->m->range[k].frame;
	f->m->walk.depth = i + 1;
	return pk_leave_range(f->m, k);
}

/* Whether one more may be handed over now. */
static __always_inline bool pk_may_hand_over(struct pk_handed_over *over)
{
	__u64 now = bpf_ktime_get_ns();

	if (now - over->since > 1000000000) {
		over->since = now;
		over->count = 0;
	}
	return over->count++ < PK_UNFINISHED_EACH_SECOND;
}

/* The range that the stack lies in. By itself: 6.1 has all calls in each other use 512 bytes at most. */
static __noinline int pk_find_top(struct pk_mapper *m)
{
	m->walk.top = pk_find_range(m->level, m->walk.mm, m->walk.sp);
	return 0;
}

/* The top of the stack: as much as there is room for or, where not all of it is there, a page or two. */
static __always_inline void pk_copy_top(struct pk_mapper *m, struct pk_unfinished *to)
{
	__u64 sp = m->walk.sp, page = 4096 - (sp & 4095), length = page, k = m->walk.top;

	if (k < PK_RANGES)
		length = m->range[k].start + m->range[k].length - sp;
	if (length > PK_UNFINISHED_BYTES)
		length = PK_UNFINISHED_BYTES;
	to->bytes = length;
	if (!bpf_probe_read_user(to->top, length, (void *)sp))
		return;
	to->bytes = page + 4096;
	if (!bpf_probe_read_user(to->top, page + 4096, (void *)sp))
		return;
	to->bytes = bpf_probe_read_user(to->top, page, (void *)sp) ? 0 : page;
}

/* Has user space go on from here. Returns the stack's number; 0: it may not. */
static __noinline __u64 pk_hand_over(struct pk_mapper *m, struct pk_stack *stack)
{
	struct pk_unfinished *to;
	__u64 number;

	if (!pk_may_hand_over(&m->over))
		return 0;
	to = bpf_ringbuf_reserve(&unfinished, sizeof(*to), 0);
	if (!to)
		return 0;
	number = PK_STACK_UNFINISHED | (__u64)bpf_get_smp_processor_id() << 42 | (__u64)m->level << 40 |
		 ++m->over.ever;
	to->number = number;
	to->ip = m->walk.ip;
	to->sp = m->walk.sp;
	to->fp = m->walk.fp;
	to->exact = m->walk.exact;
	to->pid = pk_tgid(bpf_get_current_task_btf());
	bpf_probe_read_kernel(&to->stack, sizeof(to->stack), stack);
	pk_copy_top(m, to);
	bpf_ringbuf_submit(to, BPF_RB_FORCE_WAKEUP);
	return number;
}

/* At its innermost frame. */
static __always_inline void pk_begin_walk(struct pk_cpu *c, struct pk_user_walk *w,
					  struct pt_regs___kernel *regs)
{
	w->ip = regs->ip;
	w->sp = regs->sp;
	w->fp = regs->bp;
	w->regs = pk_plain(c, regs);
	w->depth = 0;
	w->exact = 1;
	w->end = 0;
	w->untabled = 0;
}

__u64 pk_unwind_user(struct pk_cpu *c, struct pk_stack *stack)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct mm_struct *mm = BPF_CORE_READ(task, mm); /* see pk_process_start() */
	struct pt_regs___kernel *regs = (void *)bpf_task_pt_regs(task);
	struct pk_user_frames frames = {.stack = stack};
	__u64 end;

	if (!c || !stack || !mm || !config.unwind || regs->cs != USER_CS)
		return 0;
	if (pk_process_of(task) == self) /* tables of our own code would cost more than they tell */
		return 0;
	frames.m = pk_take_mapper(c);
	if (!frames.m)
		return 0; /* pk_tell_mappings() counts that */
	pk_begin_stack(frames.m, task, mm);
	pk_begin_walk(c, &frames.m->walk, regs);
	frames.m->walk.in_exec = BPF_CORE_READ_BITFIELD(task, in_execve);
	frames.m->walk.mm = pk_plain(c, mm);
	bpf_loop(PK_MAX_DEPTH, pk_user_frame, &frames, 0);
	end = frames.m->walk.end ? frames.m->walk.end : PK_STACK_DEEP;
	stack->depth = frames.m->walk.depth | end << PK_STACK_END_SHIFT;
	/* In the middle of exec the registers are the last program's, whose code has gone. */
	if (end == PK_STACK_ASTRAY && frames.m->walk.depth == 1 && frames.m->walk.in_exec) {
		pk_end_stack(c, frames.m);
		return PK_NO_USER_STACK;
	}
	end = 0;
	if (frames.m->walk.untabled) {
		pk_find_top(frames.m);
		end = pk_hand_over(frames.m, stack);
	}
	pk_end_stack(c, frames.m);
	return end ? end : 1;
}
