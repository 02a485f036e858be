// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The network's hooks. Each has a fast path of a few instructions, since it runs for every packet
 * on the machine, and a slow path for when the sampler waits for it or work is on account.
 */
#include "net.bpf.h"
#include "served.bpf.h"

#include <bpf/bpf_tracing.h>
#include <linux/errno.h>

static __always_inline __u64 pk_enter(struct pk_cpu *c)
{
	c->busy = 1;
	c->stats.slow_runs++;
	return bpf_ktime_get_ns();
}

static __always_inline void pk_leave(struct pk_cpu *c, __u64 entered)
{
	c->stats.slow_ns += bpf_ktime_get_ns() - entered;
	c->busy = 0;
}

/* ---- receiving ---- */

/*
 * A driver hands over a packet, which may be processed elsewhere (receive packet steering) or be
 * joined with others (GRO). What the CPU did up to here was for this one. A segment of TCP goes by
 * its connection at once; any other packet takes the account along.
 */
static __noinline int pk_handover_slow(struct pk_cpu *c, __u64 skb)
{
	struct pk_packet_info *info = pk_info(c);
	__u64 entered;

	if (!c)
		return 0;
	entered = pk_enter(c);
	if (!pk_same_run(c)) {
		pk_net_close(c);
	} else if (c->armed == PK_PHASE_BEFORE || c->armed == PK_PHASE_ENTRY) {
		c->charge.vec = PK_VEC_NET_RX;
		pk_parse_packet(skb, true, info);
		c->charge.reason = info->reason;
		pk_net_settle(c, info->waits ? info->object : pk_packet_object(skb, info));
	}
	pk_leave(c, entered);
	return 0;
}

SEC("?tp_btf/napi_gro_receive_entry")
int BPF_PROG(pk_napi_gro_receive, struct sk_buff *skb)
{
	struct pk_cpu *c = this_cpu();

	/* For telling another CPU of it (PK_AT_STEER): this packet, not one that was sent. */
	c->tx_sk = 0;
	c->skb = (__u64)skb;
	if (likely(!c->armed))
		return 0;
	return pk_handover_slow(c, pk_plain(c, skb));
}

/* The packet brought an account along from another CPU, or from its driver. */
static __always_inline void pk_carry(struct pk_cpu *c, __u64 skb, __u64 object,
				     struct pk_packet_info *info)
{
	if (!c->armed) {
		c->charge.samples = 0;
		c->charge.vec = PK_VEC_NET_RX;
		c->task = bpf_get_current_task();
		c->runs = pk_serving_softirq(c) == 1 ? pk_softirq_runs(c, PK_VEC_NET_RX) :
						       PK_RUNS_UNKNOWN;
		c->receivers = 0;
		c->tap = 0;
		pk_net_at_packet(c, skb, info);
		c->armed = PK_PHASE_PACKET;
	}
	c->carried = object;
}

static __noinline int pk_receive_slow(struct pk_cpu *c, __u64 skb)
{
	struct pk_packet_info *info = pk_info(c);
	__u64 entered, object;

	if (!c)
		return 0;
	entered = pk_enter(c);
	pk_parse_packet(skb, true, info);
	if (!c->armed) {
		/* only the packet's own account, below */
	} else if (!pk_same_run(c)) {
		pk_net_close(c);
	} else if (c->armed == PK_PHASE_BEFORE || c->armed == PK_PHASE_ENTRY) {
		c->charge.vec = PK_VEC_NET_RX;
		if (c->runs != PK_RUNS_UNKNOWN)
			c->runs = pk_softirq_runs(c, PK_VEC_NET_RX);
		pk_net_at_packet(c, skb, info);
		c->armed = PK_PHASE_PACKET;
	} else if (c->armed == PK_PHASE_PACKET) {
		/* The same again: decapsulated, or up from a bridge; or the next fragment. */
		if (c->packet == skb || (c->datagram && c->datagram == info->datagram))
			pk_net_at_packet(c, skb, info);
		else
			pk_net_close(c); /* that packet is done */
	}
	object = pk_packet_object(skb, info);
	if (pk_on_account(object))
		pk_carry(c, skb, object, info);
	pk_leave(c, entered);
	return 0;
}

SEC("?tp_btf/netif_receive_skb")
int BPF_PROG(pk_netif_receive_skb, struct sk_buff *skb)
{
	struct pk_cpu *c = this_cpu();
	__u64 plain;

	c->sk = 0;
	c->skb = (__u64)skb;
	plain = *(volatile __u64 *)&c->skb;
	if (likely(!c->armed && !slot_tags[pk_slot_of(plain >> 6) & (PK_SLOTS - 1)]))
		return 0;
	return pk_receive_slow(c, plain);
}

