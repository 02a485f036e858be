/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) OR Apache-2.0 */
/*
 * What the kernel side (bpf/) and the user side (src/) say to each other.
 *
 * Fixed widths, explicit padding, sizes asserted: this header is compiled by two compilers for two
 * machines. Whoever includes it has __u8 .. __u64 already (linux/types.h).
 */
#ifndef PKPROF_ABI_H
#define PKPROF_ABI_H

#ifndef __cplusplus
#define static_assert _Static_assert
#endif

enum {
	PK_MAX_CPUS = 1024, /* a power of two: hooks mask with it instead of testing */
	PK_MAX_DEPTH = 120, /* so that a table's element fits the kernel's 1 KiB size class */
	PK_SLOTS = 4096,    /* objects with work on account at one time; a power of two */
	PK_SLOT_CHARGES = 12,
	PK_NOTES = 16384,   /* pieces of work given and not yet done, of each kind; a power of two */
	PK_NOTE_TABLES = 3,
	PK_UNWINDS = 32768, /* addresses whose frames' sizes are remembered; a power of two */
	PK_UNWIND_CHECK = 256, /* of so many remembered stacks one is compared with what the kernel says */
	PK_FUNCTIONS = 128, /* functions that the sampler knows by address; a power of two */
	PK_CALL_SLOTS = 4096,    /* counts of calls that a CPU keeps; a power of two */
	PK_COMM_LEN = 16,
	PK_NAME_LEN = 128, /* of a kernel symbol as the ksym iterator hands it out */
	PK_MODULE_LEN = 56,
};

/*
 * A label's number: thread group id in the upper half, the process's start (boot time in units of
 * 2^20 ns, cut to 32 bits) in the lower. A pid cannot come round again within such a unit. The
 * idle task has pid 0 on every CPU, so numbers below 2^32 are free for what is not a process.
 *
 * With pk_config.threads a label is a thread's: its own id and its own start. Where it is known for
 * which process work was, but not for which of its threads, the number is the process's with
 * PK_ANY_THREAD added.
 */
enum pk_special {
	PK_IDLE = 1,
	PK_KERNEL = 2,
	PK_HOST = 3, /* other machines on the same hardware: stolen from this one */
	PK_UNCLAIMED = 0x100, /* + enum pk_reason */
};

/* Why nobody was charged. */
enum pk_reason {
	PK_EXPIRED = 0, /* the work ended and no one was seen to take its result */
	PK_DROPPED,     /* the packet was thrown away before it had a socket */
	PK_FORWARDED,   /* the packet went on to another machine or namespace */
	PK_ARP,         /* address resolution: for the network, not for a process */
	PK_ICMP,        /* control messages that no socket asked for */
	PK_PROTOCOL,    /* other protocols without a socket */
	PK_UNTRACKED,   /* a mechanism that pkprof does not follow yet */
	PK_LOST,        /* a table was full: see the counters */
	PK_UNWATCHED,   /* the work was given while pkprof was not watching */
	PK_REASONS,
};

/* In the number of an object, never in a label: a party may be either (bpf/who/party.bpf.h). */
#define PK_OBJECT (1ULL << 63)

/* Thread ids are below 2^22 (PID_MAX_LIMIT). */
#define PK_ANY_THREAD (1ULL << 62)
/*
 * A process at work for a client (clients_abi.h): the place of that client by way of that process.
 * Whoever is charged by this number, the client is the one behind that place.
 */
#define PK_AT_WORK (1ULL << 61)
/* In a number of a process or thread: the kernel's own, since it has none where pkprof runs. */
#define PK_OUTSIDE (1U << 28)

/* What kind of number pk_key.served is. */
enum pk_served_kind {
	PK_SERVED_LABEL = 0,  /* a label or a special label */
	PK_SERVED_OBJECT = 1, /* an object whose owner user space finds */
};

