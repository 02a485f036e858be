// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * CPUs that go offline and come back, one by one or all but one when the machine is suspended. As a
 * CPU goes, the kernel takes perf's events off it, and does not put them back: its sampling clock is
 * gone until user space opens it anew (src/kernel/sampling_clocks.cc), and for good where nobody of
 * ours is there to do so. In between nothing of what it does counts; see pk_is_away().
 */
#include "core/hook.bpf.h"
#include "timed/exact.bpf.h"

/*
 * On the CPU itself, before perf's step is taken. It comes after the scheduler's on the way down, and
 * before that on the way up: no process runs in between. Whatever fails is taken back step by step,
 * and the target says which way it goes.
 */
SEC("?raw_tp/cpuhp_enter")
int pk_cpu_moves(struct bpf_raw_tracepoint_args *ctx)
{
	__u32 cpu = ctx->args[0], target = ctx->args[1], step = ctx->args[2];
	struct pk_cpu *c = &cpus[cpu & (PK_MAX_CPUS - 1)];

	pk_hook(PK_HOOKS_LASTING);
	if (step != bpf_core_enum_value(enum cpuhp_state, CPUHP_AP_PERF_ONLINE))
		return 0;
	if (target >= step) {
		c->clock.came = c->clock.gone;
		return 0;
	}
	if (!pk_is_away(c))
		c->clock.gone_since = bpf_ktime_get_ns();
	barrier();
	c->clock.gone++;
	barrier();
	/* Before its time is up: user space reaches no CPU that is offline. */
	return pk_put_exact(c);
}
