// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "process/served.bpf.h"

/* Run once by the process that records, to say which it is. */
SEC("?raw_tp")
int pk_introduce(void *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();

	pk_current_label(this_cpu(), task);
	self = pk_process_of(task);
	return 0;
}
