/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Files by number, and their names as the process sees them. */
#ifndef PKPROF_FILE_NAME_BPF_H
#define PKPROF_FILE_NAME_BPF_H

#include "core/state.bpf.h"

/*
 * The number of a file that the current process has mapped, given as a number, told to user space
 * with its name the first time; PK_FILE_NONE where that found no room. The level's mapper is taken.
 */
__u64 pk_file_number(__u32 level, __u64 file);

/* The number of the file of the program that the current process runs; PK_FILE_NONE: not known. */
__u64 pk_current_program(void);

#endif
