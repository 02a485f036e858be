/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) OR Apache-2.0 */
/*
 * What the kernel side (bpf/) and the user side (src/collect) say to each other.
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
	PK_FUNCTIONS = 128, /* functions that the sampler knows by address; a power of two */
	PK_LEVELS = 4,      /* of contexts that interrupt one another, rounded up to a power of two */
	PK_TOLD = 16,       /* labels that a CPU knows to be fresh in their table; a power of two */
	PK_PENDING = 8,     /* votes of a level that a CPU keeps; a power of two */
	PK_EXACT_ROWS = 8,  /* rows of exact time that a CPU keeps; a power of two */
	PK_CALL_SLOTS = 4096,    /* counts of calls that a CPU keeps; a power of two */
	PK_CALLS_PENDING = 128,  /* calls in a softirq whose party is not known yet; a power of two */
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
	PK_UNWATCHED,   /* the hooks were off, and nothing alike was seen while they were on */
	PK_REASONS,
};

/* In the number of an object, never in a label: a party may be either (bpf/party.bpf.h). */
#define PK_OBJECT (1ULL << 63)

/* Thread ids are below 2^22 (PID_MAX_LIMIT). */
#define PK_ANY_THREAD (1ULL << 62)

/* What kind of number pk_key.served is. */
enum pk_served_kind {
	PK_SERVED_LABEL = 0,  /* a label or a special label */
	PK_SERVED_OBJECT = 1, /* an object whose owner user space finds */
	PK_SERVED_UNWATCHED = 2, /* the hooks were off: user space charges it as what is alike */
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
	__u64 ran_on; /* label */
	__u64 served; /* label or object, see served_kind */
	__u64 kstack; /* number of a pk_stack, 0 for none; of PK_INTERRUPT: address of a function */
	__u64 ustack; /* of the task in its own context, or of the consumer; of PK_WORK: its function */
	__u16 syscall; /* that the task (or the consumer) was in; PK_NO_SYSCALL; number of an interrupt */
	__u8 compat;  /* the syscall number is of the 32-bit table */
	__u8 kind;    /* enum pk_kind */
	__u8 vec;     /* enum pk_vec, for PK_SOFTIRQ; enum pk_exact_kind, for PK_INTERRUPT */
	__u8 basis;   /* enum pk_basis */
	__u8 served_kind;
	__u8 reason; /* PK_SERVED_OBJECT: enum pk_reason should nobody own it */
	__u32 exec_id; /* which program image of its process ustack belongs to, see pk_label */
	__u8 watched;  /* work that hooks name, sampled while they were on */
	__u8 pad[3];
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
	char thread_comm[PK_COMM_LEN]; /* of the thread */
};
static_assert(sizeof(struct pk_label) == 80, "pk_label has no hidden padding");

/* Work on account, not yet charged to anyone: one stack's worth of samples. */
struct pk_charge {
	__u64 ran_on;
	__u64 kstack;
	__u64 ns;
	__u32 samples;
	__u8 kind;
	__u8 vec;
	__u8 reason; /* should the object never be claimed */
	__u8 watched; /* see pk_key */
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

#define PK_NO_CALL (~0U)

/* Of a CPU: calls in a softirq that wait for it to be known whom they are for, in a ring. */
struct pk_waiting_calls {
	__u32 start; /* numbers of calls, of which the low bits are places */
	__u32 end;
	__u32 next; /* from here on they are for the packet to come; PK_NO_CALL: none is */
	__u32 how;  /* of those that are being counted */
	__u64 party;
	__u64 packet; /* that is being received, and what its headers say; 0: none was yet */
	__u64 datagram;
	__u64 object;
	__u64 listener;
	__u32 reason;
	__u32 shared;
	struct {
		__u64 function;
		__u64 caller;
	} call[PK_CALLS_PENDING];
	struct pk_label who[PK_LEVELS]; /* to be told, by pk_call_level() */
};
static_assert(sizeof(struct pk_waiting_calls) ==
		      64 + 16 * PK_CALLS_PENDING + PK_LEVELS * sizeof(struct pk_label),
	      "pk_waiting_calls has no hidden padding");

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
	__u16 failing; /* it counts only where nothing else is known in the end */
	__u16 pad;
};

/* A label that is fresh in its table. */
struct pk_told {
	__u64 label;
	__u32 epoch;   /* in which it was told, */
	__u32 exec_id; /* and of which program the process was then */
};

/* A vote that was not counted yet; where it is of weight 0, there is none. */
struct pk_pending {
	struct pk_vote_key key;
	struct pk_vote vote;
};

