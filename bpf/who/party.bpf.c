// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* For whom a context is at work; see party.bpf.h. */
#include "who/party.bpf.h"

#include "core/run.bpf.h"
#include "process/served.bpf.h"

__u64 huge_scan = 0;
__u64 huge_scan_sampled = 0;

__noinline __u64 pk_object_by_call(__u32 salt, __u64 a, __u64 b)
{
	return pk_object_of(salt, a, b);
}

/* Returns whether there was room. */
static __noinline int pk_count_vote(struct pk_vote_key *key, struct pk_vote *cast)
{
	struct pk_vote *sum = bpf_map_lookup_elem(&votes, key);

	if (!sum) {
		if (!bpf_map_update_elem(&votes, key, cast, BPF_NOEXIST))
			return 1;
		sum = bpf_map_lookup_elem(&votes, key); /* another CPU was first? */
	}
	if (sum) {
		__sync_fetch_and_add(&sum->weight, cast->weight);
		if (cast->anew)
			sum->anew = 1;
	}
	return sum != NULL;
}

/* Global: a verifier follows a static function anew from each place, and way, that calls it. */
__noinline int pk_cast_vote(struct pk_cpu *c, __u32 at)
{
	struct pk_pending *pending;
	struct pk_vote_key key;
	struct pk_vote cast;

	if (!c)
		return 0;
	pending = &c->votes.pending[at & (PK_LEVELS * PK_PENDING - 1)];
	key = pending->key;
	cast = pending->vote;
	if (!pk_count_vote(&key, &cast))
		return 0;
	pending->vote.weight = 0;
	return 1;
}

/*
 * What an interrupt votes for meanwhile is counted at once. What a hook was at work on, when this came in
 * between, stays for the next time, and so does what finds no room.
 */
int pk_cast_votes(struct pk_cpu *c)
{
	__u32 at, level;

	if (!c)
		return 0;
	for (at = 0; at < PK_LEVELS * PK_PENDING; at++) {
		level = at / PK_PENDING;
		if (!c->votes.pending[at].vote.weight || c->votes.voting[level])
			continue;
		c->votes.voting[level] = 1;
		barrier();
		pk_cast_vote(c, at);
		barrier();
		c->votes.voting[level] = 0;
	}
	return 0;
}

int pk_vote(struct pk_cpu *c, __u64 object, __u64 party, __u64 weight, __u32 kind)
{
	struct pk_vote_key key = {object, party};
	struct pk_vote cast = {
		.weight = weight,
		.fades = !is_some(kind ^ PK_VOTE_FADES),
		.anew = !is_some(kind ^ PK_VOTE_BEGINS),
		.fallback = !is_some(kind ^ PK_VOTE_FALLBACK),
	};
	struct pk_pending *pending;
	__u32 level, at;

	if (!c || !party || party == object || party == PK_UNWATCHED_PARTY)
		return 0;
	level = pk_level(c);
	if (unlikely(c->votes.voting[level])) { /* an interrupt, in the middle of this */
		c->stats.votes_full += !pk_count_vote(&key, &cast);
		return 0;
	}
	c->votes.voting[level] = 1;
	barrier();
	at = pk_pending_at(level, object, party);
	pending = &c->votes.pending[at];
	if (pending->key.object == object && pending->key.party == party && !cast.anew &&
	    pending->vote.weight) {
		pending->vote.weight += weight;
	} else {
		if (pending->vote.weight)
			c->stats.votes_full += !pk_cast_vote(c, at);
		pending->key = key;
		pending->vote = cast;
	}
	barrier();
	c->votes.voting[level] = 0;
	return 0;
}

static __always_inline void *pk_thread_data(struct task_struct *task)
{
	struct kthread *kthread = BPF_CORE_READ(task, worker_private);

	return BPF_CORE_READ(kthread, data);
}

static __always_inline __u64 pk_thread_function(struct task_struct *task)
{
	struct kthread *kthread = BPF_CORE_READ(task, worker_private);

	return (__u64)BPF_CORE_READ(kthread, threadfn);
}

