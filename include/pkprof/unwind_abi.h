/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) OR Apache-2.0 */
/*
 * How the frames of user code are left, as user space tells the kernel side: a table a file
 * (src/unwind/unwind_table.h), searched in bpf/user/unwind.bpf.c.
 */
#ifndef PKPROF_UNWIND_ABI_H
#define PKPROF_UNWIND_ABI_H

#include "abi.h"

#ifndef __cplusplus
#undef static_assert
#define static_assert _Static_assert
#endif

/*
 * A row: from this offset in the file on, up to the next row's, a frame is left by this rule. The
 * offset is in the upper half. The rule: 4 bits of pk_unwind_kind, 10 of where the caller's frame
 * pointer lies, 18 of words; the last two signed. The CFA is where the caller's stack pointer is
 * after the return; the address that is returned to lies right below it.
 */
enum pk_unwind_kind {
	PK_BY_NOTHING = 0, /* no function is known there */
	PK_BY_SP,          /* CFA = stack pointer + words */
	PK_BY_FP,          /* CFA = frame pointer + words */
	PK_BY_PLT,         /* CFA = stack pointer + 1 word, or 2 from so many bytes of an entry on */
	PK_BY_WORD_AT_FP,  /* CFA = the word at frame pointer + words: stacks that are aligned anew */
	PK_BY_WORD_AT_SP,  /* CFA = the word at stack pointer + words, + 1 word */
	PK_BY_REGISTER,    /* CFA = a register + words: see PK_RULE_REGISTER */
	PK_BY_RETURN,      /* CFA = stack pointer + words; the address returned to is in a register */
	PK_BY_SIGNAL,      /* the stack pointer is at the registers of what a signal interrupted */
	PK_BY_END,         /* a thread begins here */
	PK_BY_OTHER,       /* a way that a rule cannot say */
};

enum {
	PK_RULE_FP_SHIFT = 18,
	PK_RULE_KIND_SHIFT = 28,
	PK_RULE_WORDS = 1 << 17, /* the words are below it, and not below minus it */
	PK_RULE_FP = 1 << 9,     /* and the frame pointer's word likewise */
	/* Instead of a word below the CFA: */
	PK_FP_KEPT = 0,      /* the frame pointer is the caller's */
	PK_FP_LOST = -512,   /* the caller's is not to be had */
	PK_FP_AT_FP = -511,  /* it is where the frame pointer points */
};

/* Of PK_BY_REGISTER and PK_BY_RETURN: words and DWARF's number of the register. */
#define PK_RULE_REGISTER(words, number) ((words) * 16 + (number))

#define PK_RULE(kind, words, fp)                                                        \
	((__u32)(kind) << PK_RULE_KIND_SHIFT | ((__u32)(fp)&0x3ff) << PK_RULE_FP_SHIFT | \
	 ((__u32)(words)&0x3ffff))
#define PK_RULE_KIND(rule) ((rule) >> PK_RULE_KIND_SHIFT)
#define PK_RULE_FP_WORD(rule) ((__s32)((rule) << 4) >> 22)
#define PK_RULE_WORD(rule) ((__s32)((rule) << 14) >> 14)

/* Where a signal's handler finds the registers of what it interrupted, in bytes from the stack pointer on. */
enum {
	PK_SIGNAL_FP = 120,
	PK_SIGNAL_SP = 160,
	PK_SIGNAL_IP = 168,
};

/*
 * A table is an array of these: a block that is the head, an index, rows. The index has an entry for
 * each page: in which word of all is the row that holds where the page begins, and in the upper half
 * how many rows follow in it.
 */
enum {
	PK_BLOCK_WORDS = 64,
	PK_UNWIND_FILES = 4096, /* that have tables at one time */
	PK_USER_RULES = 32768,  /* that are remembered by address; a power of two */
};

struct pk_unwind_block {
	__u64 word[PK_BLOCK_WORDS];
};

/* The words of the first block. */
enum pk_unwind_head {
	PK_HEAD_FIRST, /* offset in the file at which the first page begins */
	PK_HEAD_PAGES, /* how many; 0: nothing is known of this file's functions */
	PK_HEAD_SHIFT, /* a page has 1 << this bytes */
	PK_HEAD_USED,  /* ktime of the last search here; what is remembered is not searched for */
};

/* How a stack of user code ended; in .depth of its pk_stack, above PK_STACK_END_SHIFT. */
enum pk_stack_end {
	PK_STACK_ASIDE = 0, /* as the kernel finds it, by frame pointers: nothing is known of its end */
	PK_STACK_WHOLE,     /* where the thread begins */
	PK_STACK_NO_TABLE,  /* in a file whose table was not there yet, */
	PK_STACK_NO_CFI,    /* in code that nothing is known of, and by frame pointers no further */
	PK_STACK_UNREADABLE, /* what it led to could not be read, */
	PK_STACK_ASTRAY,     /* or was no code */
	PK_STACK_DEEP,       /* it has more frames than there is room for */
	PK_STACK_ENDS,
};
#define PK_STACK_END_SHIFT 32

/*
 * Of a stack that led to a file without a table, user space gets what it needs to go on: a record in
 * a ring, under a number that no other stack has. It makes the rest of the stack by itself.
 */
#define PK_STACK_UNFINISHED (1ULL << 63)

enum {
	PK_UNFINISHED_BYTES = 15 << 10, /* of a stack at most, from its top */
	PK_UNFINISHED_EACH_SECOND = 256, /* on a CPU, in each of its contexts */
};

struct pk_unfinished {
	__u64 number; /* with PK_STACK_UNFINISHED */
	__u64 ip;     /* of the frame that could not be left, which is the last one of .stack, */
	__u64 sp;     /* in it, */
	__u64 fp;
	__u32 pid;    /* thread group id */
	__u16 bytes;  /* of .top */
	__u8 exact;   /* .ip was interrupted, and not returned to */
	__u8 pad;
	struct pk_stack stack;
	__u8 top[PK_UNFINISHED_BYTES]; /* from .sp on */
};
static_assert(sizeof(struct pk_unfinished) == 40 + sizeof(struct pk_stack) + PK_UNFINISHED_BYTES,
	      "pk_unfinished has no hidden padding");

#endif
