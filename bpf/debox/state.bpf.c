// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* See state.bpf.h. */
#include "debox/state.bpf.h"

struct db_areas db_areas SEC(".maps");
struct db_kinds db_kinds SEC(".maps");
struct db_cpus db_cpus SEC(".maps");
struct db_places db_places SEC(".maps");
struct db_sleeps db_sleeps SEC(".maps");
struct db_wakers db_wakers SEC(".maps");
struct db_slow db_slow SEC(".maps");
struct db_traces db_traces SEC(".maps");
struct db_opens db_opens SEC(".maps");
struct db_functions db_functions SEC(".maps");

const volatile struct db_config db_config;
__u32 db_tids[DB_SETS * DB_WAYS];
struct db_thread db_threads[DB_SETS * DB_WAYS];
__u32 db_stacks[DB_STACKS];
__u32 db_stacks_unknown;
struct db_done db_done[DB_CPUS];
__u32 db_place_count;
__u32 db_places_there;
volatile __u64 db_left_out[2 * DB_CALLS / 64];
volatile __u64 db_slow_ns;

char LICENSE[] SEC("license") = "Dual BSD/GPL";
