// SPDX-License-Identifier: Apache-2.0
// What a stack of another profiler's is charged to. Such a profiler says who was on the CPU, not
// for whom the kernel worked. So what a stack shows to be an interrupt's or a softirq's work is
// UNCLAIMED:untracked, and never its bystander's; the rest is for whoever ran.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "model/profile.h"

namespace pkprof {

// Whether code is the kernel's: "[kernel.kallsyms]", "[nf_tables]" (by its address),
// "/usr/lib/debug/boot/vmlinux-6.1.0", "/lib/modules/6.1.0/kernel/fs/xfs/xfs.ko.zst". What a
// virtual machine's kernel did is the work of a process here.
[[nodiscard]] bool is_kernel(std::string_view file, uint64_t address);
// "[kernel.kallsyms]" of "[kernel.kallsyms]_stext"; "/opt/app" of "/opt/app (deleted)".
[[nodiscard]] std::string_view proper_file(std::string_view file);

struct ImportedFrame {
  std::string_view function;
  bool kernel = false;
  FrameId id = 0;  // of the profile
};

// With frames between contexts put in. `idle`: the idle task was on the CPU.
[[nodiscard]] SampleKey charged(Profile& profile, LabelId ran_on, bool idle,
                                std::span<const ImportedFrame> innermost_first);

// Makes a profile's CPUs and length hold the time that was sampled, and be a number together.
// Returns what samples leave of it.
[[nodiscard]] uint64_t fit_time(Meta& meta, uint64_t sampled_ns);

// What the CPUs did between samples of one process is OTHER.
void add_rest_of_time(Profile& profile, uint64_t ns);

}  // namespace pkprof
