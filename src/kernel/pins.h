// SPDX-License-Identifier: Apache-2.0
// Where a recording lives that goes on with no process of ours: a directory in the file system for
// BPF objects, for root alone. One on a machine: every CPU is sampled anyway, and two would charge
// each other's work.
//
// Whoever works on it holds a lock on the directory, so that commands wait for each other, and one
// that was killed holds nothing up.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "pkprof/user_abi.h"
#include "probe/capability.h"
#include "probe/hooks.h"

namespace pkprof {

// What the tables do not say of themselves.
struct About {
  std::string version;      // of the pkprof that started it
  uint64_t code = 0;        // of its kernel side: only the same build can read the tables
  uint64_t started_at = 0;  // of the start or the last reset, Unix time in ns
  uint64_t frequency_hz = 0;
  bool threads = false;
  bool hooks = true;
  std::vector<uint32_t> sampled;  // CPUs
  Capabilities capabilities;
  HookOverhead overhead;
  // Counters as they were at the last reset.
  pk_stats stats{};
  std::array<uint64_t, hook_groups> hook_runs{};
};

class Pins {
 public:
  static constexpr const char* directory = "/sys/fs/bpf/pkprof";

  // An empty place for a new one, in which what a start that was killed has left is gone. Fails
  // where there is a recording, or no file system for it.
  static Result<Pins> create();
  static bool exist();
  // The recording that there is, or the remains of one.
  static Result<Pins> open();

  // What is written last makes the place a recording.
  Result<> write(const About& about);
  // Nothing where there is no note, or one of another version.
  Result<std::optional<About>> read() const;
  // Ends it: what has no name any more the kernel gives up.
  Result<> remove_links();
  Result<> remove();

 private:
  explicit Pins(Fd lock) : lock_(std::move(lock)) {}

  Fd lock_;  // the directory
};

}  // namespace pkprof
