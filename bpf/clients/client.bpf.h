/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * For which client does a thread work? (pkprof --clients)
 *
 * A connection has an active end, which asks, and a passive one, which answers. Who takes a message at
 * the passive end works for its sender from then on. Who takes one at the active end has an answer, and
 * goes on with the work that the question was sent for. So answers need no notes, and a server that
 * asks another comes back to its own client.
 *
 * The sender notes for whom a message is: for itself or, where it works for a client, for that client,
 * by way of itself. Notes of TCP and UDP lie under the two ends' addresses, those of Unix sockets under
 * the sender's socket.
 *
 * All of this is compiled in and left out by the verifier where config.clients is 0.
 */
#ifndef PKPROF_CLIENT_BPF_H
#define PKPROF_CLIENT_BPF_H

#include "core/state.bpf.h"

/* Places in a row where a note, or a client, may lie. */
enum { PK_NEAR = 4, PK_CLIENT_NEAR = 16 };

/* What a thread that sleeps waits for, as far as that says what it will work on. */
enum pk_waits {
	PK_WAITS_NOT = 0,
	PK_WAITS_WORK, /* for whatever comes next, from whoever wakes it */
	PK_WAITS_MANY, /* the same, but messages among it say themselves whose they are */
	PK_WAITS_PIPE, /* for what is written to a pipe, or sent to a queue: by whoever wakes it */
};

/* What a thread did last, as far as that tells whom it works for. */
enum pk_client_event { PK_EVENT_NONE = 0, PK_EVENT_WOKEN, PK_EVENT_TAKES, PK_EVENT_ANSWERS };

/* The pipe by which a thread was woken; see queue.bpf.h. */
enum pk_queue {
	PK_QUEUE_NONE = 0,
	PK_QUEUE_ALONE,   /* one process alone writes to it */
	PK_QUEUE_SEVERAL, /* see pk_worker.queue_at */
};

/* A sample since then: it is counted, and may turn out to be another client's. */
struct pk_held {
	struct pk_key key; /* under which it is counted */
	__u64 ns;
	__u32 samples;
	__u32 pad;
};

enum { PK_HELD = 3, PK_TOGETHER = 4, PK_LISTENS = 2, PK_COME = 32 };

/* A thread at work. What two threads write to one place is lost: it works for itself then. */
struct pk_worker {
	__u64 thread;  /* which one: its number and its start */
	__u64 question; /* number of the first connection of the way that .client's message came; 0: not known */
	__u32 client;  /* for which it works; 0: for itself */
	__u32 own;     /* its process, as a client of others; 0: not looked for yet */
	__u32 way;     /* .client by way of its process; 0: not looked for yet */
	__u32 writer;  /* process that wrote last to a pipe which the thread reads */
	__u32 pipe;    /* 1 + the descriptor of one that it has read last; 0: none */
	__u32 window;  /* of the hooks in which this was noted */
	__u32 listener[PK_LISTENS]; /* places + 1 at which it accepts connections; 0: none */
	__u32 accepted[PK_LISTENS]; /* the last connection of each that it has not to look at any more */
	__u32 to_accept; /* bits: it was woken for the next one */
	__u8 rule;     /* enum pk_client_rule */
	__u8 last;     /* enum pk_client_event */
	__u8 held;     /* of .sample */
	__u8 together; /* of .taken */
	/*
	 * Samples of user code between two takings of different clients, between two answers, and
	 * between the last of several takings and the first answer.
	 */
	__u16 between_takes;
	__u16 between_answers;
	__u16 between_both;
	__u8 alone; /* the message that was taken last has been the only one all the time */
	__u8 is_answer; /* what .writer writes is */
	__u32 taken[PK_TOGETHER]; /* clients whose messages were taken since the last answer */
	__u8 queue_kind; /* enum pk_queue */
	__u8 several;    /* more than one process writes to the pipe or queue that it reads */
	__u16 pad;
	__u64 queue;     /* the kernel's pipe at .pipe */
	__u64 queue_at;  /* of several writers: where the message ends that it was woken for, see pk_note_pipe() */
	struct pk_held sample[PK_HELD];
};

/* A socket at which connections are accepted; see accept.bpf.h. */
struct pk_listener {
	__u64 sk;       /* 0: the place is free */
	__u64 acceptor; /* the thread that is woken for them, */
	__u32 several;  /* or there are several */
	__u32 came;     /* how many connections */
	__u32 queued;   /* where in the socket it says how many of those were not accepted yet */
	__u32 window;   /* of the hooks in which this was noted */
	struct {
		__u64 question;
		__u64 client;
	} last[PK_COME]; /* of those that came, for whom */
};

