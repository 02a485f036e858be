// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* See wait.bpf.h. */
#include "debox/wait.bpf.h"

#include "debox/kernel_wait.bpf.h"

/* A request for a lock on a file; in struct file_lock itself before 6.9. */
struct file_lock_core___new {
	void *flc_blocker;
	struct list_head flc_blocked_requests;
	struct list_head flc_blocked_member;
	struct wait_queue_head flc_wait;
} __attribute__((preserve_access_index));

struct file_lock___old {
	void *fl_blocker;
	struct list_head fl_blocked_requests;
	struct list_head fl_blocked_member;
	struct wait_queue_head fl_wait;
} __attribute__((preserve_access_index));

enum { DB_STACK_SIZE = 32768 }; /* at most */

/* By what an entry is known, and where in it the link is. */
enum db_wait {
	DB_WAIT_NONE = 0,
	DB_WAIT_QUEUE, /* wait_queue_entry: behind its function */
	DB_WAIT_PAGE,  /* the same in a queue for many pages: of the same page */
	DB_WAIT_BIT,   /* or many bits */
	DB_WAIT_LOCK,  /* mutex_waiter, rwsem_waiter, semaphore_waiter: two words before its task */
	DB_WAIT_FUTEX, /* futex_q: the same, in a list for many futexes */
	DB_WAIT_DONE,  /* swait_queue, of a completion: behind its task */
	DB_WAIT_FILE,  /* a lock on a file: those wait for one another */
};

/* The kernel's code and its modules', and their data. */
static __always_inline bool db_in_image(__u64 word)
{
	return word >> 31 == 0x1ffffffffULL;
}

static __always_inline __u64 db_word(__u64 address)
{
	__u64 word = 0;

	bpf_probe_read_kernel(&word, sizeof(word), (void *)address);
	return word;
}

/* Is this on the stack of that task? */
static __always_inline bool db_on_stack_of(__u64 address, __u64 task)
{
	__u64 stack = (__u64)BPF_CORE_READ((struct task_struct *)task, stack);

	return stack && address - stack < DB_STACK_SIZE;
}

/* Does a list go through here? */
static __always_inline bool db_is_linked(__u64 node, __u64 next)
{
	return next != node && (__s64)next < 0 && db_word(next + sizeof(__u64)) == node;
}

#define DB_QUEUE_NODE bpf_core_field_offset(struct wait_queue_entry, entry)
#define DB_FUTEX_NODE bpf_core_field_offset(struct futex_q, list.node_list)

static __always_inline bool db_is_entry(__u32 wait, const __u64 *key, __u64 node)
{
	__u64 at, words[3] = {};

	switch (wait) {
	case DB_WAIT_QUEUE:
		return db_in_image(db_word(node - DB_QUEUE_NODE +
					   bpf_core_field_offset(struct wait_queue_entry, func)));
	case DB_WAIT_PAGE:
		at = node - DB_QUEUE_NODE - bpf_core_field_offset(struct wait_page_queue, wait);
		bpf_probe_read_kernel(words, 2 * sizeof(__u64), (void *)at);
		return words[0] == key[0] && (__u32)words[1] == (__u32)key[1];
	case DB_WAIT_BIT:
		at = node - DB_QUEUE_NODE -
		     bpf_core_field_offset(struct wait_bit_queue_entry, wq_entry);
		bpf_probe_read_kernel(words, 2 * sizeof(__u64), (void *)at);
		return words[0] == key[0] && (__u32)words[1] == (__u32)key[1];
	case DB_WAIT_FUTEX:
		at = node - DB_FUTEX_NODE + bpf_core_field_offset(struct futex_q, key);
		bpf_probe_read_kernel(words, sizeof(words), (void *)at);
		return words[0] == key[0] && words[1] == key[1] &&
		       (__u32)words[2] == (__u32)key[2];
	case DB_WAIT_LOCK:
		return db_on_stack_of(node, db_word(node + 2 * sizeof(__u64)));
	case DB_WAIT_DONE:
		return db_on_stack_of(node, db_word(node - sizeof(__u64)));
	}
	return false;
}

static long db_step(__u32 i, struct db_loop *l)
{
	struct db_walk *w = &l->c->walk;

	if (w->node == w->end) {
		w->closed = 1;
		return 1;
	}
	if (db_is_entry(w->wait, w->key, w->node))
		w->entries += w->node != w->own;
	else if (!w->head)
		w->head = w->node;
	w->node = db_word(w->node);
	return (__s64)w->node >= 0;
}