/* What the CPU was doing. */
enum pk_kind {
	PK_USER = 0,
	PK_OWN = 1,     /* kernel, in the task's own context: syscall or fault */
	PK_SOFTIRQ = 2, /* .vec says which */
	PK_KTHREAD = 3,
	PK_IDLING = 4,
	PK_WORK = 5, /* a kernel thread at a piece of work that was queued */
	PK_INTERRUPT = 6, /* a hard interrupt, by its entry and exit; .vec says which kind */
	PK_STOLEN = 7,    /* not this machine's time */
	PK_MEASURED = 8,  /* a task's turn or a softirq, by its entry and exit; .vec says which */
	PK_CALLS = 9,     /* calls of a function: .kstack, from .ustack; .samples of them */
	PK_WAIT = 10,     /* time off the CPU, see waits_abi.h; .samples waits */
	PK_USAGE = 11,    /* of another resource than time, see usage_abi.h */
};

/* Softirq vectors as the kernel numbers them (include/linux/interrupt.h). */
enum pk_vec {
	PK_VEC_HI = 0,
	PK_VEC_TIMER = 1,
	PK_VEC_NET_TX = 2,
	PK_VEC_NET_RX = 3,
	PK_VEC_BLOCK = 4,
	PK_VEC_IRQ_POLL = 5,
	PK_VEC_TASKLET = 6,
	PK_VEC_SCHED = 7,
	PK_VEC_HRTIMER = 8,
	PK_VEC_RCU = 9,
	PK_VEC_NONE = 0xff, /* between the vectors: softirq entry and exit */
};

/* What is measured by entry and exit: hard interrupts and, where all of it is, the rest. */
enum pk_exact_kind {
	PK_EXACT_DEVICE = 0, /* pk_key.syscall is its number, .kstack its handler */
	PK_EXACT_TIMER,      /* the CPU's own timer; .kstack: the high-resolution timer's function */
	PK_EXACT_CALL,       /* another CPU wants a function called; .kstack is the function */
	PK_EXACT_RESCHEDULE, /* another CPU wants this one to look whether to run another task */
	PK_EXACT_WORK,       /* what this CPU put off until it could be interrupted */
	PK_EXACT_RUN,        /* a task was on the CPU, but for interrupts and softirqs */
	PK_EXACT_SOFTIRQ,    /* a softirq; pk_key.syscall is the vector */
};

/* Same numbers as pkprof::Basis. */
enum pk_basis {
	PK_BASIS_OWN = 0,
	PK_BASIS_CONSUMED = 1,
	PK_BASIS_OWNER = 2,
	PK_BASIS_SUBMITTER = 3,
	PK_BASIS_DIRTIER = 4,
	PK_BASIS_QUEUER = 5,
	PK_BASIS_VOTED = 6,
	PK_BASIS_PROVISIONAL = 7,
};

enum { PK_NO_SYSCALL = 0xffff };

/* What samples are counted under. */
struct pk_key {
	union {
		__u64 ran_on; /* label */
		__u64 waker;  /* of PK_WAIT and PK_WAIT_BLOCKED: number of a pk_waker; 0: not known */
	};
	__u64 served; /* label or object, see served_kind */
	union {
		__u64 kstack;   /* number of a pk_stack, 0 for none */
		__u64 function; /* of PK_INTERRUPT, PK_MEASURED and PK_CALLS: its address */
		__u64 device;   /* of PK_USAGE of disks and networks: PK_DEVICE() */
	};
	union {
		__u64 ustack;        /* of the task in its own context, or of the consumer */
		__u64 work_function; /* of PK_WORK: its address */
		__u64 caller;        /* of PK_CALLS: where it was called from, and returns to */
	};
	union {
		__u16 syscall; /* that the task (or the consumer) was in; PK_NO_SYSCALL */
		__u16 number;  /* of PK_INTERRUPT and PK_MEASURED: the interrupt's, or the softirq's */
	};
	__u8 compat;  /* the syscall number is of the 32-bit table */
	__u8 kind;    /* enum pk_kind */
	union {
		__u8 vec;        /* enum pk_vec, for PK_SOFTIRQ */
		__u8 exact_kind; /* enum pk_exact_kind, for PK_INTERRUPT and PK_MEASURED */
		__u8 wait_part;  /* enum pk_wait_part, for PK_WAIT */
		__u8 usage;      /* enum pk_usage, for PK_USAGE */
	};
	__u8 basis;   /* enum pk_basis */
	__u8 served_kind;
	union {
		__u8 reason; /* PK_SERVED_OBJECT: enum pk_reason should nobody own it */
		__u8 futex;  /* of PK_WAIT in futex(): 1 + the operation */
		__u8 lock;   /* of PK_LOCK_WAITED in a process's own context: enum pk_lock_flags */
	};
	__u32 exec_id; /* which program image of its process ustack belongs to, see pk_label */
	__u32 client; /* for which the process works that is served: see clients_abi.h; 0: for itself */
};
static_assert(sizeof(struct pk_key) == 48, "pk_key has no hidden padding");

