/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) OR Apache-2.0 */
/*
 * What the kernel side keeps of each CPU between its programs. User space, which maps it, takes what
 * is left there at the end; everything else about it is the kernel side's own.
 */
#ifndef PKPROF_CPU_H
#define PKPROF_CPU_H

#include "abi.h"
#include "strata.h"

enum {
	PK_LEVELS = 4,      /* of contexts that interrupt one another, rounded up to a power of two */
	PK_RECEIVERS = 4,   /* of one packet that share what was done for it; a power of two */
	PK_FRESH_LABELS = 16, /* labels that a CPU knows to be fresh in their table; a power of two */
	PK_PENDING = 8,     /* votes of a level that a CPU keeps; a power of two */
	PK_EXACT_ROWS = 32, /* rows of exact time that a CPU keeps; a power of two */
	PK_CALLS_PENDING = 128,  /* calls in a softirq whose party is not known yet; a power of two */
};

/* Of a function that is known by address: which word of its frame is the packet; see bpf/net/packet.bpf.h. */
struct pk_packet_frame {
	__u32 word;
	__u32 found; /* there, so often more than not */
};

/* A label that is fresh in its table. */
struct pk_fresh_label {
	__u64 label;
	__u32 epoch;   /* in which it was told, */
	__u32 exec_id; /* and of which program the process was then */
};

/* A vote that was not counted yet; where it is of weight 0, there is none. */
struct pk_pending {
	struct pk_vote_key key;
	struct pk_vote vote;
};