/* An entry on this thread's own stack: what it is in. */
static __noinline int db_take_entry(struct db_cpu *c, struct db_thread *t, __u32 wait, __u64 node,
				    __u64 next)
{
	struct db_loop l = { .c = c };
	struct db_walk *w;
	__u64 at;

	if (!c || !t)
		return 0;
	w = &c->walk;
	*w = (struct db_walk){ .end = node, .node = next, .wait = wait };
	if (wait == DB_WAIT_PAGE) {
		at = node - DB_QUEUE_NODE - bpf_core_field_offset(struct wait_page_queue, wait);
		bpf_probe_read_kernel(w->key, 2 * sizeof(__u64), (void *)at);
	} else if (wait == DB_WAIT_BIT) {
		at = node - DB_QUEUE_NODE -
		     bpf_core_field_offset(struct wait_bit_queue_entry, wq_entry);
		bpf_probe_read_kernel(w->key, 2 * sizeof(__u64), (void *)at);
	} else if (wait == DB_WAIT_FUTEX) {
		at = node - DB_FUTEX_NODE;
		bpf_probe_read_kernel(w->key, sizeof(w->key),
				      (void *)(at + bpf_core_field_offset(struct futex_q, key)));
		w->head = (__u64)BPF_CORE_READ((struct futex_q *)at, lock_ptr) -
			  bpf_core_field_offset(struct futex_hash_bucket, lock) +
			  bpf_core_field_offset(struct futex_hash_bucket, chain);
	}
	bpf_loop(DB_WALK, db_step, &l, 0);
	if (!w->closed || !w->head)
		return 0;
	t->wait = wait;
	t->node = node;
	t->head = w->head;
	t->key[0] = w->key[0];
	t->key[1] = w->key[1];
	t->key[2] = w->key[2];
	return 1;
}

static long db_look_at_word(__u32 i, struct db_loop *l)
{
	struct db_cpu *c = l->c;
	struct db_scan *s = &c->scan;
	__u64 at = s->sp + i * sizeof(__u64), next;

	if (i < 2 || i >= DB_SCAN - 3)
		return 0;
	if (likely(c->word[i] != s->task))
		return 0;
	next = c->word[i + 2];
	if (db_in_image(c->word[i + 1]) && db_is_linked(at + 16, next)) {
		__u64 function = c->word[i + 1];
		__u32 wait = DB_WAIT_QUEUE;

		if (function == db_config.wake_page)
			wait = DB_WAIT_PAGE;
		else if (function == db_config.wake_bit || function == db_config.wake_variable)
			wait = DB_WAIT_BIT;
		return db_take_entry(c, l->t, wait, at + 16, next);
	}
	next = c->word[i + 1];
	if (db_is_linked(at + 8, next))
		return db_take_entry(c, l->t, DB_WAIT_DONE, at + 8, next);
	next = c->word[i - 2];
	if (db_is_linked(at - 16, next)) {
		__u32 wait = db_class_of(s->place) == DB_CLASS_FUTEX ? DB_WAIT_FUTEX : DB_WAIT_LOCK;

		return db_take_entry(c, l->t, wait, at - 16, next);
	}
	/* poll and select: their entries name what is on the stack here. */
	at += bpf_core_field_offset(struct poll_wqueues, inline_entries) -
	      bpf_core_field_offset(struct poll_wqueues, polling_task) +
	      bpf_core_field_offset(struct poll_table_entry, wait.entry);
	next = db_word(at);
	if (db_is_linked(at, next))
		return db_take_entry(c, l->t, DB_WAIT_QUEUE, at, next);
	return 0;
}

/*
 * A lock on a file: its requests are a tree below the lock that is held, each with a queue of its
 * own. `request` waits; up to the one that is held.
 */
static __always_inline __u64 db_blocker(__u64 lock)
{
	if (bpf_core_field_exists(struct file_lock_core___new, flc_blocker))
		return (__u64)BPF_CORE_READ((struct file_lock_core___new *)lock, flc_blocker);
	return (__u64)BPF_CORE_READ((struct file_lock___old *)lock, fl_blocker);
}

static __always_inline __u64 db_lock_offset(__u32 what)
{
	if (bpf_core_field_exists(struct file_lock_core___new, flc_blocker))
		return what == 0   ? bpf_core_field_offset(struct file_lock_core___new, flc_wait.head)
		       : what == 1 ? bpf_core_field_offset(struct file_lock_core___new,
							   flc_blocked_requests)
				   : bpf_core_field_offset(struct file_lock_core___new,
							   flc_blocked_member);
	return what == 0   ? bpf_core_field_offset(struct file_lock___old, fl_wait.head)
	       : what == 1 ? bpf_core_field_offset(struct file_lock___old, fl_blocked_requests)
			   : bpf_core_field_offset(struct file_lock___old, fl_blocked_member);
}