/* A worker of the work queues, at work? */
static __always_inline struct worker *pk_busy_worker(struct task_struct *task)
{
	struct worker *worker;

	if (!(BPF_CORE_READ(task, flags) & PF_WQ_WORKER))
		return NULL;
	worker = pk_thread_data(task);
	return BPF_CORE_READ(worker, current_work) ? worker : NULL;
}

/* A thread of another kind that works on a queue. */
static __always_inline struct kthread_work *pk_thread_queue_work(struct task_struct *task)
{
	struct kthread_worker *worker;

	if (!addresses.known[PK_KNOWN_KTHREAD_WORKER] ||
	    pk_thread_function(task) != addresses.known[PK_KNOWN_KTHREAD_WORKER])
		return NULL;
	worker = pk_thread_data(task);
	return BPF_CORE_READ(worker, current_work);
}

__u64 pk_context_object(__u64 taskp)
{
	struct task_struct *task = (void *)taskp;
	struct worker *worker = pk_busy_worker(task);
	__u64 work = worker ? (__u64)BPF_CORE_READ(worker, current_work) : 0;

	return pk_object_by_call(PK_SALT_CONTEXT, taskp, work);
}

__u64 pk_thread_work(__u64 taskp)
{
	struct task_struct *task = (void *)taskp;
	struct worker *worker = pk_busy_worker(task);
	struct kthread_work *work;

	if (worker)
		return (__u64)BPF_CORE_READ(worker, current_func);
	work = pk_thread_queue_work(task);
	return work ? (__u64)BPF_CORE_READ(work, func) : 0;
}

__u64 pk_callbacks_object(__u64 taskp)
{
	struct task_struct *task = (void *)taskp;

	if (addresses.known[PK_KNOWN_RCU_OFFLOADED] &&
	    pk_thread_function(task) == addresses.known[PK_KNOWN_RCU_OFFLOADED])
		return pk_rcu_object_of(BPF_CORE_READ((struct rcu_data *)pk_thread_data(task), cpu));
	if (BPF_CORE_READ(task, flags) & PF_WQ_WORKER && BPF_CORE_READ(task, nr_cpus_allowed) > 1)
		return pk_rcu_object_of(PK_ALL_CPUS);
	return pk_rcu_object();
}

/* The transaction that a journal's thread commits, or did last: of those who had a part in it. */
static __noinline __u64 pk_journal_party(__u64 journalp)
{
	struct journal_s *journal = (void *)journalp;
	struct transaction_s *transaction;
	__u32 tid;

	if (!bpf_core_type_exists(struct journal_s))
		return 0;
	transaction = BPF_CORE_READ(journal, j_committing_transaction);
	tid = transaction ? BPF_CORE_READ(transaction, t_tid) :
			    BPF_CORE_READ(journal, j_commit_sequence);
	return pk_object_by_call(PK_SALT_JOURNAL, BPF_CORE_READ(journal, j_fs_dev, bd_dev), tid);
}

/* Threads that have one thing to do. */
static __noinline __u64 pk_lone_thread_party(__u64 taskp, __u32 *basis)
{
	struct task_struct *task = (void *)taskp;
	__u64 function = pk_thread_function(task);
	void *data = pk_thread_data(task);

	if (!function || !basis)
		return 0;
	*basis = PK_BASIS_OWNER;
	if (function == addresses.known[PK_KNOWN_KHUGEPAGED]) {
		huge_scan_sampled = 1;
		return pk_huge_object();
	}
	*basis = PK_BASIS_QUEUER;
	if (function == addresses.known[PK_KNOWN_OOM_REAPER])
		return pk_noted(pk_reaper_object());
	*basis = PK_BASIS_VOTED;
	if (function == addresses.known[PK_KNOWN_JOURNAL])
		return pk_journal_party((__u64)data);
	if (function == addresses.known[PK_KNOWN_KSWAPD])
		return pk_object_by_call(PK_SALT_KSWAPD,
				    BPF_CORE_READ((struct pglist_data *)data, node_id), 0);
	if (function == addresses.known[PK_KNOWN_KCOMPACTD])
		return pk_object_by_call(PK_SALT_KCOMPACTD,
				    BPF_CORE_READ((struct pglist_data *)data, node_id), 0);
	return 0;
}

