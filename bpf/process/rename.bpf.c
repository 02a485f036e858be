// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Processes and threads that name themselves. A label is told when it is met, so that one that was
 * met before would keep the name of then, or not, as the next CPU meets it.
 */
#include "core/hook.bpf.h"
#include "process/served.bpf.h"

#include <bpf/bpf_tracing.h>

/* The name is about to change. An exec's new name is told by what the process is met as then. */
SEC("?tp_btf/task_rename")
int BPF_PROG(pk_task_rename, struct task_struct *task, const char *name)
{
	struct pk_cpu *c = pk_hook(PK_HOOKS_LASTING);
	struct pk_label *info = &c->scratch.who[pk_level(c)];
	__u64 label;

	if ((task->pid != task->tgid && !config.threads) || task->flags & PF_KTHREAD ||
	    BPF_CORE_READ_BITFIELD_PROBED(task, in_execve))
		return 0;
	label = pk_label_of(task);
	pk_fill_label(task, label, info, false);
	if (task->pid == task->tgid)
		bpf_probe_read_kernel_str(info->comm, PK_COMM_LEN, name);
	bpf_probe_read_kernel_str(info->thread_comm, PK_COMM_LEN, name);
	if (bpf_map_update_elem(&labels, &label, info, BPF_ANY))
		c->stats.labels_full++;
	return 0;
}
