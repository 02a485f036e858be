// SPDX-License-Identifier: Apache-2.0
// Stacks as most viewers want them: under the name of a party a list of functions, root first, and
// the time that was spent there. Idle time is in none.
//
// Viewers know functions and nothing else. Between two contexts stands what the work was: a frame
// «syscall:read», «softirq:NET_RX»; the last of these also says why the party was charged, where it
// was not for running itself: «softirq:NET_RX» (consumed). Viewers show no time that is in no
// function: where there is no stack, one stands for it, "[no stack]".
//
// A wait ends with who ended it: on the waiter's stack stands «woken by postgres:812», and on that
// the waker's stack. All that is below the frame «woken by …» is still the waiter's time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "export/format.h"
#include "report/functions.h"

namespace pkprof {

struct ExportedFrame {
  std::string name;   // cleaned; "[unknown in libc.so.6]" where there is none
  std::string where;  // cleaned: "kernel", "libc.so.6", "" between contexts
  FrameKind kind = FrameKind::user;
  bool of_waker = false;  // of who ended a wait
};

struct ExportedStack {
  std::vector<uint32_t> frames;  // of ExportedStacks::frames, root first; at least one
  uint64_t ns = 0;
};

struct ExportedParty {
  std::string name;  // "nginx:1234", "KERNEL", "UNCLAIMED:dropped"; cleaned
  uint64_t ns = 0;
  std::vector<ExportedStack> stacks;  // each once
};

struct ExportedStacks {
  std::vector<ExportedFrame> frames;
  std::vector<ExportedParty> parties;  // largest first
  uint64_t ns = 0;                     // of all
};

// By who was served, or with options.ran_on by who was on the CPU. With options.pids only what was
// served to these.
[[nodiscard]] ExportedStacks export_stacks(const Profile& profile, const ExportOptions& options);

// To options.output, or else handed back to be printed.
[[nodiscard]] Result<std::string> deliver(std::string text, const ExportOptions& options);

}  // namespace pkprof