static __noinline int pk_socket_slow(struct pk_cpu *c, __u64 sk)
{
	bool packet_socket;
	__u64 object, entered;
	__u32 n;

	if (!c)
		return 0;
	entered = pk_enter(c);
	if (!pk_same_run(c)) {
		pk_net_close(c);
		goto out;
	}
	if (c->armed == PK_PHASE_TRANSMIT || c->armed == PK_PHASE_TIMER)
		goto out;
	packet_socket = BPF_CORE_READ((struct sock *)sk, __sk_common.skc_family) == AF_PACKET;
	if (packet_socket && !c->tap) {
		/* It looks on; what it looks at is for someone else, unless nobody has it. */
		if (!c->object && c->charge.reason == PK_PROTOCOL) {
			c->object = pk_sock_object(sk);
			c->waits = 1;
		}
		goto out;
	}
	/* A handshake is for who will have the connection, and its packets name that. */
	object = pk_sock_listens(sk) && c->object ? c->object : pk_sock_object(sk);
	c->charge.vec = PK_VEC_NET_RX;
	n = c->receivers;
	if (c->shared && !packet_socket && n < 4) {
		c->sockets[n & 3] = object;
		c->receivers = n + 1;
		goto out;
	}
	pk_net_settle(c, object);
out:
	pk_leave(c, entered);
	return 0;
}

static __always_inline int pk_socket_found(struct sock *sk)
{
	struct pk_cpu *c = this_cpu();

	c->sk = (__u64)sk;
	if (likely(!c->armed))
		return 0;
	return pk_socket_slow(c, pk_plain(c, sk));
}

SEC("?tp_btf/sk_data_ready")
int BPF_PROG(pk_sk_data_ready, struct sock *sk)
{
	return pk_socket_found(sk);
}

/* Before there was a tracepoint: the function that nearly every socket has as sk_data_ready. */
SEC("?fentry/sock_def_readable")
int BPF_PROG(pk_sock_def_readable, struct sock *sk)
{
	return pk_socket_found(sk);
}

/* Every segment of an established connection, pure acknowledgements too. */
SEC("?tp_btf/tcp_probe")
int BPF_PROG(pk_tcp_probe, struct sock *sk)
{
	return pk_socket_found(sk);
}

static __noinline int pk_drop_slow(struct pk_cpu *c, __u64 skb, __u64 rx_sk)
{
	struct pk_key nobody = {
		.served = PK_UNCLAIMED + PK_DROPPED,
		.basis = PK_BASIS_PROVISIONAL,
		.syscall = PK_NO_SYSCALL,
	};
	struct pk_packet_info *info = pk_info(c);
	__u64 entered, *owner, object;

	if (!c)
		return 0;
	entered = pk_enter(c);
	if (!c->armed || c->packet != skb) {
		/* Thrown away before it was processed: what it carried is for nobody. */
		pk_parse_packet(skb, false, info);
		object = pk_packet_object(skb, info);
		if (pk_on_account(object))
			pk_attribute(c, object, &nobody);
	} else if (!pk_same_run(c)) {
		pk_net_close(c);
	} else if (c->armed == PK_PHASE_PACKET) {
		if (rx_sk) {
			/* Thrown away at a socket (its buffer is full): still work for it. */
			pk_net_settle(c, pk_sock_object(rx_sk));
		} else if (c->receivers) {
			pk_net_close(c);
		} else {
			/* The last segments of a connection end here too: its owner is known. */
			owner = c->object ? bpf_map_lookup_elem(&owners, &c->object) : NULL;
			if (!owner) {
				c->object = 0;
				if (c->charge.reason == PK_EXPIRED)
					c->charge.reason = PK_DROPPED;
			}
			pk_net_close(c);
		}
	}
	pk_leave(c, entered);
	return 0;
}

static __always_inline int pk_packet_dropped(struct pk_cpu *c, struct sk_buff *skb, void *rx_sk)
{
	__u64 plain = pk_plain(c, skb);

	if (likely(!c->armed && !slot_tags[pk_slot_of(plain >> 6) & (PK_SLOTS - 1)]))
		return 0;
	return pk_drop_slow(c, plain, pk_plain(c, rx_sk));
}

SEC("?tp_btf/kfree_skb")
int BPF_PROG(pk_kfree_skb, struct sk_buff *skb)
{
	return pk_packet_dropped(this_cpu(), skb, NULL);
}

