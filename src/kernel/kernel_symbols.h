// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "symbol/symbolizer.h"

namespace pkprof {

// The kernel's symbols from /proc/kallsyms or, where that hides the addresses, from the kernel's
// ksym iterator.
[[nodiscard]] Result<KernelSymbols> load_kernel_symbols(
    KernelSymbols::Kind kind = KernelSymbols::Kind::text);

// Names of the kernel's data. They are read when the first is asked for.
class KernelData {
 public:
  // "cgroup_mutex", "init_net+0x40"; "" where there is none.
  [[nodiscard]] std::string name_of(uint64_t address);

 private:
  std::optional<KernelSymbols> symbols_;
};

// Those of BPF programs alone: what a recording adds to the kernel's symbols is its own programs.
[[nodiscard]] Result<KernelSymbols> load_bpf_symbols();

}  // namespace pkprof
