// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "model/profile.h"
#include "pkprof/user_abi.h"
#include "process/targets.h"
#include "record/control.h"

namespace pkprof {

// Counting calls of the kernel's functions besides.
struct CallOptions {
  // Names, or patterns as a shell has them. None: those that a look at the first seconds shows as
  // hot. What is recorded begins with the counting, so that times and calls are of the same time.
  std::vector<std::string> functions;
  double look_seconds = 1;
};

// How a recording goes, since it began.
struct Progress {
  bool paused = false;
  uint64_t duration_ns = 0;
  uint64_t samples = 0;
  uint64_t lost = 0;
  double cost = 0;  // of one CPU's time
};

struct RecordOptions {
  Target target;
  bool inlines = false;  // calls that the compiler inlined are frames, too
  uint64_t frequency_hz = 997;
  double seconds = 0;  // of recording; 0: until the command ends or a signal comes
  // What pkprof may take of any CPU's time, all told. Above it the recording is watched in windows.
  double budget = 0.05;
  bool threads = false;  // label threads as well as processes
  uint32_t clients = 0;  // charge servers' time to their clients, too: enum pk_clients_wanted
  bool waits = false;    // threads' waits are counted, too (--resource wait)
  uint32_t usage = 0;    // other resources: enum pk_usage_wanted (--resource disk, ...)
  // Locks of programs are told by waits.
  [[nodiscard]] bool counts_waits() const { return waits || usage & PK_USAGE_LOCK; }
  bool hooks = true;  // false: sampler alone (for benchmarks of the hooks' cost)
  // Of processes that are not wanted by name, too: what the kernel did for them.
  bool stacks_of_others = false;
  // All of the time by entry and exit, and no stacks of user code (pkprof stat).
  bool measure = false;
  std::optional<CallOptions> calls;
  // Each so many seconds what was since is handed over, as a profile of its own; false ends the
  // recording. The last one is what record() returns.
  double interval = 0;
  std::function<bool(Profile)> each;
  // A descriptor to be looked at while it records: `ready` is called when there is something to
  // read, and when a signal came that is nothing to the recording; false ends it, as does the
  // descriptor's end.
  int beside = -1;
  std::function<bool()> ready;
  // Commands while it goes on; it is paused up to the first one if it begins so. Not where all of
  // the time is measured, calls are counted or profiles are handed over at intervals.
  Control* control = nullptr;
  bool begins_paused = false;
  // Called once a second or so, and when it is paused.
  std::function<void(const Progress&)> progress;
  // The command's process, when it is executed.
  std::function<void(uint32_t)> started;
};

}  // namespace pkprof
