// SPDX-License-Identifier: Apache-2.0
// Programs on the kernel's functions: one for each (fentry, fexit), or one for many (kprobe.multi).
#pragma once

#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/fd.h"
#include "calls/call_targets.h"

namespace pkprof {

struct FunctionLinks {
  std::vector<Fd> links;        // attached as long as these are kept
  std::vector<size_t> refused;  // of the addresses: functions that cannot be attached to
};

// Entries of the functions at these addresses, or with `exits` the returns from them. One that
// cannot be attached to makes the kernel refuse all, and which one it does not say: it is searched
// for, up to `tries` tries in all, which are taken off.
[[nodiscard]] FunctionLinks attach_to_functions(int program, std::span<const uint64_t> addresses,
                                                bool exits, int& tries);

// A program of its own for one function.
struct FunctionProgram {
  Fd program;
  Fd link;
};

// On the function's entry, or with `exit` on its return. The instructions are those of `fitted`, a
// program that libbpf has fitted to this kernel for another function. Nothing where the function is
// not in the kernel's own types, or cannot be attached to.
[[nodiscard]] std::optional<FunctionProgram> attach_to_function(const btf* types,
                                                                const CallTarget& target,
                                                                const bpf_program* fitted,
                                                                bool exit);

}  // namespace pkprof
