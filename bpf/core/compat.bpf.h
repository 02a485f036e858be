/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Where kernels differ. Every difference stands here, with what made it; the rest of bpf/ does
 * not ask for versions. What differs by whole programs (a tracepoint that is missing or has
 * other arguments) is chosen in src/probe/hooks.cc by looking into the kernel's BTF.
 *
 *   names of the TCP timers   up to 6.18 sk_timer serves for keepalive; after it, timers of
 *                             inet_connection_sock move into struct sock (tcp_retransmit_timer)
 *   struct folio              counts its pages in _nr_pages in 6.15, in _folio_nr_pages before
 *   kfree_skb                 has the receiving socket in 6.12 (rx_sk), not in 6.1
 *   sk_data_ready             in 6.12; where it is not, as in 6.1: fentry on sock_def_readable
 *   sock_recv_length          in 6.12; where it is not, as in 6.1: fexit on sock_recvmsg
 *   sched_exit_tp             since 6.15; before: fexit on schedule
 *   inet_accept, unix_accept  have other arguments behind the first two in 6.12 than in 6.1
 *   struct orc_entry          has one bit for the stack's end up to 6.3; from 6.4 on that is a type,
 *                             and a call's number is another
 *   files of overlays         what is mapped is the file below it; since 6.5 that says (backing_file)
 *                             by which path it was opened
 */
#ifndef PKPROF_COMPAT_BPF_H
#define PKPROF_COMPAT_BPF_H

#include "core/kernel.bpf.h"

#include "pkprof/abi.h"

struct orc_entry___end {
	unsigned int end : 1;
} __attribute__((preserve_access_index));

/* 0: this kernel has no such tables. */
static __always_inline __u64 pk_orc_size(void)
{
	return bpf_core_type_exists(struct orc_entry) ? bpf_core_type_size(struct orc_entry) : 0;
}

/* What an entry says: see pk_orc_words(). */
static __always_inline __s64 pk_orc_words_of(struct orc_entry *entry)
{
	bool old = bpf_core_field_exists(struct orc_entry___end, end);
	__s64 offset = BPF_CORE_READ(entry, sp_offset);

	if (BPF_CORE_READ_BITFIELD_PROBED(entry, sp_reg) != ORC_REG_SP ||
	    BPF_CORE_READ_BITFIELD_PROBED(entry, type) != (old ? 0 : 2) || offset < 8 || offset & 7)
		return -1;
	return offset / 8 - 1;
}

enum skb_drop_reason {
	SKB_DROP_REASON_NOT_SPECIFIED = 1,
};

/* What packets are freed for that were not dropped, or for which nobody says so. */
static __always_inline int pk_drop_reason_none(void)
{
	return bpf_core_enum_value(enum skb_drop_reason, SKB_DROP_REASON_NOT_SPECIFIED);
}

struct inet_connection_sock___old {
	struct timer_list icsk_retransmit_timer;
	struct timer_list icsk_delack_timer;
} __attribute__((preserve_access_index));

struct inet_connection_sock___moved {
	struct timer_list icsk_delack_timer;
	struct timer_list icsk_keepalive_timer;
} __attribute__((preserve_access_index));

struct sock___old {
	struct timer_list sk_timer;
} __attribute__((preserve_access_index));

struct sock___moved {
	struct timer_list tcp_retransmit_timer;
} __attribute__((preserve_access_index));

struct tcp_sock___timers {
	struct hrtimer pacing_timer;
	struct hrtimer compressed_ack_timer;
} __attribute__((preserve_access_index));

struct request_sock___timer {
	struct timer_list rsk_timer;
} __attribute__((preserve_access_index));

struct hrtimer___function {
	void *function;
} __attribute__((preserve_access_index));

struct hrtimer___private {
	void *__function; /* its name in 6.18, where no one is to touch it */
} __attribute__((preserve_access_index));

