// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Samples whose client is known a moment later.
 *
 * A thread that waits for many clients wakes, looks who it is, and takes the message: all of that was
 * for whoever sent it. And one that takes messages of several clients before it answers any works for
 * the one whose answer it sends next, or still for the one that it took from last: servers differ.
 * Which of both a thread does is seen from where its user code's time goes: between takings, or between
 * answers.
 *
 * A sample is counted at once as what is known by then. Up to the thread's next taking or answer it is
 * held, and may be moved to another row. So nothing is missing where that never comes.
 */
#include "clients/client.bpf.h"
#include "core/code.bpf.h"
#include "who/count.bpf.h"

enum {
	/* Numbers of system calls, as in arch/x86/entry/syscalls/syscall_64.tbl. */
	SYS_WRITE = 1,
	SYS_WRITEV = 20,
	SYS_SENDFILE = 40,
	SYS_SENDTO = 44,
	SYS_SENDMSG = 46,
	SYS_SENDMMSG = 307,
	PK_MOST_BETWEEN = 1 << 12,
	PK_FEW_BETWEEN = 8,
};

int pk_hold_sample(struct pk_key *key, __u64 ns, __u32 samples)
{
	struct pk_worker *worker = pk_worker_of(bpf_get_current_task_btf(), false);
	__u32 at;

	if (!key || !worker)
		return 0;
	at = worker->held;
	if (at >= PK_HELD)
		return 0;
	worker->sample[at].key = *key;
	worker->sample[at].ns = ns;
	worker->sample[at].samples = samples;
	worker->held = at + 1;
	return 0;
}

static __always_inline bool pk_is_sending(const struct pk_key *key)
{
	if (key->kind != PK_OWN || key->compat)
		return false;
	switch (key->syscall) {
	case SYS_WRITE:
	case SYS_WRITEV:
	case SYS_SENDFILE:
	case SYS_SENDTO:
	case SYS_SENDMSG:
	case SYS_SENDMMSG:
		return true;
	}
	return false;
}

/* Takes so much off a count, unless others are at it just now, or there is less. */
static __always_inline bool pk_take_off_count(__u64 *count, __u64 much)
{
	__u64 before = *(volatile __u64 *)count;

	return before >= much && __sync_val_compare_and_swap(count, before, before - much) == before;
}

/*
 * Counts a sample under another client instead. Where its row is not to be had any more, it stays: user
 * space may have taken the table, and what is there now may be others'.
 */
static __noinline int pk_move_sample(struct pk_cpu *c, struct pk_held *held, __u32 client)
{
	struct pk_cpu *me = this_cpu();
	struct pk_key *row = &me->scratch.row[pk_level(me)];
	__u32 zero = 0, samples;
	void *table = bpf_map_lookup_elem(&counts, &zero);
	struct pk_count *from;
	struct pk_key *key;

	if (!c || !held || !table || held->key.client == client)
		return 0;
	*row = held->key;
	from = bpf_map_lookup_elem(table, row);
	if (!from || !pk_take_off_count(&from->ns, held->ns))
		return 0;
	samples = pk_take_off_count(&from->samples, held->samples) ? held->samples : 0;
	key = pk_fresh_key();
	*key = held->key;
	key->client = client;
	return pk_count(c, key, held->ns, samples);
}

enum pk_move { PK_MOVE_NONE = 0, PK_MOVE_OWN, PK_MOVE_SENDING, PK_MOVE_ALL };

/* Those that this is to move become the client's; none is held any more. Returns those of user code. */
static __noinline __u32 pk_settle_held(struct pk_cpu *c, struct pk_worker *worker, __u32 client, __u32 which)
{
	__u32 i, user = 0;

	if (!c || !worker)
		return 0;
	for (i = 0; i < PK_HELD; i++) {
		struct pk_held *held = &worker->sample[i];

		if (i >= worker->held)
			break;
		user += held->key.kind == PK_USER;
		if (which == PK_MOVE_ALL || (which == PK_MOVE_OWN && !held->key.client) ||
		    (which == PK_MOVE_SENDING && pk_is_sending(&held->key)))
			pk_move_sample(c, held, client);
	}
	worker->held = 0;
	return user;
}

static __always_inline void pk_add_between(struct pk_worker *worker, __u16 *between, __u32 user)
{
	*between += user;
	if (*between < PK_MOST_BETWEEN)
		return;
	worker->between_takes /= 2;
	worker->between_answers /= 2;
	worker->between_both /= 2;
}

/*
 * A thread that takes several messages, works on them all, and then sends all answers: a ring of
 * io_uring's, mostly. Neither takings nor answers tell when it turns from one to the next.
 */
static __always_inline bool pk_shares(const struct pk_worker *worker)
{
	return worker->between_both >= PK_FEW_BETWEEN &&
	       worker->between_both / 4 > worker->between_takes + worker->between_answers;
}

int pk_note_alone(__u32 answers)
{
	struct pk_worker *worker = pk_worker_of(bpf_get_current_task_btf(), false);
	struct pk_client *client;

	if (!worker || !worker->alone || !pk_shares(worker))
		return 0;
	client = pk_client_at(worker->client);
	if (!client)
		return 0;
	client->alone += answers;
	client->alone_samples += !answers;
	return 0;
}

