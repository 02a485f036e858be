/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) OR Apache-2.0 */
/*
 * What user space tells the kernel side before it counts: what is asked for, and where in this
 * kernel what lies. A part of abi.h.
 */
#ifndef PKPROF_CONFIG_H
#define PKPROF_CONFIG_H

/* Hooks whose runs are counted together, since they cost about the same. */
enum pk_hook_group {
	PK_HOOKS_WORK,       /* for each packet, page or timer */
	PK_HOOKS_LASTING,    /* rare, and note who owns what for long: they stay on between windows */
	PK_HOOKS_DISKS,      /* for each disk request */
	PK_HOOKS_INTERRUPTS, /* for each hard interrupt */
	PK_HOOKS_MEASURE,    /* for each task's turn and each softirq; where all of the time is measured */
	PK_HOOKS_CALLS,      /* for each softirq, what it is for and each call; where calls are counted */
	PK_HOOKS_CLIENTS,    /* for each message and each wakeup; where servers' clients are asked for */
	PK_HOOKS_WAITS,      /* for each task's turn and each wakeup; where waiting is asked for */
	PK_HOOKS_USAGE,      /* for each packet, page, request or lock; where those resources are asked for */
	PK_HOOK_GROUPS,
};

/* Hooks that are off while samples do not need them (src/cost/resting_hooks.h). */
enum pk_rest {
	PK_REST_PACKETS = 1, /* on received packets: the stack says which packet it is */
	PK_REST_SENDING = 2, /* on packets that are sent */
	PK_REST_TAKING = 4,  /* on data that is taken from sockets other than TCP's */
	PK_REST_ARRIVALS = 8, /* on messages of Unix sockets as they are copied: there are none */
};

/* Functions whose frames tell the sampler where in asynchronous work it is. */
enum pk_function_class {
	PK_FN_NONE = 0,
	PK_FN_SOFTIRQ,     /* the loop over the vectors: everything below it is someone else's */
	PK_FN_NAPI_THREAD, /* the same for a threaded NAPI */
	PK_FN_ACTION,      /* a vector's function; .arg is the vector */
	PK_FN_RECEIVE,     /* protocol processing of one packet; .arg: of a list of them */
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
	PK_FN_SYSCALL,     /* the first function of every system call */
	PK_FN_NAMED,       /* what it calls comes after the hook that names the packet's socket */
	PK_FN_HOOK,        /* around a program on a tracepoint */
	PK_FN_PUT_OFF,     /* queued work that RCU's callbacks queue, mostly: the rest of an end */
	PK_FN_CLASSES,
};

/* What of these a stack has: a word of bits. */
enum pk_at {
	PK_AT_RECEIVE = 1 << PK_FN_RECEIVE,
	PK_AT_TAP = 1 << PK_FN_TAP,
	PK_AT_TRANSMIT = 1 << PK_FN_TRANSMIT,
	PK_AT_TIMER = 1 << PK_FN_TIMER,
	PK_AT_SEND = 1 << PK_FN_SEND,
	PK_AT_QDISC = 1 << PK_FN_QDISC,
	PK_AT_DELIVER = 1 << PK_FN_DELIVER,
	PK_AT_BACKLOG = 1 << PK_FN_BACKLOG,
	PK_AT_STEER = 1 << PK_FN_STEER,
	PK_AT_FREE = 1 << PK_FN_FREE,
	PK_AT_HANDOVER = 1 << PK_FN_HANDOVER,
	PK_AT_SOFTIRQ = 1 << PK_FN_SOFTIRQ,
	PK_AT_NAPI_THREAD = 1 << PK_FN_NAPI_THREAD,
	PK_AT_CALL_TIMER = 1 << PK_FN_CALL_TIMER,
	PK_AT_COMPLETE = 1 << PK_FN_COMPLETE,
	PK_AT_RECLAIM = 1 << PK_FN_RECLAIM,
	PK_AT_NAMED = 1 << PK_FN_NAMED,
	PK_AT_HOOK = 1 << PK_FN_HOOK,
	PK_AT_PUT_OFF = 1 << PK_FN_PUT_OFF,
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
	PK_KNOWN_QUOTA,           /* the scheduler's own: what groups may use of CPUs, */
	PK_KNOWN_QUOTA_SLACK,     /* and what they leave, */
	PK_KNOWN_DEADLINE,        /* deadlines, */
	PK_KNOWN_SLICE,           /* and the ends of turns */
	PK_KNOWN_BARRIER,         /* work that tells that work before it is done */
	PK_KNOWN_STEER,           /* an IPI that tells of packets */
	PK_KNOWN_STEER_BACK,      /* an IPI that tells of packets' buffers to be freed */
	PK_KNOWN_WAKE,            /* an IPI that has a CPU wake a process */
	PK_KNOWN_RUN_QUEUE,       /* work that sends a disk the requests that wait for it */
	PK_KNOWN_PRESSURE,        /* work of the scheduler's own, queued while it turns to another process */
	PK_KNOWN_RETURN_TRACED,   /* where functions return to that are traced, */
	PK_KNOWN_RETURN_PROBED,   /* and those whose returns are probed */
	PK_KNOWN_TEXT,            /* the kernel's code, without modules */
	PK_KNOWN_TEXT_END,
	PK_KNOWN_ORC_ADDRESSES,   /* tables of how its frames are left; see bpf/stack/orc.bpf.h */
	PK_KNOWN_ORC,
	PK_KNOWN_ORC_END,
	PK_KNOWNS,
};

/* Whether servers' time is charged to their clients, too. */
enum pk_clients_wanted {
	PK_CLIENTS_WANTED = 1,
	PK_CLIENTS_PORTS = 2, /* those on other machines by their ports */
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
	__u64 tick_sched;
	__u64 packets;            /* received on a CPU */
	__u64 share_calls;        /* functions that CPUs call for one another: by votes, not by notes */
	__u64 measure;            /* all of the time, by entry and exit */
	__u64 threads;            /* labels are threads', not processes' */
	__u64 pid_namespace;      /* in which pkprof runs; 0: the machine's own */
	__u64 mappings;           /* someone reads what sampled processes have mapped, */
	__u64 unwind;             /* and makes tables of how their frames are left */
	__u64 clients;            /* enum pk_clients_wanted */
	__u64 debox;              /* DeBox's threads are told what is done for them elsewhere */
	__u64 debox_tids;         /* where in its memory the threads' numbers are, */
	__u64 debox_threads;      /* and the threads, */
	__u64 debox_done;         /* and what CPUs completed last */
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

#endif
