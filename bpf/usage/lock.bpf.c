// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Locks of the kernel: how long threads wait for them, and who held them as the wait began. Mutexes and
 * semaphores say whom they belong to; spinning locks do not.
 */
#include "core/hook.bpf.h"
#include "usage/usage.bpf.h"

#include <bpf/bpf_tracing.h>

enum { PK_LOCK_PERIOD = 1000000 };

/* A wait for a lock: a thread's, or, of one that spins with interrupts or preemption off, a CPU's. */
struct pk_contender {
	__u64 lock; /* 0: none */
	__u64 since;
	__u64 holder; /* label; 0: not known */
	__u32 thread;
	__u32 flags; /* enum pk_lock_flags */
	__u32 window; /* of the hooks, in which this was noted */
	__u32 pad;
};

struct contenders_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* PK_CONTENDERS where it is wanted */
	__type(key, __u32);
	__type(value, struct pk_contender);
};

struct spinners_map {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, PK_LEVELS);
	__type(key, __u32);
	__type(value, struct pk_contender);
};

/* Of locks that were waited for, what they belong to. */
struct lock_names_map {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1); /* PK_LOCK_NAMES where it is wanted */
	__type(key, __u64);
	__type(value, struct pk_lock_name);
};

struct contenders_map contenders SEC(".maps");
struct lock_names_map lock_names SEC(".maps");
struct spinners_map spinners SEC(".maps");

static __always_inline bool pk_spins(__u32 flags)
{
	return (flags & (PK_LOCK_SPIN | PK_LOCK_MUTEX)) == PK_LOCK_SPIN;
}

static __always_inline struct pk_contender *pk_spinner(struct pk_cpu *c)
{
	__u32 level = pk_level(c);

	return bpf_map_lookup_elem(&spinners, &level);
}

static __always_inline struct pk_contender *pk_contender_of(struct task_struct *task)
{
	__u32 place = task->pid & (PK_CONTENDERS - 1);

	return bpf_map_lookup_elem(&contenders, &place);
}

/*
 * Their words for the owner begin with the same: a task's address, with flags in its low bits. Of a
 * semaphore that readers have it names one that may be gone.
 */
static __always_inline __u64 pk_holder_of(__u64 lock, __u32 flags)
{
	const __u64 of_readers = 1, of_flags = 7;
	__u64 owner = 0;
	struct task_struct *task;

	if (flags & PK_LOCK_MUTEX)
		owner = BPF_CORE_READ((struct mutex *)lock, owner.counter);
	else if (!(flags & (PK_LOCK_SPIN | PK_LOCK_PERCPU | PK_LOCK_RT)))
		owner = BPF_CORE_READ((struct rw_semaphore *)lock, owner.counter);
	if (!(flags & PK_LOCK_MUTEX) && owner & of_readers)
		return 0;
	task = (void *)(owner & ~of_flags);
	if (!task)
		return 0;
	if (BPF_CORE_READ(task, flags) & PF_KTHREAD)
		return PK_KERNEL;
	return pk_process_of_task((__u64)task);
}

SEC("?tp_btf/contention_begin")
int BPF_PROG(pk_lock_wanted, void *lock, unsigned int flags)
{
	struct pk_cpu *c = pk_hook(PK_HOOKS_USAGE);
	struct task_struct *task = bpf_get_current_task_btf();
	struct pk_contender *k;
	__u64 plain;

	plain = pk_plain(c, lock);
	k = pk_spins(flags) ? pk_spinner(c) : pk_contender_of(task);
	if (!k)
		return 0;
	if (k->lock == plain && k->thread == (__u32)task->pid && k->window == window) {
		k->flags = flags; /* a mutex: it has spun, and sleeps now */
		return 0;
	}
	if (unlikely(k->lock && k->window == window && k->thread != (__u32)task->pid))
		c->stats.usage_lost++; /* the wait of another thread, which has the same place */
	k->lock = plain;
	k->window = window;
	k->thread = task->pid;
	k->flags = flags;
	k->holder = pk_holder_of(plain, flags);
	k->since = bpf_ktime_get_ns();
	return 0;
}

