/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Reading the kernel's memory a word at a time, which is most of what hooks and samples read. */
#ifndef PKPROF_WORD_BPF_H
#define PKPROF_WORD_BPF_H

#include "kernel.bpf.h"

/* The 64 bits at `at`, 0 where there is no memory of the kernel's. */
__u64 pk_read_word(__u64 at);

#endif