/* Functions whose frames tell the sampler where in asynchronous work it is. */
enum pk_function_class {
	PK_FN_NONE = 0,
	PK_FN_SOFTIRQ,     /* the loop over the vectors: everything below it is someone else's */
	PK_FN_NAPI_THREAD, /* the same for a threaded NAPI */
	PK_FN_ACTION,      /* a vector's function; .arg is the vector */
	PK_FN_RECEIVE,     /* protocol processing of one packet */
	PK_FN_TAP,         /* delivery to a packet socket */
	PK_FN_TRANSMIT,    /* a packet on its way out */
	PK_FN_TIMER,       /* a socket's timer; .arg is an enum pk_timer */
	PK_FN_SEND,        /* deferred sending by a protocol */
	PK_FN_QDISC,
	PK_FN_DELIVER,     /* delivery to one of several receivers */
	PK_FN_BACKLOG,     /* the loop over packets that this CPU was given (veth, loopback, steering) */
	PK_FN_STEER,       /* telling other CPUs of packets queued for them */
	PK_FN_FREE,        /* freeing buffers that other CPUs gave back */
	PK_FN_HANDOVER,    /* taking a packet from a driver, perhaps joining it with others */
	PK_FN_UNLOCK,      /* the last call of the high-resolution timers' vector */
	PK_FN_RUNNER,      /* around tasklets' functions: for whom is not to be seen from it */
	PK_FN_CALL_TIMER,  /* around a timer's function */
	PK_FN_COMPLETE,    /* the end of a disk request */
	PK_FN_RECLAIM,     /* running what was put off until no one could use it any more (RCU) */
};

enum pk_timer {
	PK_TIMER_RETRANSMIT,
	PK_TIMER_DELACK,
	PK_TIMER_KEEPALIVE,
	PK_TIMER_PACING,
	PK_TIMER_COMPRESSED_ACK,
	PK_TIMER_REQUEST,
	PK_TIMERS,
};

/* Functions whose address tells what a timer or a kernel thread is. */
enum pk_known {
	PK_KNOWN_PROCESS_TIMEOUT, /* a timer that wakes a process */
	PK_KNOWN_LOOP_ROOT,       /* work for a disk that lies in a file */
	PK_KNOWN_LOOP,            /* the same for a control group's */
	PK_KNOWN_KTHREAD_WORKER,  /* a thread that works on a queue */
	PK_KNOWN_JOURNAL,         /* the thread of a file system's journal */
	PK_KNOWN_KSWAPD,
	PK_KNOWN_KCOMPACTD,
	PK_KNOWN_KHUGEPAGED,
	PK_KNOWN_OOM_REAPER,
	PK_KNOWN_RCU_OFFLOADED,   /* a thread that frees what another CPU put off */
	PK_KNOWN_WAKEUP,          /* a high-resolution timer that wakes a process */
	PK_KNOWN_TICK,            /* one that is the kernel's clock */
	PK_KNOWN_PERF_CLOCK,      /* one that takes samples */
	PK_KNOWN_BARRIER,         /* work that tells that work before it is done */
	PK_KNOWN_STEER,           /* an IPI that tells of packets */
	PK_KNOWN_STEER_BACK,      /* an IPI that tells of packets' buffers to be freed */
	PK_KNOWNS,
};

struct pk_function {
	__u64 start;
	__u64 end; /* first address past it */
	__u32 class_; /* enum pk_function_class */
	__u32 arg;
};

/* Set before loading, constant afterwards. */
struct pk_config {
	__u64 seed;               /* of every hash, so that no one can aim at a collision */
	__u64 runqueues;          /* offsets in the per-CPU area, from BTF; 0 when not known */
	__u64 kernel_stat;
	__u64 preempt_count;
	__u64 softirq_pending;
	__u64 cpustat;
	__u64 share_calls;        /* functions that CPUs call for one another: by votes, not by notes */
	__u64 measure;            /* all of the time, by entry and exit */
	__u64 threads;            /* labels are threads', not processes' */
	__u64 calls;              /* calls of functions are counted, too */
};

/*
 * Where functions are in this kernel: set before anything is attached, constant afterwards. Not in
 * pk_config, because finding them takes longer than to load what uses them.
 */
struct pk_addresses {
	__u64 timer_function[PK_TIMERS]; /* by enum pk_timer; 0 when not known */
	__u64 known[PK_KNOWNS];          /* the same by enum pk_known */
	struct pk_function functions[PK_FUNCTIONS];
};