/* What a packet's headers say. */
struct pk_packet_info {
	__u64 object; /* TCP connection or UDP port it is addressed to, 0 for none */
	__u64 ends;   /* both ends of it, in whatever namespace it is */
	__u64 datagram; /* number of the datagram that this is a fragment of, 0 if it is whole */
	__u64 listener; /* of TCP: who listens on the port, if anyone does */
	__u64 local;  /* address it is for, IPv6 folded */
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
 * The fast paths of hooks touch this line of the cache and nothing else: up to four stores, a count
 * and a test.
 */
struct pk_cpu_hot {
	__u64 skb;    /* packet in protocol processing */
	__u64 dev;    /* that it came by: the stack forgets it on the way up */
	__u64 from;   /* the socket that sent it, where that is on this machine */
	__u64 sk;     /* the socket it turned out to be for, 0 before */
	__u64 tx_sk;  /* socket of the packet queued for sending last, 0 if it has none */
	__u64 hrtimer; /* that expired last in a softirq */
	__u32 armed;  /* enum pk_phase: an account waits for the next hook */
	__u16 busy;   /* a slow path is at work on the account */
	__u16 sent;   /* .tx_sk is of a packet that was queued since .skb was received */
	__u64 runs[PK_HOOK_GROUPS]; /* of hooks; in this line those that run for each packet, page or timer */
};

/* The account that waits: the sampler met asynchronous work that it cannot name. */
struct pk_cpu_account {
	struct pk_charge charge;
	__u64 task;      /* that the softirq interrupted */
	__u64 packet;    /* skb, in PK_PHASE_PACKET */
	__u64 datagram;  /* number of the datagram of which the packet is a fragment, or 0 */
	__u64 object;    /* that gets the charge if no hook names a better one; 0 for none */
	__u64 listener;  /* on whose behalf, if .object is a connection that is never accepted */
	__u64 carried;   /* number of the packet, if it came with an account of its own */
	__u64 sockets[PK_RECEIVERS]; /* receivers of a multicast packet so far, or some of them */
	__u32 receivers;  /* all of them */
	__u32 runs;      /* softirq runs of this vector on this CPU, when the account was opened */
	__u8 tap;        /* the sample was inside delivery to a packet socket */
	__u8 shared;     /* packet for several receivers: split among them */
	__u8 waits;      /* .object has a consumer to come: it may stay on account */
	__u8 guess;      /* .object is no more than likely */
	__u32 untold;    /* in PK_PHASE_PACKET: without the hook on packets only a socket's could name it */
	__u32 packets;   /* received on this CPU, in PK_PHASE_PACKET while their hooks rest */
	__u32 pad;
};

/* The hard interrupt that is being handled; see bpf/sources/interrupt.bpf.c. */
struct pk_cpu_irq {
	__u64 since;     /* begin of the part of it that is not counted yet; 0: in none */
	__u64 begin;     /* of all of it, or of the last one */
	__u64 end;       /* of the last one that ended */
	__u64 before;    /* when the one before it began */
	__u64 ns;        /* counted and not off a sample yet; below 0: off one, to be counted */
	__u64 sum;       /* counted ever */
	__u64 sum_at_begin;
	__u64 entered;   /* from when on it is counted: before .begin, by what entering takes */
	struct pk_exact part; /* what the part is, and whom it is for */
	__u64 timer;     /* high-resolution timer that expired last in this interrupt, or the last, */
	__u64 timer_for; /* and its party */
	__u8 in_softirq;        /* it came in the middle of a softirq */
	__u8 before_in_softirq; /* and so did the one before it */
	__u8 sampled;           /* the sampling clock ticked in the part that goes on */
	__u8 pad[5];
};

/* The sampling clock; see bpf/sampler/online.bpf.c. */
struct pk_cpu_clock {
	__u64 due;        /* when it was to tick */
	__u64 gone_since; /* that the CPU has none */
	__u32 gone;       /* how often it has gone with the CPU, */
	__u32 came;       /* as .gone was when the CPU came back last, */
	__u32 opened;     /* and when it was opened last */
	__u32 pad;
};

/* Where all of the time is measured; see bpf/timed/measure.bpf.c. */
struct pk_cpu_measure {
	__u32 epoch;       /* in which the rows were put into the tables last */
	__u8 softirq_ends; /* a softirq's end is being measured */
	__u8 pad[3];
	struct pk_exact exact[PK_EXACT_ROWS];
	struct pk_exact run;
	struct pk_exact softirq;
	__u64 run_since;   /* the current task's time is measured up to here; 0: not yet */
	__u64 run_off;     /* of interrupts and softirqs ever, up to then */
	__u64 run_stolen;  /* by the host, and not off a turn yet */
	__u64 softirq_since; /* begin of the softirq that runs; 0: none does */
	__u64 softirq_off; /* of interrupts ever, up to then */
	__u64 softirq_sum; /* in softirqs ever */
};

struct pk_cpu_sampler {
	__u64 last_ns;    /* time of the last sample */
	__u64 steal;      /* time stolen from this CPU, up to then */
	__u64 carried_ns; /* of samples that were for an interrupt, which is counted otherwise */
	__u64 idle_time;  /* that the kernel counts of this CPU, up to the last sample; 0: not known */
	__u64 gap_ns;     /* before the last sample that came late, and not stolen as far as is known */
	__u64 work_done;  /* up to the last sample, if that met the idle task; see idle.bpf.h */
	__u64 work_function; /* of the piece of work that is being sampled */
	struct pk_fresh_label fresh[PK_FRESH_LABELS];
	__u64 idle_ip;    /* where the idle task was met last */
	__u64 lessons;    /* of how to find the way up a stack */
	struct pk_charge sample; /* what is being sampled */
	__u64 plain;      /* see pk_plain() */
	__u32 sampling;   /* inside the sampler, which may have interrupted a hook */
	__u32 window;     /* in which the last sample fell: what the hooks said before is stale */
	__u32 resting;    /* enum pk_rest, in this window */
	__u8 idle;        /* the last sample, or look, met the idle task */
	__u8 pad[3];
};

struct pk_cpu_timer {
	__u64 expiring;   /* timer whose function runs, or ran last, */
	__u64 expires;    /* when it was to expire, */
	__u64 hrtimer_expires; /* and hot.hrtimer was */
};

struct pk_cpu_disk {
	__u64 done;       /* party of the request that was completed last */
	__u64 done_in;    /* interrupts on this CPU up to then: see pk_done_in_run() */
	__u64 remapped_bio;    /* that a thread is about to send on, and the thread; see block.bpf.c, */
	__u64 remapped_party; /* and the bio's party */
	__u64 dirtied;    /* inode of which a page was made dirty last, */
	__u64 dirtied_number; /* its i_ino: memory comes round again, */
	__u64 dirtier;    /* the process that did so, */
	__u64 dirtied_object; /* and the number of the file */
	__u64 loop;       /* loop device that a request was for last, */
	__u64 loop_file;  /* its file, */
	__u64 loop_object; /* and the numbers of both */
	__u64 loop_file_object;
};

/* Votes that are not counted yet, by pk_level(). */
struct pk_cpu_votes {
	struct pk_pending pending[PK_LEVELS * PK_PENDING];
	__u8 voting[PK_LEVELS]; /* those of a level are being written to */
	__u8 pad[4];
};

/* The BPF stack is short: what is on it elsewhere lies here, by pk_level(). */
struct pk_cpu_scratch {
	struct pk_packet_info info[PK_LEVELS]; /* read last */
	struct pk_label who[PK_LEVELS]; /* to be told */
	struct pk_key row[PK_LEVELS]; /* for looking up counts */
};

/* Where calls are counted; see bpf/calls/call_table.bpf.h. */
struct pk_cpu_calls {
	__u64 party;   /* whom the softirq that runs is for; 0: not known yet */
	__u32 how;     /* see PK_CALL_HOW */
	__u32 vec;     /* 1 + the vector that runs; 0: none does */
	__u64 thread;  /* the thread that called last, */
	__u64 process; /* and its process's label */
	__u64 busy[PK_LEVELS]; /* task in which a call is being counted, by pk_call_level() */
};

/* Where waiting is asked for; see bpf/waits/waiter.bpf.h. */
struct pk_cpu_waits {
	struct pk_pace pace;
	struct pk_stratum young; /* of threads that are new, ns */
	__u64 pending; /* the task that has come has waits to be told */
	__u64 request; /* number of the request that was completed last, in its disk's log, */
	__u64 disk;    /* and the disk's place + 1; 0: there is none */
};

/* Where other resources than time are asked for; see bpf/usage/usage.bpf.h. */
struct pk_cpu_packets {
	struct pk_strata packets;
	struct pk_strata bytes;
};

/* Of the wait for a lock that ended last. */
struct pk_lock_end {
	__u64 lock;
	__u64 holder; /* label; 0: not known */
	__u32 flags;  /* enum pk_lock_flags */
	__u32 times;  /* how many it stands for */
};

struct pk_cpu_usage {
	struct pk_cpu_packets sent;
	struct pk_cpu_packets received;
	struct pk_cpu_packets dropped;
	struct pk_strata memory; /* bytes */
	struct pk_strata waits_for_locks; /* ns */
	struct pk_lock_end lock[PK_LEVELS]; /* by pk_level() */
};

/* A connection has just come to a listening socket; whoever is woken now, is for that. */
struct pk_cpu_coming {
	__u64 ns;       /* when */
	__u32 listener; /* its place + 1; 0: none */
	__u32 softirq;  /* in one */
};

/* One CPU: a part for each mechanism, whose own it is. */
struct pk_cpu {
	struct pk_cpu_hot hot;
	struct pk_cpu_account wait;
	struct pk_cpu_irq irq;
	struct pk_cpu_clock clock;
	struct pk_cpu_sampler sampler;
	struct pk_cpu_timer timer;
	struct pk_cpu_disk disk;
	struct pk_cpu_measure measure;
	struct pk_cpu_votes votes;
	struct pk_cpu_scratch scratch;
	struct pk_cpu_calls calls;
	struct pk_cpu_waits waits;
	struct pk_cpu_coming coming;
	struct pk_cpu_usage usage;
	__u64 sender; /* number of the socket that sending deferred to a softirq was for last */
	__u64 percpu; /* base of this CPU's per-CPU area, 0 before it is known */
	struct pk_stats stats;
} __attribute__((aligned(128)));
static_assert(__builtin_offsetof(struct pk_cpu_hot, runs) + sizeof(__u64) == 64,
	      "what hooks touch is one line of the cache");

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

#endif
