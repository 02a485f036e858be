/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) OR Apache-2.0 */
/*
 * What is used of other resources than time, and how long locks are waited for, as the kernel side
 * (bpf/usage) and the user side say it to each other. A part of abi.h.
 *
 * It is a row of PK_USAGE: pk_key.usage says of what, pk_count.ns is how much: bytes, or nanoseconds;
 * pk_count.samples how often.
 */
#ifndef PKPROF_USAGE_ABI_H
#define PKPROF_USAGE_ABI_H

/* Which resources are asked for: bits. */
enum pk_usage_wanted {
	PK_USAGE_LOCK = 1,
	PK_USAGE_DISK = 2,
	PK_USAGE_NET = 4,
	PK_USAGE_MEMORY = 8,
};

/* pk_key.usage */
enum pk_usage {
	PK_DISK_BYTES = 0, /* of requests that ended; pk_key.device and .operation */
	PK_DISK_SERVICE,   /* ns from when the disk was given them up to their end, */
	PK_DISK_QUEUED,    /* and from when they were made up to there */
	/* Bytes of packets, with all their headers. pk_key.device is the interface's number, .ran_on the peer's. */
	PK_NET_SENT,
	PK_NET_RECEIVED,
	PK_NET_RESENT,
	PK_NET_DROPPED,
	PK_MEMORY_TAKEN,     /* bytes of pages; what for, .kstack tells */
	PK_MEMORY_RECLAIMED, /* of pages that were freed for want of memory */
	/* ns up to when a lock was had; pk_key.lock, .ran_on: who held it; the stack begins with its address. */
	PK_LOCK_WAITED,
};

/* pk_key.lock, as LCB_F_* of include/trace/events/lock.h. */
enum pk_lock_flags {
	PK_LOCK_SPIN = 1,
	PK_LOCK_READ = 2,
	PK_LOCK_WRITE = 4,
	PK_LOCK_RT = 8,
	PK_LOCK_PERCPU = 16,
	PK_LOCK_MUTEX = 32,
};

/* What a lock of the kernel belongs to: "mmap_lock", "&ext4_inode_cache" of an object in that cache. */
struct pk_lock_name {
	char text[32]; /* cut; "" where it is in none */
};

/* A disk, or an interface, and what was done with it. */
#define PK_DEVICE(number, operation) ((__u64)(operation) << 32 | (number))
#define PK_DEVICE_NUMBER(device) ((__u32)(device))
#define PK_DEVICE_OPERATION(device) ((__u8)((device) >> 32))

/* As REQ_OP_* of include/linux/blk_types.h. */
enum pk_disk_operation {
	PK_DISK_READ = 0,
	PK_DISK_WRITE = 1,
	PK_DISK_FLUSH = 2,
	PK_DISK_DISCARD = 3,
	PK_DISK_WRITE_ZEROES = 9,
};

/* Who is at the other end: an address and, of one that is on this machine, its socket's number. */
struct pk_peer {
	__be32 address[4]; /* of IPv4 in the first */
	__u32 family;
	__u32 pad;
	__u64 object; /* 0: not known */
};

enum {
	PK_PEERS = 1 << 14,         /* that are remembered */
	PK_DISK_REQUESTS = 8192,    /* that are at disks at one time */
	PK_LOCK_NAMES = 1 << 12,    /* of locks of the kernel's, by address */
	PK_CONTENDERS = 1 << 14,    /* threads that wait for locks of the kernel at one time */
};

#endif
