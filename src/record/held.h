// SPDX-License-Identifier: Apache-2.0
// Recordings with no process of ours in between: `pkprof start`, `stop`, `reset`, `dump`, `status`,
// as kgmon's for the kernels that had it.
//
// All processes are recorded. Programs, their links and their tables are pinned (pins.h); each
// command finds them, does its part and goes. What differs from a recording that someone watches:
// the tables hold all since the start, so they are larger, and a row that finds no place loses its
// stacks; hooks are on all of the time, as nobody is there to turn them off; and code is named when
// it is asked for, so user code of processes that have ended has no names.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/profile.h"

namespace pkprof {

struct HeldOptions {
  uint64_t frequency_hz = 997;
  bool threads = false;
  bool hooks = true;
  // What was counted up to the last stop counts on; otherwise it is forgotten.
  bool resume = false;
};

[[nodiscard]] Result<> start_held(const HeldOptions& options);

// All since the start or the last reset, which goes on. After a stop, what was counted until then.
[[nodiscard]] Result<Profile> dump_held();

// Counting begins anew, at once. After a stop, what was counted is forgotten.
[[nodiscard]] Result<> reset_held();

// Ends it, so that nothing is left in the kernel, and writes what was counted to `path`, or, where
// that is "", to a place where dump_held() finds it until the next start, reset or boot. If that
// fails nothing is lost: samples count no more, and this can be tried again. False where there is
// nothing to write: of another version's recording, or what a killed start left.
[[nodiscard]] Result<bool> stop_held(const std::string& path);

// Whether there is one, or what is left of one; not of one that was stopped.
[[nodiscard]] bool is_held();

struct HeldStatus {
  bool stopped = false;     // it counts no more
  bool resumed = false;     // there is more, of before: the figures here are without it
  uint64_t started_at = 0;  // or reset; Unix time, ns
  uint64_t duration_ns = 0;
  uint64_t frequency_hz = 0;
  bool threads = false;
  uint32_t cpus = 0;
  uint64_t samples = 0;
  uint32_t rows = 0;  // of the table in use
  uint32_t most_rows = 0;
  double cost = 0;  // of all CPU time
  std::vector<std::string> degraded;
  std::map<std::string, uint64_t> counters;
};
[[nodiscard]] Result<HeldStatus> held_status();

}  // namespace pkprof
