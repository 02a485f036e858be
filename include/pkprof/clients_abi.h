/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) OR Apache-2.0 */
/*
 * For which client a server works, as the kernel side (bpf/clients) and the user side say it to each
 * other. A part of abi.h.
 *
 * A client has a place in a table; pk_key.client is that place, with the rule that decided above it.
 * Place 0 is none: the server works for itself.
 */
#ifndef PKPROF_CLIENTS_ABI_H
#define PKPROF_CLIENTS_ABI_H

enum {
	PK_CLIENTS = 1 << 16, /* places; a power of two */
	PK_WORKERS = 1 << 15, /* threads by the low bits of their number */
	PK_FLOWS = 1 << 16,   /* messages' notes by the low bits of theirs */
	PK_ENDS = 1 << 16,    /* ends of TCP's connections by the low bits of the kernel's hash of theirs */
	PK_AWAITED = 1 << 10, /* servers' samples that wait for their clients to take the answer */
	PK_LISTENERS = 1 << 8, /* sockets at which processes wait for connections */
	PK_CLIENT_CALLS = PK_CLIENTS / 4, /* so many of them are clients' calls, at most */
	PK_CLIENT_RULE_SHIFT = 28,
	PK_CLIENT_PLACE = (1 << PK_CLIENT_RULE_SHIFT) - 1,
	PK_CLIENT_DEPTH = 6, /* servers that pass on one after the other; beyond, the way is cut */
};

enum pk_client_rule {
	PK_CLIENT_TAKEN = 1, /* it sent what the thread took last */
	PK_CLIENT_REPLIED,   /* the thread's answer went to it */
	PK_CLIENT_WOKEN,     /* the thread was woken by one that works for it */
	PK_CLIENT_ASKED,     /* a server at work for it asked the kernel for this */
	PK_CLIENT_SHARED,    /* it is one of several whose messages were taken together */
};

/* A client, or a server that passes on what it does for one. */
struct pk_client {
	__u64 number;      /* by which it is found; 0: the place is free */
	__u64 process;     /* label; 0: it is on another machine, at .address */
	__be32 address[4]; /* of IPv4 in the first */
	__u32 behind;      /* the client whose work was passed on by .process; 0: it is the client itself */
	__u32 first;       /* the client itself, at the beginning of the way */
	__be16 port;       /* 0: all of them */
	__u8 family;       /* AF_INET or AF_INET6 */
	__u8 depth;        /* how many passed on before */
	__u32 requests;    /* messages of .behind that .process took */
	/* Of its messages that were handled by themselves, by threads that take several together. */
	__u32 alone;
	__u32 alone_samples;
	/* Where its number stands for one of a client's calls: what the client was at when it took the answer. */
	__u64 call;    /* number of a user stack; 0: no certain one */
	__u32 exec_id; /* which program image that belongs to, see pk_label */
	__u16 syscall; /* PK_NO_SYSCALL */
	__u8 compat;
	__u8 pad;
};
static_assert(sizeof(struct pk_client) == 72, "pk_client has no hidden padding");

#endif
