/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What is no matter of the kernel's: hints to the compiler and the verifier, and numbers. */
#ifndef PKPROF_CODE_BPF_H
#define PKPROF_CODE_BPF_H

#include <linux/types.h>

#include <bpf/bpf_helpers.h>

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* The compiler is to know nothing of this value: what bounds it must be there for the verifier. */
#define forget_value(value) asm volatile("" : "+r"(value))

/*
 * A pointer as a plain number: the verifier lets no one calculate with a typed pointer, and
 * forgets its type on the way through memory, `by` which it goes.
 */
static __always_inline __u64 plain_number(__u64 *by, const volatile void *p)
{
	*(volatile __u64 *)by = (__u64)p;
	return *(volatile __u64 *)by;
}

/*
 * 1 for a value that is not 0, else 0, without a branch: a verifier follows both ways of one through
 * all that comes after it, for each way that led there.
 */
static __always_inline __u64 is_some(__u64 value)
{
	__u64 sign = value | -value;

	forget_value(sign); /* or the compiler makes a branch of it */
	return sign >> 63;
}

/* 64-bit mixing (the finalizer of MurmurHash3, public domain), seeded by the caller. */
static __always_inline __u64 mix(__u64 h, __u64 v)
{
	h ^= v;
	h ^= h >> 33;
	h *= 0xff51afd7ed558ccdULL;
	h ^= h >> 33;
	h *= 0xc4ceb9fe1a85ec53ULL;
	h ^= h >> 33;
	return h;
}

#endif
