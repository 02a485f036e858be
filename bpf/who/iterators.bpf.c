// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What is asked for instead of noted: who holds which socket, and the kernel's symbols.
 *
 * These run when user space reads the iterator, at the start and where an account has no owner,
 * and so cost nothing at each receive.
 */
#include "process/served.bpf.h"
#include "who/object.bpf.h"

#include <bpf/bpf_tracing.h>

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
} __attribute__((preserve_access_index));

struct bpf_iter__task_file {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
	__u32 fd;
	struct file *file;
} __attribute__((preserve_access_index));

struct kallsym_iter {
	unsigned long value;
	char type;
	char name[1];
	char module_name[1];
} __attribute__((preserve_access_index));

struct bpf_iter__ksym {
	struct bpf_iter_meta *meta;
	struct kallsym_iter *ksym;
} __attribute__((preserve_access_index));

/* A byte is written for each entry that is new, so that user space can tell whether all have room. */
static __always_inline void pk_enter_owner(struct seq_file *seq, __u64 object, __u64 label)
{
	char one = 1;

	if (!bpf_map_update_elem(&owners, &object, &label, BPF_NOEXIST))
		bpf_seq_write(seq, &one, sizeof(one));
}

/*
 * Enters every open socket with its holder into the table of owners. The first holder found
 * stays: a process that was seen to take from the socket is a better owner than any other.
 */
SEC("?iter/task_file")
int pk_iter_sockets(struct bpf_iter__task_file *ctx)
{
	struct task_struct *task = ctx->task;
	struct file *file = ctx->file;
	struct socket *sock;
	__u64 object, label, sk;

	if (!task || !file)
		return 0;
	if (task->flags & PF_KTHREAD)
		return 0;
	sock = bpf_sock_from_file(file);
	if (!sock)
		return 0;
	sk = (__u64)BPF_CORE_READ(sock, sk);
	if (!sk)
		return 0;
	label = pk_process_of(task);
	object = pk_sock_object(sk);
	pk_enter_owner(ctx->meta->seq, object, label);
	if (BPF_CORE_READ((struct sock *)sk, sk_protocol) == IPPROTO_UDP) {
		object = pk_udp_port_object((__u64)BPF_CORE_READ((struct sock *)sk,
								__sk_common.skc_net.net),
					    BPF_CORE_READ((struct sock *)sk, __sk_common.skc_num));
		pk_enter_owner(ctx->meta->seq, object, label);
	}
	return 0;
}

/* Kernel symbols with their addresses, also where /proc/kallsyms shows zeros (kptr_restrict). */
SEC("?iter/ksym")
int pk_iter_ksyms(struct bpf_iter__ksym *ctx)
{
	struct kallsym_iter *it = ctx->ksym;
	struct pk_ksym out = {};
	__u8 type;

	if (!it)
		return 0;
	type = BPF_CORE_READ(it, type);
	if ((type | 0x20) != 't' && (type | 0x20) != 'w')
		return 0;
	out.address = BPF_CORE_READ(it, value);
	out.type = type;
	bpf_probe_read_kernel_str(out.name, sizeof(out.name), &it->name);
	bpf_probe_read_kernel_str(out.module, sizeof(out.module), &it->module_name);
	bpf_seq_write(ctx->meta->seq, &out, sizeof(out));
	return 0;
}