static __always_inline __u64 pk_hrtimer_function(__u64 timer)
{
	if (bpf_core_field_exists(struct hrtimer___private, __function))
		return (__u64)BPF_CORE_READ((struct hrtimer___private *)timer, __function);
	return (__u64)BPF_CORE_READ((struct hrtimer___function *)timer, function);
}

static __always_inline __u64 pk_timer_function(__u64 timer)
{
	return (__u64)BPF_CORE_READ((struct timer_list *)timer, function);
}

struct folio___pages {
	unsigned int _nr_pages;
} __attribute__((preserve_access_index));

struct folio___old {
	unsigned int _folio_nr_pages;
} __attribute__((preserve_access_index));

struct backing_file___opened {
	struct path user_path;
} __attribute__((preserve_access_index));

#define FMODE_BACKING 0x2000000

/* Where a file is that is mapped: its directory's entry, and the mount that this is in. */
static __always_inline struct dentry *pk_file_path(__u64 filep, __u64 *mnt)
{
	struct file *file = (void *)filep;
	__u32 mode = BPF_CORE_READ(file, f_mode);

	if (bpf_core_field_exists(struct backing_file___opened, user_path) && mode & FMODE_BACKING) {
		*mnt = (__u64)BPF_CORE_READ((struct backing_file___opened *)filep, user_path.mnt);
		return BPF_CORE_READ((struct backing_file___opened *)filep, user_path.dentry);
	}
	*mnt = (__u64)BPF_CORE_READ(file, f_path.mnt);
	return BPF_CORE_READ(file, f_path.dentry);
}

enum pageflags { PG_head = 6 };

/* Pages in a folio; 1 where the kernel does not say. */
static __always_inline __u32 pk_folio_pages(__u64 folio)
{
	__u64 flags = 0;
	__u32 pages = 1;

	bpf_probe_read_kernel(&flags, sizeof(flags), (void *)folio); /* the first member */
	if (!(flags >> bpf_core_enum_value(enum pageflags, PG_head) & 1))
		return 1;
	if (bpf_core_field_exists(struct folio___pages, _nr_pages))
		pages = BPF_CORE_READ((struct folio___pages *)folio, _nr_pages);
	else if (bpf_core_field_exists(struct folio___old, _folio_nr_pages))
		pages = BPF_CORE_READ((struct folio___old *)folio, _folio_nr_pages);
	return pages ? pages : 1;
}

#define PK_OFFSET_IF_EXISTS(type, field)                                                       \
	(bpf_core_field_exists(struct type, field) ? (long)bpf_core_field_offset(struct type, field) : -1)

/* Where in its socket a TCP timer lies; -1 if this kernel has it elsewhere. */
static __always_inline long pk_timer_offset(__u8 timer)
{
	long off = -1;

	switch (timer) {
	case PK_TIMER_RETRANSMIT:
		off = PK_OFFSET_IF_EXISTS(inet_connection_sock___old, icsk_retransmit_timer);
		if (off < 0)
			off = PK_OFFSET_IF_EXISTS(sock___moved, tcp_retransmit_timer);
		break;
	case PK_TIMER_DELACK:
		off = PK_OFFSET_IF_EXISTS(inet_connection_sock___old, icsk_delack_timer);
		break;
	case PK_TIMER_KEEPALIVE:
		off = PK_OFFSET_IF_EXISTS(sock___old, sk_timer);
		if (off < 0)
			off = PK_OFFSET_IF_EXISTS(inet_connection_sock___moved,
						  icsk_keepalive_timer);
		break;
	case PK_TIMER_PACING:
		off = PK_OFFSET_IF_EXISTS(tcp_sock___timers, pacing_timer);
		break;
	case PK_TIMER_COMPRESSED_ACK:
		off = PK_OFFSET_IF_EXISTS(tcp_sock___timers, compressed_ack_timer);
		break;
	case PK_TIMER_REQUEST:
		off = PK_OFFSET_IF_EXISTS(request_sock___timer, rsk_timer);
		break;
	}
	return off;
}

#endif
