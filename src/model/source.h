// SPDX-License-Identifier: Apache-2.0
// Sources: what brought the kernel here. A source is a word, or a word and a name: "user",
// "fault", "syscall:read", "softirq:NET_RX". The word says whether the work was asynchronous,
// that is, done in no particular process's own context.
#pragma once

#include <string_view>

namespace pkprof {

// The part before the colon: "softirq" of "softirq:NET_RX", "user" of "user".
[[nodiscard]] constexpr std::string_view source_class(std::string_view source) {
  return source.substr(0, source.find(':'));
}

// Interrupts, soft interrupts, timers, IPIs, work items and kernel threads.
[[nodiscard]] constexpr bool is_asynchronous(std::string_view source) {
  const std::string_view word = source_class(source);
  return word == "softirq" || word == "irq" || word == "work" || word == "timer" || word == "ipi" ||
         word == "kthread";
}

// Time that the host of a virtual machine gave to others.
inline constexpr std::string_view stolen_by_host = "steal";

// No source of time: calls that were counted, with the function called and its caller as the stack.
inline constexpr std::string_view counted_calls = "calls";

}  // namespace pkprof
