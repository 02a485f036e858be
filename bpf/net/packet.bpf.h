/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The packet that an interrupted stack is at.
 *
 * A hook at every packet says which packet a CPU is at, and costs every packet its fifty
 * nanoseconds. The stack says so too: the outermost function of receiving keeps the packet's address
 * in its frame, in a word that is the same one whatever it calls. Where the hook has said which packet
 * it is, it is looked for in the frame and the word is remembered; once it was found there often
 * enough the hook may rest.
 */
#ifndef PKPROF_PACKET_BPF_H
#define PKPROF_PACKET_BPF_H

#include "core/state.bpf.h"
#include "stack/unwind.bpf.h"
#include "who/object.bpf.h"

enum {
	PK_PACKET_WORDS = 24, /* of a frame that are looked at */
	PK_PACKET_SURE = 4,   /* found there so often more than not: it is there */
	PK_PACKET_SUREST = 64,
};

/* Could there be a packet at this address? What lies on a stack may be anything. */
static __always_inline bool pk_is_packet(__u64 skbp)
{
	struct sk_buff *skb = (void *)skbp;
	__u64 head, data;

	if ((__s64)skbp >= 0)
		return false;
	head = (__u64)BPF_CORE_READ(skb, head);
	data = (__u64)BPF_CORE_READ(skb, data);
	return (__s64)head < 0 && data >= head && data - head < 65536;
}

/*
 * `skb` is in reception in a frame of `function` that begins here, or one that was before it is: which
 * word of the frame says so?
 */
static __noinline int pk_learn_packet(struct pk_scratch *s, __u32 function, __u64 at, __u64 skb)
{
	struct pk_packet_frame *f = &packet_frames[function & (PK_FUNCTIONS - 1)];

	if (!s)
		return 0;
	if (f->found) {
		if (pk_unwind_word(at + f->word * 8) != skb)
			f->found--;
		else if (f->found < PK_PACKET_SUREST)
			f->found++;
		return 0;
	}
	if (bpf_probe_read_kernel(s->check.ip, PK_PACKET_WORDS * sizeof(__u64), (void *)at))
		return 0;
	for (__u32 i = 0; i < PK_PACKET_WORDS; i++) {
		if (s->check.ip[i] == skb) {
			f->word = i;
			f->found = 1;
			break;
		}
	}
	return 0;
}

/*
 * The packet that the stack in `s` is at, 0 if that is not known. `skb`: what the hook has said, from
 * which to learn; 0 if it rests.
 */
static __always_inline __u64 pk_packet_on_stack(struct pk_scratch *s, __u64 skb)
{
	__u32 frame = s->place.receive - 1; /* interrupted itself, at 0, it may not have a frame yet */
	struct pk_packet_frame *f;
	__u32 function;
	__u64 packet;

	if (!frame || frame >= PK_MAX_DEPTH || frame >= s->placed)
		return 0;
	function = pk_find_function(s->stack.ip[frame]);
	if (skb)
		pk_learn_packet(s, function, s->places[frame], skb);
	f = &packet_frames[function & (PK_FUNCTIONS - 1)];
	if (f->found < PK_PACKET_SURE)
		return 0;
	packet = pk_unwind_word(s->places[frame] + f->word * 8);
	return pk_is_packet(packet) ? packet : 0;
}

#endif
