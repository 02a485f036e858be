// SPDX-License-Identifier: Apache-2.0
// The optional programs of the kernel side: what each is needed for, and what a kernel must have.
#pragma once

#include <span>

#include "collect/facts.h"

namespace pkprof {

// Something the attribution needs to know, and what the user loses where it cannot be had.
struct Need {
  const char* name;
  const char* costs;
};

struct Hook {
  const char* program;  // in the BPF object
  const char* need;     // Need::name that it meets
  const char* where;    // tracepoint or function, for people
  int min_args;         // the tracepoint has at least so many arguments
  bool function;        // fentry/fexit on a kernel function; else a tracepoint
  bool together;        // the need has other hooks besides; else the first that works is enough
  bool always;          // stays attached when the budget turns the others off: rare, and remembers
};

[[nodiscard]] std::span<const Need> all_needs();
[[nodiscard]] std::span<const Hook> all_hooks();  // in order of preference within a need
[[nodiscard]] bool hook_exists(const Hook& hook, const KernelFacts& facts);

}  // namespace pkprof
