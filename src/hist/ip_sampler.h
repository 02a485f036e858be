// SPDX-License-Identifier: Apache-2.0
// Where one process's instruction pointer is: perf events of the process alone, on each CPU, whose
// clocks tick only while it is on that CPU. No BPF, and no privilege where
// kernel.perf_event_paranoid allows it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "process/perf_ring.h"
#include "process/sideband.h"

namespace pkprof {

struct IpSample {
  uint32_t pid = 0;        // thread group id: a child's, too
  bool in_kernel = false;  // the tick came in the kernel, or on its way in or out
  // The kernel was entered by an instruction that asks for it, which lies right before `ip`.
  bool in_system_call = false;
  bool has_ip = false;  // false for a process whose memory is gone already
  uint64_t ip = 0;      // in user code: where it is, or where it will go on
};

// A sample, or else something that the process did.
struct IpEvent {
  uint64_t time = 0;  // CLOCK_MONOTONIC, ns
  bool is_sample = false;
  IpSample sample;
  ProcessEvent process;
};

class IpSampler {
 public:
  struct Options {
    uint64_t frequency_hz = 997;
    bool from_exec = true;  // false: from now on
  };

  // What the clock can do, by the kernel's limits.
  [[nodiscard]] static uint64_t max_frequency_hz();
  static Result<IpSampler> open(pid_t pid, const Options& options);

  // By time. What is younger than this call may come with the next one, unless it is the `last`.
  [[nodiscard]] std::vector<IpEvent> take(bool last = false);
  // False where only user code may be sampled.
  [[nodiscard]] bool sees_kernel() const { return sees_kernel_; }
  [[nodiscard]] uint64_t throttled() const { return throttled_; }  // how often the kernel paused it
  [[nodiscard]] uint64_t lost() const;  // records the kernel had no room for
  // Readable when a ring is half full.
  [[nodiscard]] std::vector<int> poll_fds() const;

 private:
  IpSampler() = default;

  std::vector<PerfRing> rings_;
  std::vector<IpEvent> held_;  // those that were too young
  bool sees_kernel_ = true;
  uint64_t throttled_ = 0;
};

}  // namespace pkprof