struct pk_count {
	__u64 ns;
	__u64 samples; /* of PK_INTERRUPT: how often */
};

struct pk_stack {
	__u64 depth;
	__u64 ip[PK_MAX_DEPTH]; /* leaf first */
};
static_assert(sizeof(struct pk_stack) == 968, "pk_stack has no hidden padding");

enum { PK_LABEL_KTHREAD = 1 };

/* A process as it was when a sample or a consumption met it. */
struct pk_label {
	__u64 start_boottime; /* ns */
	__u64 cgroup;         /* id in the cgroup v2 hierarchy */
	__u32 pid;            /* thread group id */
	__u32 parent;
	__u32 flags;
	__u32 uid;
	__u64 seen;    /* ktime when this was noted */
	__u32 exec_id; /* task_struct.self_exec_id then: grows by one at each exec */
	__u32 tid;     /* of the thread that was met */
	char comm[PK_COMM_LEN]; /* of the group leader */
	char first_comm[PK_COMM_LEN]; /* the same when it was first met after that exec */
	char thread_comm[PK_COMM_LEN]; /* of the thread */
	__u64 program; /* file of the program, as in pk_mapped; 0: not known */
};
static_assert(sizeof(struct pk_label) == 104, "pk_label has no hidden padding");

/* Records in the ring of what sampled processes have mapped. */
enum pk_mapped_kind {
	PK_MAPPED = 1,
	PK_FILE_NAME, /* before the first record with the file's number */
};

/* Files that have no name. */
enum pk_no_file {
	PK_FILE_NONE = 0,
	PK_FILE_VDSO = 1,
	PK_FILE_FIRST = 16, /* numbers of others, from here on */
};

/*
 * A frame of a user stack that lies in a file has the lowest bits of the file's number above its
 * address: files come and go at one place, and so do the numbers of their stacks.
 */
#define PK_FRAME_FILE_SHIFT 48
#define PK_FRAME_FILE_MASK 0x3fffULL
#define PK_FRAME_IN_FILE (1ULL << 62)

/* Executable memory of a process in which a stack's frame lies. */
struct pk_mapped {
	__u32 kind;
	__u32 pid;  /* thread group id */
	__u64 seen; /* ktime */
	__u64 start;
	__u64 end;
	__u64 offset; /* of .start in the file, bytes */
	__u64 file;   /* number of the file, or enum pk_no_file */
};
static_assert(sizeof(struct pk_mapped) == 48, "pk_mapped has no hidden padding");

enum {
	PK_PATH_LEN = 1024, /* of a path's names together, about */
	PK_PATH_NAME = 256, /* of one, with its NUL */
};
enum pk_path_flags {
	PK_PATH_DELETED = 1,
	PK_PATH_CUT = 2, /* there are more directories than there was room for */
};

/* A file's names, from its own up to the root of the process that had it mapped, each with its NUL. */
struct pk_file_name {
	__u32 kind;
	__u32 flags; /* enum pk_path_flags */
	__u64 file;
	__u64 inode;
	__u32 device; /* as in the kernel: 12 bits for the major, 20 for the minor number */
	__u32 length; /* of .names */
	char names[PK_PATH_LEN + PK_PATH_NAME];
};
static_assert(sizeof(struct pk_file_name) == 32 + PK_PATH_LEN + PK_PATH_NAME, "pk_file_name");

/* Work on account, not yet charged to anyone: one stack's worth of samples. */
struct pk_charge {
	__u64 ran_on;
	__u64 kstack;
	__u64 ns;
	__u32 samples;
	__u8 kind;
	__u8 vec;
	__u8 reason; /* should the object never be claimed */
	__u8 pad;
};
static_assert(sizeof(struct pk_charge) == 32, "pk_charge has no hidden padding");

