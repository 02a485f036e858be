// SPDX-License-Identifier: Apache-2.0
// The kernel side: programs, clocks and tables in the kernel, and what we do with them. It is
// brought up in three steps, each of which needs what the one before returned: load, attach, and
// enable(), after which it counts.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "kernel/call_counting.h"
#include "kernel/kernel_hooks.h"
#include "kernel/kernel_tables.h"
#include "kernel/object/kernel_options.h"
#include "kernel/object/unwind_maps.h"
#include "kernel/object/waits.h"
#include "kernel/sampling_clocks.h"
#include "kernel/socket_owners.h"
#include "probe/facts.h"
#include "probe/functions.h"
#include "probe/hooks.h"

namespace pkprof {

class KernelSide;

// What this kernel takes of it is loaded, and how long hooks take is measured.
class LoadedKernel {
 public:
  static Result<LoadedKernel> load(const KernelFacts& facts, const KernelSideOptions& options);
  [[nodiscard]] const HookOverhead& overhead() const { return overhead_; }
  // Attaches the hooks, opens the clocks, and asks who holds which socket. `functions` are where
  // this kernel has them; nullptr: there are no symbols.
  Result<KernelSide> attach(const KnownFunctions* functions) &&;

 private:
  friend class KernelSide;
  struct Parts;
  struct PartsFree {
    void operator()(Parts* parts) const;
  };
  LoadedKernel(std::unique_ptr<Parts, PartsFree> parts, HookOverhead overhead);
  void tell_functions(const KnownFunctions* functions);

  std::unique_ptr<Parts, PartsFree> parts_;
  HookOverhead overhead_;
};

class KernelSide {
 public:
  // A recording that goes on with no process of ours: all of it has names below `dir`, in a file
  // system for BPF objects. To be called before enable(); after enable() this object can go.
  Result<> pin(const std::string& dir);
  // The same again, in another process of the same build. What attaches, enables or turns on and
  // off is not to be called; `sampled` are the CPUs that have a clock.
  static Result<KernelSide> open_pinned(const std::string& dir, const KernelFacts& facts,
                                        const KernelSideOptions& options,
                                        std::vector<uint32_t> sampled);
  // A number for the kernel side of this build.
  [[nodiscard]] static uint64_t code();

  // Counting begins, or goes on.
  Result<> enable();
  // Nothing counts after this moment, by the recording's clock, up to enable().
  uint64_t disable(WhileOff clock);
  // While nothing is counted: all hooks but the lasting ones go, and come back. Of work in flight
  // nothing is known then, and who holds which socket is asked anew. Returns how many could not be
  // attached again.
  Result<size_t> attach_hooks_again();

  [[nodiscard]] KernelHooks& hooks();
  [[nodiscard]] const KernelHooks& hooks() const;
  [[nodiscard]] SamplingClocks& clocks();
  [[nodiscard]] const SamplingClocks& clocks() const;
  [[nodiscard]] KernelTables& tables();
  [[nodiscard]] const KernelTables& tables() const;
  [[nodiscard]] CallCounting& calls();
  [[nodiscard]] const CallCounting& calls() const;
  [[nodiscard]] SocketOwners& owners();
  [[nodiscard]] const SocketOwners& owners() const;
  [[nodiscard]] const UnwindMaps& unwind() const;
  [[nodiscard]] Waits& waits();
  // Who is at a packet's other end; nothing where that was too long ago.
  [[nodiscard]] std::optional<pk_peer> peer(uint64_t number) const;
  // What a lock of the kernel is called, or the cache's name, with '&', of whose objects it is a
  // part; "" when neither is known.
  [[nodiscard]] std::string lock_name(uint64_t address);
  // For which servers work, by place; none where they are not asked for.
  [[nodiscard]] std::span<const pk_client> clients() const;

  // For the cost meter: all programs, also those that count calls.
  [[nodiscard]] std::array<std::vector<int>, hook_groups> programs() const;
  [[nodiscard]] int mapped() const;  // the ring that Mappings reads
  [[nodiscard]] pk_stats stats() const;
  [[nodiscard]] std::vector<uint64_t> taken_in_vain() const;  // see kernel_stats.h
  [[nodiscard]] std::vector<double> clock_ns() const;

 private:
  friend class LoadedKernel;
  using Parts = LoadedKernel::Parts;
  explicit KernelSide(std::unique_ptr<Parts, LoadedKernel::PartsFree> parts);

  std::unique_ptr<Parts, LoadedKernel::PartsFree> parts_;
};

}  // namespace pkprof
