// SPDX-License-Identifier: Apache-2.0
// The optional programs of the kernel side: what each is needed for, and what a kernel must have.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "pkprof/user_abi.h"
#include "probe/facts.h"

namespace pkprof {

// Something the attribution needs to know, and what the user loses where it cannot be had.
struct Need {
  const char* name;
  const char* costs;
};

// See enum pk_hook_group.
enum class HookGroup : uint8_t {
  work = PK_HOOKS_WORK,
  lasting = PK_HOOKS_LASTING,
  disks = PK_HOOKS_DISKS,
  interrupts = PK_HOOKS_INTERRUPTS,
  measure = PK_HOOKS_MEASURE,
  calls = PK_HOOKS_CALLS,
  clients = PK_HOOKS_CLIENTS,
  waits = PK_HOOKS_WAITS,
  usage = PK_HOOKS_USAGE,
};
inline constexpr size_t hook_groups = PK_HOOK_GROUPS;

// Of each run of a hook, whatever it does, ns.
struct HookOverhead {
  uint64_t dispatch_ns = 0;  // to come to it and back
  uint64_t timing_ns = 0;    // of what the kernel measures as its run, that measuring takes
};

struct Hook {
  const char* program;  // in the BPF object; one without arguments may be attached in many places
  Need need;            // that it meets; others may, too
  const char* where;    // tracepoint or function, for people
  uint8_t min_args;     // the tracepoint has at least so many arguments
  bool function;        // fentry/fexit on a kernel function; else a tracepoint
  uint8_t way;          // of meeting the need: hooks of one way go together
  HookGroup group;
  pk_rest rest = pk_rest{};  // with which it rests while nothing needs it
  uint32_t usage = 0;        // enum pk_usage_wanted: the resource that it is of
};

// In the order of the hooks.
[[nodiscard]] std::span<const Need> all_needs();
// A need's ways in order of preference: the first of which a kernel has a hook is taken.
[[nodiscard]] std::span<const Hook> all_hooks();
[[nodiscard]] bool hook_exists(const Hook& hook, const KernelFacts& facts);
// Whether sampling itself needs it, with no other hook, too.
[[nodiscard]] bool is_for_clocks(const Hook& hook);

}  // namespace pkprof
