// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Since 6.2 one instruction may read a word, if what is read is said to be of a type of the kernel's;
 * before, and by a call of the helper, it takes ten times as long.
 *
 * A function, not inline: of the objects that are linked into one, libbpf 1.1 lets only one name a
 * function of the kernel's.
 */
#include "word.bpf.h"

#include "state.bpf.h"

void *bpf_rdonly_cast(const void *obj, __u32 type) __ksym __weak;

__u64 pk_read_word(__u64 at)
{
	__u64 word = 0;

	if (config.word_type)
		return *(__u64 *)bpf_rdonly_cast((void *)at, (__u32)config.word_type);
	bpf_probe_read_kernel(&word, sizeof(word), (void *)at);
	return word;
}