SEC("?tp_btf/kfree_skb")
int BPF_PROG(pk_kfree_skb_rx, struct sk_buff *skb, void *location, int reason, struct sock *rx_sk)
{
	return pk_packet_dropped(this_cpu(), skb, rx_sk);
}

/* ---- sending ---- */

static __noinline int pk_queue_slow(struct pk_cpu *c, __u64 skb, __u64 sk)
{
	struct pk_packet_info *info = pk_info(c);
	__u64 entered;

	if (!c)
		return 0;
	entered = pk_enter(c);
	if (!pk_same_run(c)) {
		pk_net_close(c);
		goto out;
	}
	if (sk && pk_sock_of_kernel(sk))
		goto out;
	switch (c->armed) {
	case PK_PHASE_PACKET:
		if (sk) {
			pk_net_settle(c, pk_sock_object(sk));
		} else if (skb == c->packet) {
			/* Its receiver may be on this machine: then it brings the account there. */
			pk_parse_packet(skb, false, info);
			c->charge.reason = PK_FORWARDED;
			pk_net_settle(c, pk_packet_object(skb, info));
		}
		break;
	case PK_PHASE_TRANSMIT:
	case PK_PHASE_TIMER:
	case PK_PHASE_ENTRY:
		if (sk) {
			pk_net_settle(c, pk_sock_object(sk));
		} else if (c->armed == PK_PHASE_TRANSMIT) {
			pk_charge_nobody(c, &c->charge, PK_FORWARDED);
			c->stats.settled++;
			c->armed = PK_PHASE_NONE;
		}
		break;
	}
out:
	pk_leave(c, entered);
	return 0;
}

/* ---- taking ---- */

/*
 * The current process has its hands on a socket that has work on account: it is the one the work
 * was for. Its call path, down to the system call, goes with it.
 */
static __noinline int pk_take(struct pk_cpu *c, void *ctx, __u64 object, __u8 basis)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct pk_key who = { .basis = basis, .syscall = PK_NO_SYSCALL };
	struct pk_scratch *s;
	__u32 one = 1;

	if (!c)
		return 0;
	who.served = pk_current_label(c, task);
	if (!(task->flags & PF_KTHREAD)) {
		pk_current_syscall(task, &who);
		s = bpf_map_lookup_elem(&scratch, &one);
		if (s)
			who.ustack = pk_user_stack(c, ctx, &s->stack);
		who.exec_id = task->self_exec_id;
	}
	pk_attribute(c, object, &who);
	bpf_map_update_elem(&owners, &object, &who.served, BPF_ANY);
	return 0;
}

/* Is anything on account in this socket's slot? The one test that every call pays. */
static __always_inline bool pk_may_have_account(struct pk_cpu *c, struct sock *sk)
{
	__u32 v;

	if (sk->sk_protocol == IPPROTO_TCP)
		v = pk_sock_portpair(pk_plain(c, sk), sk->__sk_common.skc_portpair);
	else
		v = (__u32)(pk_plain(c, sk) >> 6);
	return slot_tags[pk_slot_of(v) & (PK_SLOTS - 1)] != 0;
}

static __always_inline int pk_socket_taken(void *ctx, struct sock *sk)
{
	struct pk_cpu *c = this_cpu();
	__u64 object, entered;

	if (likely(!pk_may_have_account(c, sk)))
		return 0;
	object = pk_sock_object(pk_plain(c, sk));
	if (!pk_on_account(object))
		return 0;
	if (pk_serving_softirq(c))
		return 0;
	entered = pk_enter(c);
	pk_take(c, ctx, object, PK_BASIS_CONSUMED);
	pk_leave(c, entered);
	return 0;
}

/* An error is taken, too: that the connection was reset, for one. */
SEC("?tp_btf/sock_recv_length")
int BPF_PROG(pk_sock_recv_length, struct sock *sk, int ret)
{
	return ret == -EAGAIN ? 0 : pk_socket_taken(ctx, sk);
}

/* TCP, where sock_recv_length does not fire: splice. */
SEC("?tp_btf/tcp_rcv_space_adjust")
int BPF_PROG(pk_tcp_rcv_space_adjust, struct sock *sk)
{
	return pk_socket_taken(ctx, sk);
}

/* Before there was a tracepoint. */
SEC("?fexit/sock_recvmsg")
int BPF_PROG(pk_sock_recvmsg, struct socket *sock, void *msg, int flags, int ret)
{
	return ret == -EAGAIN ? 0 : pk_socket_taken(ctx, sock->sk);
}

