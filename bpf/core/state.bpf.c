// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The shared state; what each part is for stands in state.bpf.h. */
#include "core/state.bpf.h"

struct debox_memory_map debox_memory SEC(".maps");
struct debox_areas_map debox_areas SEC(".maps");
struct counts_map counts SEC(".maps");
struct stacks_map stacks SEC(".maps");
struct labels_map labels SEC(".maps");
struct owners_map owners SEC(".maps");
struct scratch_map scratch SEC(".maps");
struct votes_map votes SEC(".maps");
struct calls_map calls SEC(".maps");
struct waiting_calls_map waiting_calls SEC(".maps");

const volatile struct pk_config config = {};

volatile struct pk_addresses addresses = {};
struct pk_cpu cpus[PK_MAX_CPUS] = {};
struct pk_slot slots[PK_SLOTS] = {};
__u32 slot_tags[PK_SLOTS] = {};
struct pk_note notes[PK_NOTE_TABLES * PK_NOTES] = {};
__u64 unwinds[PK_UNWINDS] = {};
struct pk_packet_frame packet_frames[PK_FUNCTIONS] = {};
volatile __u64 started = 0;
volatile __u64 stopped = 0;
volatile __u64 period = 0;
volatile __u32 window = 0;
volatile __u32 interrupt_entry_ns = 0;
volatile __u32 resting = 0;
volatile __u32 rows = 0;
volatile __u32 stored_stacks = 0;
volatile __u32 rows_with_stacks = 0;
volatile __u64 self = 0;
volatile __u64 counting = 0;
volatile __u32 epoch = 0;

char LICENSE[] SEC("license") = "Dual BSD/GPL";
