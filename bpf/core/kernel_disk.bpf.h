/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Of the kernel's types: disks, requests, and journals of what is written. */
#ifndef PKPROF_KERNEL_DISK_BPF_H
#define PKPROF_KERNEL_DISK_BPF_H

#include "core/kernel_task.bpf.h"

#define LOOP_MAJOR 7

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct bio;

struct block_device_operations {
	void (*submit_bio)(struct bio *bio);
};

struct gendisk {
	int major;
	int first_minor;
	const struct block_device_operations *fops;
	void *private_data;
};

struct block_device {
	__u32 bd_dev;
	struct gendisk *bd_disk;
};

struct bvec_iter {
	__u64 bi_sector;
	unsigned int bi_size;
};

struct bio {
	struct block_device *bi_bdev;
	struct bvec_iter bi_iter;
};

/* A disk that lies in a file. */
struct loop_device {
	struct file *lo_backing_file;
	struct work_struct rootcg_work;
};

struct loop_worker {
	struct work_struct work;
	struct loop_device *lo;
};

struct request_queue {
	struct gendisk *disk;
};

struct request {
	struct request_queue *q;
	struct bio *bio;
	unsigned int cmd_flags;
	unsigned int __data_len;
	__u64 start_time_ns; /* when it was made; 0: that was not asked for */
};

struct address_space {
	struct inode *host;
};

struct transaction_s {
	__u32 t_tid;
};

struct journal_s {
	struct block_device *j_fs_dev;
	struct transaction_s *j_committing_transaction;
	__u32 j_commit_sequence;
};

#pragma clang attribute pop

#endif