/* For whom the last message over a connection was. */
struct pk_flow {
	__u64 number; /* 0: the place is free */
	__u64 sender; /* the socket that sent it, */
	__u64 before; /* and the one that was it before that */
	__u64 question; /* see pk_worker */
	__u32 client;
	__u32 window;  /* of the hooks in which this was noted */
	__u32 several; /* sockets send by turns under this number: two networks have the same addresses */
	__u32 awaited; /* samples wait for the answer, see pk_await_call() */
	__u64 pad[2];
};
static_assert(sizeof(struct pk_flow) == 64, "a note is one line of the cache: two CPUs share it");

enum pk_role { PK_ROLE_UNKNOWN = 0, PK_ROLE_ACTIVE, PK_ROLE_PASSIVE };

/* A socket, as one end of a connection. */
struct pk_end {
	__u64 number; /* of TCP: by which it is found; 0: the place is free */
	__u64 flow;   /* number of the connection's pk_flow; 0: each message has one of its own */
	__u64 question; /* with .client */
	__u32 client; /* active: for which the sender worked when it sent last; passive: taken from last */
	__u32 window; /* of the hooks in which what is here was noted, but for .remote */
	__u32 remote; /* the client at the other end, if that is on another machine */
	__u32 next;   /* of the datagram that is read next, see pk_next_datagram() */
	__u8 role;    /* enum pk_role */
	__u8 taken;   /* of the request that is not answered yet something was taken */
	__u8 pad[22];
};
static_assert(sizeof(struct pk_end) == 64, "an end is one line of the cache");

#define PK_NEXT_KNOWN (1U << PK_CLIENT_RULE_SHIFT)

struct workers_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* PK_WORKERS where it is wanted */
	__type(key, __u32);
	__type(value, struct pk_worker);
};

struct clients_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* PK_CLIENTS */
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct pk_client);
};

struct flows_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* PK_FLOWS */
	__uint(map_flags, BPF_F_MMAPABLE); /* so that it begins with a page */
	__type(key, __u32);
	__type(value, struct pk_flow);
};

/* Those of TCP, where three lines of the cache are one. */
struct tcp_ends_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* PK_ENDS */
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct pk_end);
};

/* A server's sample, up to when the client takes the answer: the client's call is known then. */
struct pk_awaited {
	__u64 question; /* 0: the place is free */
	struct pk_held sample;
};

struct awaited_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* PK_AWAITED */
	__type(key, __u32);
	__type(value, struct pk_awaited);
};

struct ends_map {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct pk_end);
};

struct listeners_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* PK_LISTENERS */
	__type(key, __u32);
	__type(value, struct pk_listener);
};

extern struct listeners_map listeners SEC(".maps");
extern struct workers_map workers SEC(".maps");
extern struct clients_map clients SEC(".maps");
extern struct flows_map flows SEC(".maps");
extern struct ends_map ends SEC(".maps");
extern struct tcp_ends_map tcp_ends SEC(".maps");
extern struct awaited_map awaited SEC(".maps");

static __always_inline void pk_begin_worker(struct pk_worker *worker, __u64 thread)
{
	worker->client = 0;
	worker->question = 0;
	worker->own = 0;
	worker->way = 0;
	worker->listener[0] = 0;
	worker->listener[1] = 0;
	worker->to_accept = 0;
	worker->writer = 0;
	worker->pipe = 0;
	worker->queue_kind = PK_QUEUE_NONE;
	worker->several = 0;
	worker->queue = 0;
	worker->rule = 0;
	worker->last = PK_EVENT_NONE;
	worker->held = 0;
	worker->between_takes = 0;
	worker->between_answers = 0;
	worker->between_both = 0;
	worker->together = 0;
	worker->alone = 0;
	worker->window = window;
	worker->thread = thread;
}

/* A thread's own place; NULL: nothing is noted of it, and it is not to begin now. */
static __always_inline struct pk_worker *pk_worker_of(struct task_struct *task, bool begin)
{
	__u32 place = task->pid & (PK_WORKERS - 1);
	__u64 thread = task->start_boottime << 22 ^ task->pid;
	struct pk_worker *worker;

	if (!config.clients) /* and there is no map: 6.1 also looks at functions that nobody calls */
		return NULL;
	worker = bpf_map_lookup_elem(&workers, &place);
	if (!worker)
		return NULL;
	if (unlikely(worker->thread != thread || worker->window != window)) {
		if (begin)
			pk_begin_worker(worker, thread);
		else
			worker = NULL;
	}
	forget_value(worker); /* or the compiler asks what it was found by, and the verifier is lost */
	return worker;
}