/*
 * The device that a piece of work of the loop driver is for; 0: it is not that driver's. A run of
 * it serves all requests that have come, and says of none when it begins.
 */
static __always_inline __u64 pk_loop_of_work(__u64 work, __u64 function)
{
	if (!function || !bpf_core_type_exists(struct loop_worker))
		return 0;
	if (function == addresses.known[PK_KNOWN_LOOP_ROOT])
		return work - bpf_core_field_offset(struct loop_device, rootcg_work);
	if (function == addresses.known[PK_KNOWN_LOOP])
		return (__u64)BPF_CORE_READ((struct loop_worker *)(work - bpf_core_field_offset(
								    struct loop_worker, work)),
					    lo);
	return 0;
}

static __noinline __u64 pk_worker_party(__u64 workerp, __u32 *basis)
{
	struct worker *worker = (void *)workerp;
	__u64 function = (__u64)BPF_CORE_READ(worker, current_func);
	__u64 work = (__u64)BPF_CORE_READ(worker, current_work);
	__u64 loop = pk_loop_of_work(work, function);
	__u64 party;

	if (!basis)
		return 0;
	*basis = loop ? PK_BASIS_SUBMITTER : PK_BASIS_QUEUER;
	/* Whoever waits for other work to be done is told by a piece of work of its own. */
	if (function && function == addresses.known[PK_KNOWN_BARRIER])
		return pk_label_of_waiter(work,
					  (__u64)BPF_CORE_READ((struct wq_barrier *)work, task));
	if (loop)
		return pk_object_by_call(PK_SALT_LOOP, loop, 0);
	if (function && function == addresses.known[PK_KNOWN_PRESSURE])
		return 0;
	party = pk_noted(pk_object_by_call(PK_SALT_WORK, work, function));
	if (party & PK_OBJECT && function == addresses.known[PK_KNOWN_RUN_QUEUE])
		*basis = PK_BASIS_VOTED;
	return party;
}

/* A thread that sends on what many gave it; 0: it is none. */
static __noinline __u64 pk_remapping_party(__u64 taskp)
{
	if (!pk_noted(pk_remapping_object(taskp, 0)))
		return 0;
	return pk_disk_party(pk_noted(pk_remapping_object(taskp, window)));
}

__u64 pk_thread_party(__u64 taskp, __u32 *basis)
{
	struct task_struct *task = (void *)taskp;
	struct kthread_work *queued;
	struct worker *worker;
	__u64 party;

	if (!basis)
		return 0;
	worker = pk_busy_worker(task);
	*basis = worker ? PK_BASIS_DIRTIER : PK_BASIS_OWNER;
	party = pk_noted(pk_context_object(taskp));
	if (party)
		return party;
	if (worker)
		return pk_worker_party((__u64)worker, basis);
	party = pk_remapping_party(taskp);
	if (party)
		return party;
	*basis = PK_BASIS_QUEUER;
	queued = pk_thread_queue_work(task);
	if (queued)
		return pk_noted(pk_object_by_call(PK_SALT_WORK, (__u64)queued,
						  (__u64)BPF_CORE_READ(queued, func)));
	return pk_lone_thread_party(taskp, basis);
}

__u64 pk_party_now(struct pk_cpu *c)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u32 basis;
	int interrupt;

	if (!c)
		return 0;
	interrupt = pk_in_interrupt(c);
	if (interrupt)
		return interrupt > 0 ? pk_done_here(c) : 0;
	if (task->pid == 0)
		return 0;
	if (!(task->flags & PF_KTHREAD))
		return pk_current_label(c, task);
	return pk_thread_party(pk_plain(c, task), &basis);
}

int pk_charge_party(struct pk_cpu *c, struct pk_charge *charge, __u64 party, __u32 basis)
{
	if (!c || !charge)
		return 0;
	if (party & PK_OBJECT)
		return pk_charge_owner(c, charge, party, basis);
	if (party)
		return pk_charge_label(c, charge, party, basis);
	return pk_charge_nobody(c, charge, charge->reason);
}
