// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The tables of clients and of messages' notes; see client.bpf.h. */
#include "clients/client.bpf.h"

#include "process/served.bpf.h"
#include "who/object.bpf.h"

struct workers_map workers SEC(".maps");
struct clients_map clients SEC(".maps");
struct flows_map flows SEC(".maps");
struct ends_map ends SEC(".maps");
struct tcp_ends_map tcp_ends SEC(".maps");
struct awaited_map awaited SEC(".maps");

/* Seeds that keep the kinds of clients apart. */
enum { PK_SALT_CLIENT = 0x636c, PK_SALT_VIA = 0x7669, PK_SALT_REMOTE = 0x7265,
       PK_SALT_CALLED = 0x6361 };

__u32 pk_client_now(void)
{
	struct pk_worker *worker = pk_worker_of(bpf_get_current_task_btf(), false);

	if (!worker || !worker->client)
		return 0;
	return worker->client | (__u32)worker->rule << PK_CLIENT_RULE_SHIFT;
}

static __u32 calls_placed;

/*
 * The place of the client with this number. `fresh`: it has just got it, and who finds it fills it in;
 * where that is set before, it is not to get one. Places are not given back: rows have them.
 */
static __noinline __u32 pk_client_place(__u64 number, __u32 *fresh)
{
	__u32 first = number >> 40, place, i;
	struct pk_client *client;

	if (!fresh)
		return 0;
	for (i = 0; i < PK_CLIENT_NEAR; i++) {
		place = (first + i) & (PK_CLIENTS - 1);
		client = pk_client_at(place);
		if (!client || !place)
			continue;
		if (client->number == number)
			return place;
		if (client->number)
			continue;
		if (*fresh)
			return 0;
		if (__sync_val_compare_and_swap(&client->number, 0, number) == 0) {
			*fresh = 1;
			return place;
		}
		if (client->number == number)
			return place;
	}
	this_cpu()->stats.clients_full++;
	return 0;
}

static __noinline __u32 pk_process_as_client(__u64 process)
{
	__u32 fresh = 0, place = pk_client_place(mix(config.seed ^ PK_SALT_CLIENT, process) | 1, &fresh);
	struct pk_client *client = pk_client_at(place);

	if (!fresh || !client)
		return place;
	client->process = process;
	client->first = place;
	return place;
}

__u32 pk_remote_client(__u64 address, __u32 family, __u32 port)
{
	struct in6_addr at = {};
	struct pk_client *client;
	__u32 fresh = 0, place;
	__u64 number;

	if (bpf_probe_read_kernel(&at, family == AF_INET ? 4 : 16, (void *)address))
		return 0;
	number = mix(mix(config.seed ^ PK_SALT_REMOTE, family == AF_INET ? at.in6_u.u6_addr32[0] : pk_fold_v6(at.in6_u.u6_addr32)), port) | 1;
	place = pk_client_place(number, &fresh);
	client = pk_client_at(place);
	if (!fresh || !client)
		return place;
	__builtin_memcpy(client->address, &at, sizeof(client->address));
	client->family = family;
	client->port = port;
	client->first = place;
	return place;
}

/* The same client, by way of this process, too. Whose own work comes back to it is the client itself. */
static __noinline __u32 pk_client_by_way(__u32 behind, __u64 process)
{
	struct pk_client *before = pk_client_at(behind), *first, *client;
	__u32 fresh = 0, place;

	if (!before)
		return 0;
	first = pk_client_at(before->first);
	if (first && first->process == process)
		return before->first;
	if (before->process == process || before->depth >= PK_CLIENT_DEPTH)
		return behind;
	place = pk_client_place(mix(mix(config.seed ^ PK_SALT_VIA, behind), process) | 1, &fresh);
	client = pk_client_at(place);
	if (!fresh || !client)
		return place;
	client->process = process;
	client->behind = behind;
	client->first = before->first;
	client->depth = before->depth + 1;
	return place;
}

__u32 pk_client_by_call(__u32 place, __u64 stack)
{
	struct pk_client *of = pk_client_at(place), *first, *client;
	struct task_struct *task = bpf_get_current_task_btf();
	struct pk_key at = {};
	bool full = calls_placed >= PK_CLIENT_CALLS;
	__u32 fresh = full, made;

	if (!of || of->call)
		return 0;
	first = pk_client_at(of->first);
	if (!first || first->process != pk_label_of(task))
		return 0;
	pk_current_syscall(task, &at);
	made = pk_client_place(mix(mix(config.seed ^ PK_SALT_CALLED, place), mix(stack, at.syscall)) | 1, &fresh);
	client = pk_client_at(made);
	if (full || !fresh || !client)
		return made;
	__sync_fetch_and_add(&calls_placed, 1);
	client->process = of->process;
	client->behind = of->behind;
	client->first = of->first;
	client->depth = of->depth;
	client->exec_id = task->self_exec_id;
	client->syscall = at.syscall;
	client->compat = at.compat;
	client->call = stack;
	return made;
}

__u32 pk_client_of_message(struct pk_cpu *c)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct pk_worker *worker = pk_worker_of(task, true);

	if (!c || !worker)
		return 0;
	if (worker->client) {
		if (!worker->way)
			worker->way = pk_client_by_way(worker->client, pk_current_label(c, task));
		return worker->way;
	}
	if (!worker->own)
		worker->own = pk_process_as_client(pk_current_label(c, task));
	return worker->own;
}

__u64 pk_label_at_work(__u64 label)
{
	struct pk_worker *worker = pk_worker_of(bpf_get_current_task_btf(), false);
	struct pk_client *way;

	if (!worker || !worker->client || !worker->way)
		return label;
	way = pk_client_at(worker->way);
	if (!way || way->process != label || way->behind != worker->client)
		return label;
	return PK_AT_WORK | worker->way;
}

/* Where all places near are taken, the first goes: of its next message it is not known whose it is. */
int pk_note_message(__u64 number, __u64 sender, __u32 client, __u64 question)
{
	struct pk_flow *flow, *free = NULL;
	__u32 i;

	for (i = 0; i < PK_NEAR; i++) {
		flow = pk_flow_at((__u32)(number >> 32) + i);
		if (!flow)
			return 0;
		if (flow->number == number)
			goto found;
		if (!free && !flow->number)
			free = flow;
	}
	flow = free ? free : pk_flow_at(number >> 32);
	if (!flow)
		return 0;
	flow->number = 0;
	flow->sender = sender;
	flow->before = 0;
	flow->several = 0;
	flow->awaited = 0;
	flow->client = client;
	flow->question = question;
	flow->window = window;
	flow->number = number;
	return 0;
found:
	if (unlikely(flow->sender != sender)) {
		flow->several |= flow->before == sender;
		flow->before = flow->sender;
		flow->sender = sender;
	}
	flow->client = client;
	flow->question = question;
	flow->window = window;
	return 0;
}