SEC("?tp_btf/net_dev_queue")
int BPF_PROG(pk_net_dev_queue, struct sk_buff *skb)
{
	struct pk_cpu *c = this_cpu();
	struct sock *sk = skb->sk;

	c->tx_sk = (__u64)sk;
	if (unlikely(c->armed))
		return pk_queue_slow(c, pk_plain(c, skb), *(volatile __u64 *)&c->tx_sk);
	/* A process that sends takes what was done for its socket: acknowledgements, windows. */
	if (sk)
		return pk_socket_taken(ctx, sk);
	return 0;
}

SEC("?tp_btf/qdisc_dequeue")
int BPF_PROG(pk_qdisc_dequeue, void *qdisc, void *txq, int packets, struct sk_buff *skb)
{
	struct pk_cpu *c = this_cpu();

	if (!skb)
		return 0;
	c->tx_sk = (__u64)skb->sk;
	if (likely(!c->armed))
		return 0;
	return pk_queue_slow(c, pk_plain(c, skb), *(volatile __u64 *)&c->tx_sk);
}

/* ---- connections ---- */

/*
 * Opening and closing. In a process, it is the owner that does so, and may be gone before anyone
 * asks; in a softirq, a handshake has found its socket.
 */
SEC("?tp_btf/inet_sock_set_state")
int BPF_PROG(pk_inet_sock_set_state, struct sock *sk)
{
	struct pk_cpu *c = this_cpu();
	__u64 object, entered;

	if (pk_serving_softirq(c) != 0)
		return pk_socket_found(sk);
	if (bpf_get_current_task_btf()->flags & PF_KTHREAD)
		return 0;
	object = pk_sock_object(pk_plain(c, sk));
	entered = pk_enter(c);
	if (pk_on_account(object)) {
		pk_take(c, ctx, object, PK_BASIS_OWNER);
	} else {
		__u64 label = pk_current_label(c, bpf_get_current_task_btf());

		bpf_map_update_elem(&owners, &object, &label, BPF_ANY);
	}
	pk_leave(c, entered);
	return 0;
}

/* ---- timers of sockets ---- */

/*
 * A timer's function returns. Is it a socket's, and the work that waits its own? The sampler's
 * clock is a timer, too, and so are many that nobody asked for: the function tells.
 */
static __noinline int pk_timer_slow(struct pk_cpu *c, __u64 timer, __u64 function)
{
	__u64 entered;
	long offset;
	__u32 kind;

	if (!c || !function)
		return 0;
	for (kind = 0; kind < PK_TIMERS; kind++)
		if (config.timer_function[kind] == function)
			break;
	if (kind == PK_TIMERS)
		return 0;
	entered = pk_enter(c);
	if (!pk_same_run(c)) {
		pk_net_close(c);
	} else if (c->armed != PK_PHASE_TIMER || c->timer == kind) {
		offset = pk_timer_offset(kind);
		if (c->charge.vec == PK_VEC_NONE)
			c->charge.vec = kind == PK_TIMER_PACING || kind == PK_TIMER_COMPRESSED_ACK ?
						PK_VEC_HRTIMER :
						PK_VEC_TIMER;
		if (offset >= 0)
			pk_net_settle(c, pk_sock_object(timer - offset));
		else
			pk_net_close(c);
	}
	pk_leave(c, entered);
	return 0;
}

/* What a timer's end can settle: its own work, and what was armed before the vector was known. */
static __always_inline bool pk_waits_for_timer(struct pk_cpu *c)
{
	return c->armed == PK_PHASE_TIMER || c->armed == PK_PHASE_ENTRY ||
	       c->armed == PK_PHASE_TRANSMIT;
}

SEC("?tp_btf/timer_expire_exit")
int BPF_PROG(pk_timer_expire_exit, struct timer_list *timer)
{
	struct pk_cpu *c = this_cpu();
	__u64 plain;

	if (likely(!pk_waits_for_timer(c)))
		return 0;
	plain = pk_plain(c, timer);
	return pk_timer_slow(c, plain, pk_timer_function(plain));
}

SEC("?tp_btf/hrtimer_expire_exit")
int BPF_PROG(pk_hrtimer_expire_exit, struct hrtimer *timer)
{
	struct pk_cpu *c = this_cpu();
	__u64 plain;

	if (likely(!pk_waits_for_timer(c)))
		return 0;
	plain = pk_plain(c, timer);
	return pk_timer_slow(c, plain, pk_hrtimer_function(plain));
}