/* The account of one object in flight. */
struct pk_slot {
	__u64 object;
	__u32 lock;
	__u32 used;
	struct pk_charge charge[PK_SLOT_CHARGES];
};
static_assert(sizeof(struct pk_slot) == 16 + 32 * PK_SLOT_CHARGES, "pk_slot");

/* Exact time of one kind that is not in the tables yet. */
struct pk_exact {
	__u64 ran_on;
	__u64 served; /* label or, with PK_OBJECT, object */
	__u64 function;
	__u64 ns;
	__u32 count;
	__u16 number;
	__u8 kind; /* enum pk_exact_kind */
	__u8 basis;
};
static_assert(sizeof(struct pk_exact) == 40, "pk_exact has no hidden padding");

/*
 * Calls of one function from one place for one party that are not in the tables yet: a line of the
 * cache. Whoever finds it locked does without it.
 */
struct pk_call {
	__u64 function;
	__u64 caller; /* where it returns to; 0: not known */
	__u64 served; /* label or, with PK_OBJECT, object */
	__u64 count;
	__u32 lock;
	__u32 how; /* see PK_CALL_HOW */
	__u64 pad[3];
};
static_assert(sizeof(struct pk_call) == 64, "pk_call is a line of the cache");

/* Why the party is it, and what to say where nobody owns it. */
#define PK_CALL_HOW(basis, reason) ((basis) | (reason) << 8)
#define PK_CALL_BASIS(how) ((how) & 0xff)
#define PK_CALL_REASON(how) ((how) >> 8 & 0xff)
/* The party is the thread itself: it is a kernel thread that nobody gave any work. */
#define PK_CALL_OF_THREAD (1U << 16)

/* For whom an object is, as noted when the work was given. */
struct pk_note {
	__u64 check; /* object ^ party */
	__u64 party;
};

/* What an object is for several; user space adds up and splits. */
struct pk_vote_key {
	__u64 object;
	__u64 party;
};

struct pk_vote {
	__u64 weight; /* in proportion to what the party is to bear */
	__u16 fades;  /* what is older counts less */
	__u16 anew;   /* the object begins anew: what was before does not count */
	__u16 fallback; /* it counts only where nothing else is known in the end */
	__u16 pad;
};

#include "clients_abi.h"
#include "waits_abi.h"
#include "usage_abi.h"
#include "config.h"

/* Per-CPU counters; what went wrong is never silent. */
struct pk_stats {
	__u64 samples;
	__u64 clock_interrupts; /* of the sampling clock, by entry and exit: so many were timed, */
	__u64 clock_ns;      /* and took so long, with their samples */
	__u64 lost_ns;       /* CPU time that found no place in the tables */
	__u64 lost_samples;
	__u64 unwound;       /* stacks that the kernel was asked for as a whole */
	__u64 unwound_wrong; /* that were remembered otherwise */
	__u64 no_kstack;     /* stacks that could not be taken */
	__u64 no_ustack;
	__u64 mappings_lost; /* not told: for want of room, or in the middle of telling another */
	__u64 stacks_full;   /* stacks that found no place */
	__u64 rows_shortened; /* samples that lost their stacks for a row to find a place */
	__u64 labels_full;
	__u64 votes_full;
	__u64 network;        /* samples of what the network's hooks name */
	__u64 needed_packets; /* of them, that needed the hooks of PK_REST_PACKETS, about, */
	__u64 needed_sending; /* and those of PK_REST_SENDING */
	__u64 taken_in_vain;  /* a socket was asked for data and had none */
	__u64 calls_lost;      /* that found no place in the tables */
	__u64 calls_shortened; /* whose caller was left out for want of rows */
	__u64 calls_voted;     /* that could not wait to be known whom they are for */
	__u64 unix_messages;   /* sent over Unix sockets, where servers' clients are asked for */
	__u64 clients_full;    /* clients that found no place: work for them counts as a server's own */
	__u64 usage_lost;      /* rows of waits and other resources that found no place in the tables */
	__u64 waiters_full;    /* threads that found no place: waits of theirs are not known */
};

/* One entry of the ksym iterator. */
struct pk_ksym {
	__u64 address;
	__u32 type; /* 'T', 't', ... */
	__u32 pad;
	char name[PK_NAME_LEN];
	char module[PK_MODULE_LEN];
};

#endif