/* Per-CPU counters; what went wrong is never silent. */
struct pk_stats {
	__u64 samples;
	__u64 timed;         /* of them; in the others something else took the CPU */
	__u64 timed_ns;      /* that they took */
	__u64 lost_ns;       /* CPU time that found no place in the tables */
	__u64 lost_samples;
	__u64 no_kstack;     /* stacks that could not be taken */
	__u64 no_ustack;
	__u64 stacks_full;   /* stacks that found no place */
	__u64 rows_shortened; /* samples that lost their stacks for a row to find a place */
	__u64 labels_full;
	__u64 votes_full;
	__u64 calls;           /* counted */
	__u64 calls_lost;      /* that found no place in the tables */
	__u64 calls_shortened; /* whose caller was left out for want of rows */
	__u64 calls_voted;     /* that could not wait to be known whom they are for */
};

/* What a packet's headers say. */
struct pk_packet_info {
	__u64 object; /* TCP connection or UDP port it is addressed to, 0 for none */
	__u64 ends;   /* both ends of it, in whatever namespace it is */
	__u64 datagram; /* number of the datagram that this is a fragment of, 0 if it is whole */
	__u64 listener; /* of TCP: who listens on the port, if anyone does */
	__u8 waits;   /* a consumer will test for the object: it may stay on account */
	__u8 reason;  /* to give when nobody claims it */
	__u8 shared;  /* to a multicast or broadcast address: may have several receivers */
	__u8 pad[5];
};

/* Where an account that waits for a hook stands. */
enum pk_phase {
	PK_PHASE_NONE = 0,
	PK_PHASE_BEFORE,   /* receiving, outside any packet: it is for the next one */
	PK_PHASE_PACKET,   /* inside a packet whose receiver is not known yet */
	PK_PHASE_TRANSMIT, /* sending, before the packet is known */
	PK_PHASE_REQUEST,  /* completing disk requests, before one is known */
	PK_PHASE_ENTRY,    /* in the softirq loop, before the vector is known */
};

/*
 * One CPU. The hooks' fast paths touch the first line of the cache and nothing else: up to four
 * stores, a count and a test. The sampler fills the account when it meets asynchronous work that
 * it cannot name.
 */
struct pk_cpu {
	__u64 skb;    /* packet in protocol processing */
	__u64 dev;    /* that it came by: the stack forgets it on the way up */
	__u64 from;   /* the socket that sent it, where that is on this machine */
	__u64 sk;     /* the socket it turned out to be for, 0 before */
	__u64 tx_sk;  /* socket of the packet queued for sending last, 0 if it has none */
	__u64 hrtimer; /* that expired last in a softirq */
	__u32 armed;  /* enum pk_phase: an account waits for the next hook */
	__u16 busy;   /* a slow path is at work on the account */
	__u16 sent;   /* .tx_sk is of a packet that was queued since .skb was received */
	__u64 hits;   /* runs of hooks */

	/* The account that waits. */
	struct pk_charge charge;
	__u64 task;      /* that the softirq interrupted */
	__u64 packet;    /* skb, in PK_PHASE_PACKET */
	__u64 datagram;  /* number of the datagram of which the packet is a fragment, or 0 */
	__u64 object;    /* that gets the charge if no hook names a better one; 0 for none */
	__u64 listener;  /* on whose behalf, if .object is a connection that is never accepted */
	__u64 carried;   /* number of the packet, if it came with an account of its own */
	__u64 sockets[4]; /* receivers of a multicast packet so far */
	__u32 receivers;
	__u32 runs;      /* softirq runs of this vector on this CPU, when the account was opened */
	__u8 tap;        /* the sample was inside delivery to a packet socket */
	__u8 shared;     /* packet for several receivers: split among them */
	__u8 waits;      /* .object has a consumer to come: it may stay on account */
	__u8 guess;      /* .object is no more than likely */
	__u8 pad[4];

	__u64 rare_hits; /* runs of hooks that no budget turns off */
	__u64 disk_hits; /* of those on disk requests */

