// SPDX-License-Identifier: Apache-2.0
// What processes do while we sample: execs, forks, exits and, if wanted, mappings, as the kernel's
// perf events tell it. With these a process is known that was gone before anyone could look into
// /proc.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "symbol/symbolizer.h"

namespace pkprof {

struct ProcessEvent {
  // A mapping that was made, or (code) that was there when the process was sampled.
  enum class Kind : uint8_t { map, code, exec, fork, exit };
  Kind kind = Kind::map;
  uint64_t time = 0;  // CLOCK_MONOTONIC, ns
  uint32_t pid = 0;   // thread group id
  uint32_t parent = 0;
  std::string comm;  // exec
  UserMap map;
};

// From a record of the kernel's that ends with thread and time; false for one of another kind, for
// a thread's, and for a new name that is no exec.
bool parse_process_event(const std::string& record, ProcessEvent& event);
// How many records had no room, if that is what this one says.
[[nodiscard]] uint64_t lost_in(const std::string& record);

class Sideband {
 public:
  // Of each CPU's ring: what a busy CPU fills in a tenth of a second and more, but of many CPUs
  // together no more than a fixed part of our memory, down to a least size.
  static size_t ring_bytes_for(uint32_t cpus);
  // One ring per online CPU, of `ring_bytes` (rounded up to a power of two of pages). To hear of
  // mappings costs every process that is made there some microseconds for each.
  enum class Maps : bool { no, yes };
  static Result<Sideband> open(size_t ring_bytes, Maps maps = Maps::yes);
  Sideband(Sideband&&) noexcept;
  Sideband& operator=(Sideband&&) noexcept;
  ~Sideband();

  // Everything written so far, by time.
  [[nodiscard]] std::vector<ProcessEvent> take();
  // Of a CPU that has come, or come back: as it went offline its ring was given up by the kernel.
  // What that holds is to be taken before.
  Result<> follow(uint32_t cpu);
  [[nodiscard]] uint64_t lost() const;  // events the kernel had no room for
  [[nodiscard]] int poll_fd() const;    // becomes readable when a ring is half full

 private:
  struct Impl;
  explicit Sideband(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace pkprof
