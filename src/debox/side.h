// SPDX-License-Identifier: Apache-2.0
// DeBox's kernel side as an object: load what this kernel lets us, name the threads that are of
// interest, reach what is known of their calls.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "cost/running_share.h"
#include "debox/taken_call.h"
#include "debox/trace.h"
#include "kernel/kernel_side.h"
#include "model/system_calls.h"
#include "pkprof/debox_user_abi.h"
#include "probe/facts.h"
#include "symbol/symbolizer.h"

namespace pkprof {

struct DeboxSideOptions {
  // Of the kernel; without them places have no names, and what is waited for is not known
  // everywhere.
  const KernelSymbols* symbols = nullptr;
  std::optional<DeboxTraced> traced;  // takes symbols, if it is by samples
  bool stacks = false;                // a record that is handed over comes with the program's stack
};

class DeboxSide {
 public:
  static Result<DeboxSide> load(const KernelFacts& facts, const DeboxSideOptions& options);
  DeboxSide(DeboxSide&&) noexcept;
  DeboxSide& operator=(DeboxSide&&) noexcept;
  ~DeboxSide();

  // The hooks on sleeping and on threads' lives; and those on every system call on the machine,
  // unless they are attached already.
  Result<> attach();
  Result<> attach_calls();
  void detach_calls();
  // The hooks on functions that calls are traced by, if they are. Returns the names of those that
  // cannot be attached to.
  std::vector<std::string> attach_trace(const KernelFacts& facts);
  void detach_trace();

  // This thread's calls are of interest from now on; or no more, if its records are in this area
  // still: another thread may have the number by now.
  Result<> watch(const db_watched& who);
  void unwatch(uint32_t tid, uint32_t area);

  [[nodiscard]] bool watches(uint32_t tid) const;
  // Page faults of a thread, and with `children` of what it begins, are noted as long as this is
  // kept; and samples of its calls, where traces are of these.
  struct Events {
    Fd minor_faults;
    Fd major_faults;
    Fd samples;
  };
  [[nodiscard]] Events watch_events(uint32_t tid, bool children, bool faults, bool trace) const;
  [[nodiscard]] bool traces() const;

  // Memory for records that a program reads, for db_watched::area; what is handed over cannot be
  // written to. Of as many programs as there is room for.
  struct Records {
    uint32_t area = 0;
    uint32_t id = 0;  // of the memory
    Fd memory;
  };
  Result<Records> make_records(uint32_t elements);
  void free_records(uint32_t area);
  // Whether somebody has this memory, or may have it.
  [[nodiscard]] static bool is_held(uint32_t id);

  // All calls that ended so far, by kind: number, + DB_CALLS for the 32-bit table.
  [[nodiscard]] std::map<uint32_t, db_calls> calls() const;
  [[nodiscard]] std::vector<std::pair<db_slept_key, db_slept>> sleeps() const;
  [[nodiscard]] std::vector<std::pair<db_waker_key, db_woken>> wakers() const;
  // Calls of these kinds alone are of interest.
  void want_kinds(const std::vector<uint32_t>& kinds);
  // Whole records of calls that took at least so long; UINT64_MAX: of none.
  void want_records(uint64_t at_least_ns);
  // So many at a time: they may come as fast as they are taken. Returns whether there may be more.
  static constexpr size_t most_records = 1024;
  Result<bool> take_records(const std::function<void(TakenCall&&)>& each);

  [[nodiscard]] int records_fd() const;  // readable when there are some

  // For a recording that is to tell the threads what is done for them elsewhere.
  [[nodiscard]] DeboxMemory memory() const;

  // What the programs take, to be turned by whoever waits.
  [[nodiscard]] RunningShare cost() const;

  // Addresses of places, by number.
  [[nodiscard]] std::map<uint32_t, uint64_t> places() const;
  [[nodiscard]] uint32_t places_there() const;  // how many they are
  [[nodiscard]] db_stats stats() const;         // summed over the CPUs

 private:
  struct Impl;
  explicit DeboxSide(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace pkprof
