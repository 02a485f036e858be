// SPDX-License-Identifier: Apache-2.0
// What a stack of another profiler's says of contexts: where user code ends, and which part of the
// kernel's is an interrupt's or a softirq's, that is, nobody's whom the stack names.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace pkprof {

struct ContextFrame {
  std::string_view function;
  bool kernel = false;
};

struct Contexts {
  size_t asynchronous = 0;  // so many innermost frames are an interrupt's or a softirq's
  size_t kernel = 0;        // so many innermost frames are the kernel's, these among them
  std::string source;       // of the asynchronous frames: "softirq:NET_RX", "irq:unknown"
  bool for_kernel = false;  // what nobody asked for: grace periods, balancing
  std::string entry;        // of the others: "syscall:read", "fault", "kernel"; "" without any
};

// `innermost_first`.
[[nodiscard]] Contexts contexts_of(std::span<const ContextFrame> innermost_first);

}  // namespace pkprof