/* The place of a sample that may wait for this connection's answer. */
static __always_inline struct pk_awaited *pk_awaited_at(__u64 question, __u32 i)
{
	__u32 place = ((__u32)(question >> 32) + i) & (PK_AWAITED - 1);

	if (!config.clients) /* and there is no map */
		return NULL;
	return bpf_map_lookup_elem(&awaited, &place);
}

/* NULL: without clients. */
static __always_inline struct pk_client *pk_client_at(__u32 place)
{
	place &= PK_CLIENTS - 1;
	if (!config.clients) /* and there is no map */
		return NULL;
	return bpf_map_lookup_elem(&clients, &place);
}

static __always_inline void pk_works_for(struct pk_worker *worker, __u32 client, __u8 rule,
					 __u64 question)
{
	if (worker->client != client)
		worker->way = 0;
	worker->client = client;
	worker->question = question;
	worker->rule = rule;
}

/*
 * The current thread, which accepts connections, may have done so since it was looked at last. `works`:
 * then it works for whoever connected; or else, for another whose message it takes now.
 */
int pk_look_for_accepted(__u32 works);

/* The current thread may have read what it did not wait for: then it works for nobody that is known. */
int pk_look_for_unseen(void);

static __always_inline void pk_note_accepted(struct pk_worker *worker, bool works)
{
	if (unlikely(worker->listener[0]))
		pk_look_for_accepted(works);
	if (unlikely(worker->queue_kind > PK_QUEUE_ALONE))
		pk_look_for_unseen();
}

/*
 * pk_key.client of what the current thread does. A function of its own, since who calls it may be deep
 * in calls already, and 6.1 has all of them together use 512 bytes at most.
 */
__u32 pk_client_now(void);

/*
 * The same of a sample: one of those whose messages were taken together, where nothing tells which of
 * them it is for. Each sample is given by lot; of user code in proportion to what their messages take
 * by themselves.
 */
__u32 pk_client_of_sample(__u32 user);

/* A sample of the thread that is at work now was counted under this key. */
int pk_hold_sample(struct pk_key *key, __u64 ns, __u32 samples);

/* Of this sample, the client's call is to be known. */
int pk_await_call(struct pk_key *key, __u64 ns, __u32 samples);

/*
 * The current process has taken an answer over this connection; `stack` is the number of its user
 * stack. Samples that waited for that have their call.
 */
int pk_give_calls(struct pk_cpu *c, __u64 question, __u64 stack);

/*
 * The current thread takes what a client has sent, or answers it, and holds samples: they may be this
 * one's. See event.bpf.h, which comes here only where there are such.
 */
int pk_settle_taken(struct pk_cpu *c, __u32 client, __u8 rule);
int pk_settle_answered(struct pk_cpu *c, __u32 client);

/* A sample of user code for a message that is by itself, or its answer. */
int pk_note_alone(__u32 answers);

/* For whom a message is that the current thread sends: a client's place. 0: there is no more room. */
__u32 pk_client_of_message(struct pk_cpu *c);

/*
 * The current process, `label`, as a party: where it works for a client, with that (PK_AT_WORK), if
 * pk_client_of_message() was asked before. It is for those who have little of the stack left.
 */
__u64 pk_label_at_work(__u64 label);

/*
 * The same client, at this call: of the current process, which is to be it. 0: it is another, or there
 * is no more room.
 */
__u32 pk_client_by_call(__u32 place, __u64 stack);

/* The client at an address of another machine, which lies there in the kernel's memory. */
__u32 pk_remote_client(__u64 address, __u32 family, __u32 port);

/* Notes for whom the last message was. `sender`: its socket. */
int pk_note_message(__u64 flow, __u64 sender, __u32 client, __u64 question);

static __always_inline struct pk_flow *pk_flow_at(__u32 place)
{
	place &= PK_FLOWS - 1;
	if (!config.clients) /* and there is no map */
		return NULL;
	return bpf_map_lookup_elem(&flows, &place);
}

/* The note under this number; NULL: there is none. */
static __noinline struct pk_flow *pk_flow_near(__u64 number)
{
	struct pk_flow *flow;
	__u32 i;

	for (i = 1; i < PK_NEAR; i++) {
		flow = pk_flow_at((__u32)(number >> 32) + i);
		if (flow && flow->number == number)
			return flow;
	}
	return NULL;
}

static __always_inline struct pk_flow *pk_flow_of(__u64 number)
{
	struct pk_flow *flow = pk_flow_at(number >> 32);

	return likely(flow && flow->number == number) ? flow : pk_flow_near(number);
}

/* For whom the last message was; NULL: it is not known. */
static __always_inline struct pk_flow *pk_noted_message(__u64 number)
{
	struct pk_flow *flow = pk_flow_of(number);

	return !flow || flow->several || flow->window != window || !flow->client ? NULL : flow;
}

#endif
