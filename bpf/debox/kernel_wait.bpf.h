/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* More of the kernel's types (core/kernel.bpf.h): entries of those who wait, and of signals. */
#ifndef PKPROF_KERNEL_WAIT_BPF_H
#define PKPROF_KERNEL_WAIT_BPF_H

#include "core/kernel.bpf.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct wait_queue_head {
	struct list_head head;
};

struct wait_queue_entry {
	void *func;
	struct list_head entry;
};

struct wait_page_queue {
	struct folio *folio;
	struct wait_queue_entry wait;
};

struct wait_bit_queue_entry {
	struct wait_queue_entry wq_entry;
};

struct plist_node {
	struct list_head node_list;
};

struct plist_head {
	struct list_head node_list;
};

struct spinlock {
	union {
		int rlock;
	};
};

typedef struct spinlock spinlock_t;

union futex_key {
	struct {
		__u64 ptr;
	} both;
};

struct futex_q {
	struct plist_node list;
	struct task_struct *task;
	spinlock_t *lock_ptr;
	union futex_key key;
};

struct futex_hash_bucket {
	spinlock_t lock;
	struct plist_head chain;
};

struct poll_table_entry {
	struct wait_queue_entry wait;
};

struct poll_wqueues {
	struct task_struct *polling_task;
	struct poll_table_entry inline_entries[1];
};

struct sigaction {
	void *sa_handler;
	unsigned long sa_flags;
};

struct k_sigaction {
	struct sigaction sa;
};

#pragma clang attribute pop

#endif