	/* The hard interrupt that is being handled; see interrupt.bpf.c. */
	__u64 irq_hits;     /* runs of its hooks */
	__u64 irq_since;    /* begin of the part of it that is not counted yet; 0: in none */
	__u64 irq_begin;    /* of all of it, or of the last one */
	__u64 irq_end;      /* of the last one that ended */
	__u64 irq_before;   /* when the one before it began */
	__u64 irq_ns;       /* counted and not off a sample yet; below 0: off one, to be counted */
	__u64 irq_sum;      /* counted ever */
	__u64 irq_sum_at_begin;
	__u64 due;          /* when the sampling clock was to tick */
	struct pk_exact irq; /* what the part is, and whom it is for */
	__u8 irq_in_softirq;        /* it came in the middle of a softirq */
	__u8 irq_before_in_softirq; /* and so did the one before it */
	__u8 measuring;             /* a softirq's end is being measured */
	__u8 pad4;

	/* Where all of the time is measured; see measure.bpf.c. */
	__u32 exact_epoch;  /* in which the rows were put into the tables last */
	struct pk_exact exact[PK_EXACT_ROWS];
	struct pk_exact run;
	struct pk_exact softirq;
	__u64 run_since;    /* the current task's time is measured up to here; 0: not yet */
	__u64 run_off;      /* of interrupts and softirqs ever, up to then */
	__u64 run_stolen;   /* by the host, and not off a turn yet */
	__u64 softirq_since; /* begin of the softirq that runs; 0: none does */
	__u64 softirq_off;  /* of interrupts ever, up to then */
	__u64 softirq_sum;  /* in softirqs ever */

	/* The sampler's own. */
	__u64 last_ns;    /* time of the last sample */
	__u64 steal;      /* time stolen from this CPU, up to then */
	__u64 carried_ns; /* of samples that were for an interrupt, which is counted otherwise */
	__u64 work_function; /* of the piece of work that is being sampled */
	struct pk_told told[PK_TOLD];
	__u8 idle;        /* the last sample, or look, met the idle task */
	__u8 watched;     /* the hooks were on at the last sample and at this one */
	__u8 disks_watched; /* and those on disk requests */
	__u8 pad2[5];
	struct pk_charge sample; /* what is being sampled */
	__u64 plain;      /* see pk_plain() */
	__u64 expiring;   /* timer whose function runs, or ran last */
	__u64 done;       /* party of the disk request that was completed last */
	__u64 disk_irq;   /* number of the interrupt that completed one last */
	__u64 done_in;    /* interrupts on this CPU up to then: see pk_done_here() */
	__u64 sent_on;    /* bio that a thread is about to send on, and the thread; see block.bpf.c, */
	__u64 sent_on_for; /* and the bio's party */
	__u64 dirtied;    /* inode of which a page was made dirty last, */
	__u64 dirtied_number; /* its i_ino: memory comes round again, */
	__u64 dirtier;    /* the process that did so, */
	__u64 dirtied_object; /* and the number of the file */
	__u64 loop;       /* loop device that a request was for last, */
	__u64 loop_file;  /* its file, */
	__u64 loop_object; /* and the numbers of both */
	__u64 loop_file_object;
	struct pk_pending pending[PK_LEVELS * PK_PENDING]; /* votes, by pk_level() */
	__u8 voting[PK_LEVELS]; /* those of a level are being written to */
	__u8 pad5[4];
	__u64 sender;     /* number of the socket that sending deferred to a softirq was for last */
	__u32 sampling;   /* inside the sampler, which may have interrupted a hook */
	__u32 window;     /* in which the last sample fell: what the hooks said before is stale */
	__u32 irq_window; /* the same of the hooks on interrupts */
	__u32 disk_window; /* and of those on disk requests */
	struct pk_packet_info info[PK_LEVELS]; /* read last, by pk_level(); the BPF stack is short */
	struct pk_label who[PK_LEVELS]; /* to be told, by pk_level() */
	struct pk_key row[PK_LEVELS]; /* for looking up counts, by pk_level() */
	__u64 percpu;     /* base of this CPU's per-CPU area, 0 before it is known */

	/* Where calls are counted; see calls.bpf.h. */
	__u64 calls_for;     /* whom the softirq that runs is for; 0: not known yet */
	__u32 calls_how;     /* see PK_CALL_HOW */
	__u32 calls_vec;     /* 1 + the vector that runs; 0: none does */
	__u64 calls_thread;  /* the thread that called last, */
	__u64 calls_process; /* and its process's label */
	__u64 calls_busy[PK_LEVELS]; /* task in which a call is being counted, by pk_call_level() */

	struct pk_stats stats;
} __attribute__((aligned(128)));

/* One entry of the ksym iterator. */
struct pk_ksym {
	__u64 address;
	__u32 type; /* 'T', 't', ... */
	__u32 pad;
	char name[PK_NAME_LEN];
	char module[PK_MODULE_LEN];
};

#endif
