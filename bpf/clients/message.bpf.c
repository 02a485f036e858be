// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Datagrams of UDP, and messages of Unix sockets; streams are in message.bpf.h. */
#include "clients/message.bpf.h"

#include "core/hook.bpf.h"

#include <bpf/bpf_tracing.h>

/* The number of a datagram's note: both its ends, as its headers have them. */
static __always_inline __u64 pk_datagram_flow(const struct pk_packet_info *info, __u64 net)
{
	return (pk_is_loopback(info->local) ? mix(info->ends, net) : info->ends) | 1;
}

__noinline int pk_sends_datagram(struct pk_cpu *c, __u64 skb, __u64 sk)
{
	struct pk_packet_info *info;

	if (!c)
		return 0;
	info = pk_info(c);
	pk_parse_packet(skb, false, info);
	if (info->object)
		pk_note_message(pk_datagram_flow(info, (__u64)BPF_CORE_READ((struct sock *)sk, __sk_common.skc_net.net)),
				sk, pk_client_of_message(c), 0);
	return 0;
}

/* From whom a datagram came that is not from this machine. */
static __noinline __u32 pk_remote_sender(__u64 skbp)
{
	struct sk_buff *skb = (void *)skbp;
	__u64 header = (__u64)BPF_CORE_READ(skb, head) + BPF_CORE_READ(skb, network_header);
	bool v4 = bpf_ntohs(BPF_CORE_READ(skb, protocol)) == ETH_P_IP;
	__be16 port = 0;

	if (config.clients & PK_CLIENTS_PORTS)
		bpf_probe_read_kernel(&port, sizeof(port), BPF_CORE_READ(skb, head) +
								   BPF_CORE_READ(skb, transport_header));
	return pk_remote_client(header + (v4 ? 12 : 8), v4 ? AF_INET : AF_INET6, port);
}

static __always_inline __u32 pk_datagram_client(struct pk_cpu *c, __u64 skb, __u64 net)
{
	struct pk_packet_info *info = pk_info(c);
	struct pk_flow *flow;
	__u32 client;

	pk_parse_packet(skb, false, info);
	if (!info->object || info->waits) /* none of UDP */
		return 0;
	flow = pk_noted_message(pk_datagram_flow(info, net));
	client = flow ? flow->client : 0;
	return client || pk_is_loopback(info->local) ? client : pk_remote_sender(skb);
}

/* The first packet in a queue of these; 0: there is none. */
static __always_inline __u64 pk_first_in(__u64 queue)
{
	__u64 first = (__u64)BPF_CORE_READ((struct sk_buff_head *)queue, next);

	return first == queue ? 0 : first;
}

/* Who reads takes those first that are in the reader's own queue. */
__u32 pk_next_datagram(struct pk_cpu *c, __u64 sk)
{
	__u64 first = pk_first_in(sk + bpf_core_field_offset(struct udp_sock, reader_queue));

	if (!c)
		return 0;
	if (!first)
		first = pk_first_in(sk + bpf_core_field_offset(struct sock, sk_receive_queue));
	if (!first)
		return 0;
	return PK_NEXT_KNOWN |
	       pk_datagram_client(c, first, (__u64)BPF_CORE_READ((struct sock *)sk, __sk_common.skc_net.net));
}

/* The socket that sent the last packet of a Unix socket's queue, as a number. */
static __always_inline __u64 pk_last_sender(__u64 receiver)
{
	__u64 queue = receiver + bpf_core_field_offset(struct sock, sk_receive_queue);
	__u64 last = (__u64)BPF_CORE_READ((struct sk_buff_head *)queue, prev);

	return last == queue ? 0 : (__u64)BPF_CORE_READ((struct sk_buff *)last, sk);
}

/*
 * To a socket that anyone may send to. The sender's is seen from its message alone, so its role is not
 * remembered: one with an address that is not connected is passive.
 */
int pk_unix_datagram_comes(struct pk_cpu *c, __u64 receiver)
{
	__u64 sender = pk_last_sender(receiver), number;
	struct unix_sock *sock = (void *)sender;
	struct pk_worker *worker;
	__u32 client;

	if (!c || !sender || (!BPF_CORE_READ(sock, peer) && BPF_CORE_READ(sock, addr)))
		return 0;
	number = pk_sock_object(sender);
	client = pk_client_of_message(c);
	worker = pk_worker_of(bpf_get_current_task_btf(), false);
	return pk_note_message(number, sender, client,
			       worker && worker->client ? worker->question : number);
}

__u64 pk_asked_by_datagram(__u64 sk, __u32 *client)
{
	struct pk_flow *flow = pk_noted_message(pk_sock_object(sk));
	struct pk_client *way = flow ? pk_client_at(flow->client) : NULL;

	if (!client || !way || !way->behind)
		return 0;
	*client = way->behind | PK_CLIENT_TAKEN << PK_CLIENT_RULE_SHIFT;
	return flow->question;
}

/* 0, too, where its sender has not noted it yet: that will tell. */
__u32 pk_next_unix_datagram(__u64 sk)
{
	__u64 first = pk_first_in(sk + bpf_core_field_offset(struct sock, sk_receive_queue));
	struct pk_flow *flow;

	if (!first)
		return 0;
	flow = pk_noted_message(pk_sock_object((__u64)BPF_CORE_READ((struct sk_buff *)first, sk)));
	return flow ? PK_NEXT_KNOWN | flow->client : 0;
}

/*
 * A Unix socket's message is copied to its reader. To free it wakes its sender, and the interrupt that
 * this takes is for whoever sent it. So the message counts as taken now, and once more when the call
 * returns. The hook fires for TCP, too, and rests while Unix sockets carry hardly any messages: they are
 * taken at the call's end then.
 */
SEC("?tp_btf/skb_copy_datagram_iovec")
int BPF_PROG(pk_client_arrives, struct sk_buff *skb)
{
	struct sock *sender = skb->sk;
	struct task_struct *task;
	struct pk_worker *worker;
	struct pk_flow *flow;
	struct pk_cpu *c;

	if (!sender || sender->__sk_common.skc_family != AF_UNIX)
		return 0;
	c = pk_hook(PK_HOOKS_CLIENTS);
	task = bpf_get_current_task_btf();
	worker = pk_worker_of(task, true);
	flow = worker ? pk_noted_message(pk_sock_object(pk_plain(c, sender))) : NULL;
	if (flow)
		pk_client_takes(c, task, worker, flow->client, PK_CLIENT_TAKEN, flow->question);
	return 0;
}