/*
 * The current thread has this lock: how long it waited, if that is kept; 0: it is not, or it did not wait.
 * What else there is to say is left in c->usage. By itself, for the sake of 6.1's short stack.
 */
static __noinline __u64 pk_lock_ended(struct pk_cpu *c, __u64 lock)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct pk_contender *k;
	__u64 now, since, all;
	__u32 level;

	if (!c)
		return 0;
	k = pk_spinner(c);
	if (!k || k->lock != lock)
		k = pk_contender_of(task);
	if (!k || k->lock != lock || k->thread != (__u32)task->pid)
		return 0;
	k->lock = 0;
	since = k->since < started ? started : k->since; /* from when on it counts */
	now = bpf_ktime_get_ns();
	if (!started || k->window != window || now <= since)
		return 0;
	all = pk_stands_for(&c->usage.waits_for_locks.at, &c->usage.waits_for_locks.pace, now - since,
			    PK_LOCK_PERIOD, PK_KEPT_EACH_SECOND);
	level = pk_level(c);
	c->usage.lock[level].lock = lock;
	c->usage.lock[level].holder = k->holder;
	c->usage.lock[level].flags = k->flags;
	c->usage.lock[level].times = pk_times(all, now - since);
	return all;
}

/* In an interrupt or a kernel thread: for whom that works. */
static __noinline int pk_lock_elsewhere(struct pk_cpu *c, void *ctx, __u64 all)
{
	struct pk_stack *stack = pk_usage_memory(c);
	struct pk_lock_end *end = &c->usage.lock[pk_level(c)];

	if (!stack)
		return 0;
	return pk_used_by(c, PK_LOCK_WAITED, pk_usage_stack(c, ctx, stack, end->lock), all, end->times,
			  pk_party_now(c), PK_BASIS_SUBMITTER);
}

/* Since Linux 6.13; nothing where the address is in no cache's object. */
struct kmem_cache {
	const char *name;
} __attribute__((preserve_access_index));
extern struct kmem_cache *bpf_get_kmem_cache(__u64 address) __ksym __weak;

/* Remembers what a lock belongs to that has no name of its own. */
static __noinline int pk_name_lock(__u64 lock)
{
	struct mm_struct *mm = bpf_get_current_task_btf()->mm;
	struct pk_lock_name name = {};
	struct kmem_cache *cache;

	if (bpf_map_lookup_elem(&lock_names, &lock))
		return 0;
	if (mm && (__u64)mm + bpf_core_field_offset(struct mm_struct, mmap_lock) == lock) {
		__builtin_memcpy(name.text, "mmap_lock", sizeof("mmap_lock"));
	} else if (bpf_get_kmem_cache) {
		cache = bpf_get_kmem_cache(lock);
		if (cache) {
			name.text[0] = '&';
			bpf_probe_read_kernel_str(name.text + 1, sizeof(name.text) - 1, cache->name);
		}
	}
	return bpf_map_update_elem(&lock_names, &lock, &name, BPF_ANY);
}

SEC("?tp_btf/contention_end")
int BPF_PROG(pk_lock_had, void *lock)
{
	struct pk_cpu *c = pk_hook(PK_HOOKS_USAGE);
	__u64 all = pk_lock_ended(c, pk_plain(c, lock));
	struct pk_lock_end *end;

	if (likely(!all))
		return 0;
	pk_name_lock(c->usage.lock[pk_level(c)].lock);
	if (pk_is_elsewhere(c))
		return pk_lock_elsewhere(c, ctx, all);
	end = &c->usage.lock[pk_level(c)];
	return pk_used_here(ctx, PK_HOW(PK_LOCK_WAITED, end->flags), end->holder, all, end->times);
}
