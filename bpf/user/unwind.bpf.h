/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The way up a stack of user code, by tables that user space makes of its files.
 *
 * Compilers leave frame pointers out, and say beside the code how each frame is left from each
 * address on. User space makes a table of that for each file that stacks lead to; what hot code
 * needs of it is remembered by address, as for the kernel's own frames (stack/unwind.bpf.h).
 */
#ifndef PKPROF_USER_UNWIND_BPF_H
#define PKPROF_USER_UNWIND_BPF_H

#include "core/state.bpf.h"

#include "pkprof/unwind_abi.h"

/* There is none: the task is between two programs. */
enum { PK_NO_USER_STACK = 2 };

/*
 * The current task's stack in user mode, with each frame's file, and in .depth how it ended. Returns
 * 1, or 0 where that is to be asked of the kernel: of a 32-bit program, and in the middle of another
 * stack; or PK_NO_USER_STACK. Else the stack was handed over unfinished, under the number that is
 * returned.
 */
__u64 pk_unwind_user(struct pk_cpu *c, struct pk_stack *stack);

#endif
