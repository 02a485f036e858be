// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Messages of UDP and of Unix sockets; those of TCP are seen by the network's hooks. */
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

/*
 * Only whoever asks has noted its message, so this one is taken now: to free it may wake its sender.
 * Over which socket comes next, in pk_sock_recv_length.
 */
SEC("?tp_btf/skb_copy_datagram_iovec")
int BPF_PROG(pk_client_arrives, struct sk_buff *skb)
{
	struct sock *sender = skb->sk;
	struct pk_worker *worker;
	struct pk_flow *flow;
	struct pk_cpu *c;

	if (!sender || sender->__sk_common.skc_family != AF_UNIX)
		return 0;
	c = pk_hook(PK_HOOKS_CLIENTS);
	worker = pk_worker_of(bpf_get_current_task_btf(), true);
	if (!worker)
		return 0;
	flow = pk_noted_message(pk_sock_object(pk_plain(c, sender)));
	worker->arrived = flow ? flow->client : 0;
	if (!flow)
		return 0;
	return pk_client_takes(c, worker->arrived, PK_CLIENT_TAKEN, flow->question);
}

/* Unix sockets: the message is in the other's hands already, and may be taken before this. */
static __always_inline int pk_sends(struct pk_cpu *c, struct sock *sk, int ret)
{
	struct pk_end *end;

	if (ret <= 0 || sk->__sk_common.skc_family != AF_UNIX ||
	    bpf_get_current_task_btf()->flags & PF_KTHREAD)
		return 0;
	end = pk_end_of(sk, false);
	if (!end)
		return 0;
	if (end->role == PK_ROLE_PASSIVE)
		end->taken = 0;
	if (end->role != PK_ROLE_ACTIVE)
		return 0;
	pk_asks(c, end, pk_sock_object(pk_plain(c, sk)), pk_plain(c, sk));
	return 0;
}

SEC("?tp_btf/sock_send_length")
int BPF_PROG(pk_client_sends, struct sock *sk, int ret)
{
	return pk_sends(pk_hook(PK_HOOKS_CLIENTS), sk, ret);
}

/* Before there was a tracepoint. Such programs return nothing but 0. */
SEC("?fexit/unix_stream_sendmsg")
int BPF_PROG(pk_client_sends_stream, struct socket *sock, void *msg, __u64 len, int ret)
{
	pk_sends(pk_hook(PK_HOOKS_CLIENTS), sock->sk, ret);
	return 0;
}

SEC("?fexit/unix_dgram_sendmsg")
int BPF_PROG(pk_client_sends_datagram, struct socket *sock, void *msg, __u64 len, int ret)
{
	pk_sends(pk_hook(PK_HOOKS_CLIENTS), sock->sk, ret);
	return 0;
}