/* Up to the lock that is held. */
static long db_climb(__u32 i, struct db_loop *l)
{
	struct db_tree *w = &l->c->tree;
	__u64 blocker = db_blocker(w->lock);

	if ((__s64)blocker >= 0)
		return 1;
	w->lock = blocker;
	return 0;
}

/* Down the tree, without a stack: to the first child, or the next sibling of the nearest parent. */
static long db_tree_step(__u32 i, struct db_loop *l)
{
	struct db_tree *w = &l->c->tree;
	__u64 children = w->lock + db_lock_offset(1), parent, next;

	if (!w->back) {
		next = db_word(children);
		if (next != children && (__s64)next < 0) {
			w->lock = next - db_lock_offset(2);
			w->entries++;
			return 0;
		}
		w->back = 1;
	}
	if (w->lock == w->root)
		return 1;
	parent = db_blocker(w->lock);
	if ((__s64)parent >= 0)
		return 1; /* it was let in meanwhile */
	next = db_word(w->lock + db_lock_offset(2));
	if (next != parent + db_lock_offset(1) && (__s64)next < 0) {
		w->lock = next - db_lock_offset(2);
		w->entries++;
		w->back = 0;
	} else {
		w->lock = parent;
	}
	return 0;
}

static __noinline __u32 db_requests_below(struct db_cpu *c, __u64 lock)
{
	struct db_loop l = { .c = c };

	if (!c)
		return 0;
	c->tree = (struct db_tree){ .root = lock, .lock = lock };
	bpf_loop(2 * DB_WALK, db_tree_step, &l, 0);
	return c->tree.entries;
}

int db_look_for_wait(struct db_cpu *c, struct db_thread *t, __u64 sp, __u64 place)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct db_loop l = { .c = c, .t = t };
	__u64 end;
	__u32 words;

	if (!c || !t)
		return 0;
	t->wait = DB_WAIT_NONE;
	c->scan.task = (__u64)bpf_get_current_task();
	c->scan.sp = sp;
	c->scan.place = place;
	end = db_plain(c, (void *)bpf_task_pt_regs(task));
	words = (end - sp) / sizeof(__u64);
	if (words > DB_SCAN)
		words = DB_SCAN;
	bpf_probe_read_kernel(c->word, words * sizeof(__u64), (void *)sp);
	bpf_loop(words, db_look_at_word, &l, 0);
	if (t->wait == DB_WAIT_QUEUE && db_class_of(place) == DB_CLASS_FILE_LOCK) {
		t->wait = DB_WAIT_FILE;
		t->node = t->head - db_lock_offset(0);
		c->tree.lock = t->node;
		bpf_loop(DB_WALK, db_climb, &l, 0);
		t->head = c->tree.lock;
	}
	return 0;
}

__u64 db_resource(struct db_thread *t)
{
	__u64 what;

	if (!t || t->wait == DB_WAIT_NONE)
		return 0;
	what = t->head;
	if (t->wait == DB_WAIT_PAGE || t->wait == DB_WAIT_BIT || t->wait == DB_WAIT_FUTEX)
		what = t->key[0] ^ t->key[1] << 7 ^ (__u64)(__u32)t->key[2] << 17;
	return mix(db_config.seed, what);
}

__u32 db_waiters(struct db_cpu *c, struct db_thread *t)
{
	struct db_loop l = { .c = c };
	struct db_walk *w;

	if (!c || !t || t->wait == DB_WAIT_NONE)
		return DEBOX_UNKNOWN;
	if (t->wait == DB_WAIT_FILE) {
		__u32 all = db_requests_below(c, t->head);

		if (db_blocker(t->node)) /* it is one of them */
			return all ? all - 1 : 0;
		return all + db_requests_below(c, t->node);
	}
	w = &c->walk;
	*w = (struct db_walk){ .end = t->head, .own = t->node, .wait = t->wait };
	w->node = db_word(t->head);
	w->key[0] = t->key[0];
	w->key[1] = t->key[1];
	w->key[2] = t->key[2];
	bpf_loop(DB_WALK, db_step, &l, 0);
	return w->closed || w->entries >= DB_WALK - 1 ? w->entries : DEBOX_UNKNOWN;
}
