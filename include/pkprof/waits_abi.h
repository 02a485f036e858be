/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) OR Apache-2.0 */
/*
 * What threads wait for, as the kernel side (bpf/waits) and the user side say it to each other. A part
 * of abi.h.
 *
 * A wait has two parts: up to the wakeup the thread is blocked, and from then on it is ready and waits
 * for a CPU. Each is a row of PK_WAIT. Of a blocked one pk_key.waker is the number of a pk_waker; of a
 * ready one pk_key.ran_on is who had the CPU at some moment of it.
 */
#ifndef PKPROF_WAITS_ABI_H
#define PKPROF_WAITS_ABI_H

enum {
	PK_WAITERS = 1 << 16,    /* threads by the low bits of their number; a power of two */
	PK_WAITERS_NEAR = 8,     /* places in a row where one may lie */
	PK_WAKERS = 4,           /* who woke, who had woken that one, and so on */
	PK_KEPT_WAKERS = 1 << 15,
	PK_DISKS = 16,           /* whose last requests are remembered; a power of two */
	PK_DISKS_NEAR = 4,
	PK_RAN = 64,             /* turns on a CPU that are remembered; a power of two */
	/* Of shorter waits, one in so much time off the CPU stands for those between, ns; see strata.h. */
	PK_WAIT_PERIOD = 1000000,
};

/* pk_key.wait_part */
enum pk_wait_part {
	PK_WAIT_BLOCKED = 0,
	PK_WAIT_READY,   /* woken, or its turn was ended: it waits for a CPU */
	PK_WAIT_ONGOING, /* blocked, up to the moment when that was asked */
};

/* In which context a wakeup was. */
enum pk_waker_context {
	PK_WOKEN_BY_NOBODY = 0, /* that is known */
	PK_WOKEN_BY_TASK,
	PK_WOKEN_BY_KTHREAD,
	PK_WOKEN_BY_SOFTIRQ,
	PK_WOKEN_BY_INTERRUPT,
};

/* Who ended a wait. */
struct pk_waker {
	__u64 number;         /* a hash of the rest */
	__u64 who[PK_WAKERS]; /* labels: who woke, who had woken that one in the meantime; 0: no more */
	__u64 party;          /* for whom a thread of the kernel, or an interrupt, did it; 0: not known */
	__u64 kstack;         /* of the first, where it is a process */
	__u64 ustack;
	__u64 lock;           /* address of the futex that was waited for; 0: it was none */
	__u32 exec_id;        /* to which program image .ustack belongs, see pk_label */
	__u16 syscall;        /* PK_NO_SYSCALL */
	__u8 compat;
	__u8 context;         /* enum pk_waker_context, of the first */
	__be32 address[4];    /* of the other machine whose packet it was; of IPv4 in the first */
	__u8 family;          /* 0: it was none */
	__u8 question;        /* what came was sent to the passive end of a connection */
	__u8 vec;             /* of a softirq: enum pk_vec; of an interrupt: enum pk_exact_kind */
	__u8 pad[5];
};
static_assert(sizeof(struct pk_waker) == 104, "pk_waker has no hidden padding");

#endif
