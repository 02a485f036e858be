// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"
#include "symbol/symbolizer.h"

namespace pkprof {

// The kernel's symbols from /proc/kallsyms or, where that hides the addresses, from the kernel's
// ksym iterator.
[[nodiscard]] Result<KernelSymbols> load_kernel_symbols();

// Those of BPF programs alone: what a recording adds to the kernel's symbols is its own programs.
[[nodiscard]] Result<KernelSymbols> load_bpf_symbols();

}  // namespace pkprof