/* What a client's messages take of user code by themselves, in some unit, and never nothing. */
static __always_inline __u32 pk_weight_of(__u32 place)
{
	struct pk_client *client = pk_client_at(place);
	__u32 samples = client ? client->alone_samples : 0, messages = client ? client->alone : 0;

	return 1 + 1024ULL * (samples + 1) / (messages + 1);
}

static __noinline __u32 pk_by_lot(struct pk_worker *worker, __u32 user)
{
	__u64 sum = 0, lot;
	__u32 i;

	if (!worker)
		return 0;
	for (i = 0; i < PK_TOGETHER && i < worker->together; i++)
		sum += user ? pk_weight_of(worker->taken[i]) : 1;
	lot = bpf_get_prandom_u32() % (sum | 1);
	for (i = 0; i < PK_TOGETHER && i < worker->together; i++) {
		__u32 weight = user ? pk_weight_of(worker->taken[i]) : 1;

		if (lot < weight)
			return worker->taken[i];
		lot -= weight;
	}
	return worker->client;
}

__u32 pk_client_of_sample(__u32 user)
{
	struct pk_worker *worker = pk_worker_of(bpf_get_current_task_btf(), false);

	if (!worker)
		return 0;
	pk_note_accepted(worker, true);
	if (worker->queue_kind == PK_QUEUE_ALONE)
		pk_look_for_unseen();
	if (!worker->client)
		return 0;
	if (worker->together < 2 || !pk_shares(worker)) {
		if (user)
			pk_note_alone(0);
		return worker->client | (__u32)worker->rule << PK_CLIENT_RULE_SHIFT;
	}
	return pk_by_lot(worker, user) | PK_CLIENT_SHARED << PK_CLIENT_RULE_SHIFT;
}

int pk_settle_taken(struct pk_cpu *c, __u32 client, __u8 rule)
{
	struct pk_worker *worker = pk_worker_of(bpf_get_current_task_btf(), false);
	bool other;
	__u32 user;

	if (!c || !worker)
		return 0;
	other = worker->last == PK_EVENT_TAKES && worker->client != client;
	user = pk_settle_held(c, worker, client | (__u32)rule << PK_CLIENT_RULE_SHIFT,
			      client ? PK_MOVE_OWN : PK_MOVE_NONE);
	if (other)
		pk_add_between(worker, &worker->between_takes, user);
	return 0;
}

int pk_settle_answered(struct pk_cpu *c, __u32 client)
{
	struct pk_worker *worker = pk_worker_of(bpf_get_current_task_btf(), false);
	__u32 which = PK_MOVE_SENDING, user;

	if (!c || !worker)
		return 0;
	if (worker->last == PK_EVENT_ANSWERS || worker->between_answers > worker->between_takes)
		which = PK_MOVE_ALL;
	if (client == worker->client)
		which = PK_MOVE_OWN;
	if (worker->together > 1 && worker->last == PK_EVENT_TAKES && pk_shares(worker))
		which = PK_MOVE_SENDING;
	user = pk_settle_held(c, worker, client | PK_CLIENT_REPLIED << PK_CLIENT_RULE_SHIFT, which);
	if (worker->last == PK_EVENT_ANSWERS && client != worker->client)
		pk_add_between(worker, &worker->between_answers, user);
	if (worker->last == PK_EVENT_TAKES && worker->together > 1)
		pk_add_between(worker, &worker->between_both, user);
	return 0;
}

/*
 * What finds no place stays without a call, and so does what was at the first one for another question.
 * That there is one is noted beside the question, where who takes the answer looks anyway.
 */
int pk_await_call(struct pk_key *key, __u64 ns, __u32 samples)
{
	struct pk_worker *worker = pk_worker_of(bpf_get_current_task_btf(), false);
	struct pk_awaited *at = NULL, *one;
	struct pk_flow *flow;
	__u32 i;

	if (!key || !worker || !worker->question ||
	    (key->client & PK_CLIENT_PLACE) != worker->client)
		return 0;
	for (i = 0; i < PK_NEAR; i++) {
		one = pk_awaited_at(worker->question, i);
		if (one && (i ? !one->question : one->question != worker->question)) {
			at = one;
			break;
		}
	}
	if (!at)
		return 0;
	at->question = 0;
	at->sample.key = *key;
	at->sample.ns = ns;
	at->sample.samples = samples;
	at->question = worker->question;
	flow = pk_flow_of(worker->question);
	if (flow)
		flow->awaited = 1;
	return 0;
}

int pk_give_calls(struct pk_cpu *c, __u64 question, __u64 stack)
{
	struct pk_flow *flow = pk_flow_of(question);
	struct pk_awaited *one;
	__u32 i, client, call;

	if (flow)
		flow->awaited = 0;
	if (!c || !stack)
		return 0;
	for (i = 0; i < PK_NEAR; i++) {
		one = pk_awaited_at(question, i);
		if (!one || one->question != question)
			continue;
		client = one->sample.key.client;
		call = pk_client_by_call(client & PK_CLIENT_PLACE, stack);
		if (call)
			pk_move_sample(c, &one->sample, call | (client & ~PK_CLIENT_PLACE));
		one->question = 0;
	}
	return 0;
}
