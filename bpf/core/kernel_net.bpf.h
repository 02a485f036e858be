/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Of the kernel's types: sockets and packets. */
#ifndef PKPROF_KERNEL_NET_BPF_H
#define PKPROF_KERNEL_NET_BPF_H

#include "core/kernel_task.bpf.h"

#define AF_UNSPEC 0
#define AF_UNIX 1
#define AF_INET 2
#define AF_INET6 10
#define AF_PACKET 17
#define SOCK_STREAM 1
#define SOCK_DGRAM 2
#define SOCK_BINDPORT_LOCK 8 /* sk_userlocks: bind() has chosen the port */
#define ETH_P_IP 0x0800
#define ETH_P_ARP 0x0806
#define ETH_P_IPV6 0x86dd
#define IPPROTO_ICMP 1
#define IPPROTO_TCP 6
#define IPPROTO_UDP 17
#define IPPROTO_FRAGMENT 44
#define IPPROTO_ICMPV6 58
#define TCP_TIME_WAIT 6
#define TCP_LISTEN 10
#define TCP_NEW_SYN_RECV 12
#define PACKET_HOST 0
#define PACKET_BROADCAST 1
#define PACKET_MULTICAST 2

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct net;

typedef struct {
	struct net *net;
} possible_net_t;

struct in6_addr {
	union {
		__be32 u6_addr32[4];
	} in6_u;
};

struct sock_common {
	union {
		struct {
			__be32 skc_daddr;
			__be32 skc_rcv_saddr;
		};
	};
	union {
		__u32 skc_portpair;
		struct {
			__be16 skc_dport;
			__u16 skc_num;
		};
	};
	unsigned int skc_hash; /* of a connection's two ends and its network namespace */
	unsigned short skc_family;
	volatile unsigned char skc_state;
	unsigned char skc_reuse : 4;
	unsigned char skc_reuseport : 1;
	unsigned char skc_net_refcnt : 1;
	int skc_bound_dev_if;
	possible_net_t skc_net;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
};

struct socket;

typedef struct {
	int owned; /* a process has it in its hands */
} socket_lock_t;

struct sk_buff_head {
	struct sk_buff *next;
	struct sk_buff *prev;
	__u32 qlen;
};

struct sock {
	struct sock_common __sk_common;
	socket_lock_t sk_lock;
	struct socket *sk_socket;
	__u16 sk_type;
	__u16 sk_protocol;
	__u8 sk_userlocks : 4;
	struct sk_buff_head sk_receive_queue;
	__u32 sk_ack_backlog; /* connections that nobody has accepted yet */
};

struct udp_sock {
	struct sk_buff_head reader_queue;
};

struct inet_bind_bucket {
	signed char fastreuse;
};

struct request_sock {
	struct sock *sk;
};

struct request_sock_queue {
	struct request_sock *rskq_accept_tail;
};

struct inet_connection_sock {
	struct inet_bind_bucket *icsk_bind_hash;
	struct request_sock_queue icsk_accept_queue;
};

struct unix_address;

struct unix_sock {
	struct sock sk;
	struct unix_address *addr;
	struct sock *peer;
};

struct inet_sock {
	struct sock sk;
	__be16 inet_sport;
};

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	struct list_head tsq_node;
};

struct socket {
	struct sock *sk;
};

struct socket_alloc {
	struct socket socket;
	struct inode vfs_inode;
};

struct net_device {
	int ifindex;
	possible_net_t nd_net;
};

struct sk_buff {
	unsigned int truesize;
	struct net_device *dev;
	struct sock *sk;
	unsigned int len;
	__u8 __pkt_type_offset[0];
	__be16 protocol;
	__u16 transport_header;
	__u16 network_header;
	__u16 mac_header;
	unsigned char *head;
	unsigned char *data;
	char cb[48];
};

/* At sk_buff.cb while TCP has the packet. */
struct tcp_skb_cb {
	__u16 tcp_gso_segs; /* how many segments it is cut into */
};

#pragma clang attribute pop

#endif
