// SPDX-License-Identifier: Apache-2.0
// The BPF side as an object: load what this kernel lets us, attach it, reach its tables.
//
// Programs that a kernel refuses cost one capability each, not the run: the loader learns from
// libbpf's messages which program was refused, leaves it out and tries again. Everything is
// released with the object; the kernel does the same if the process is killed.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "calls/call_facilities.h"
#include "calls/call_targets.h"
#include "kernel/raw_stack.h"
#include "pkprof/user_abi.h"
#include "probe/capability.h"
#include "probe/facts.h"
#include "probe/functions.h"
#include "probe/hooks.h"
#include "symbol/symbolizer.h"

namespace pkprof {

// DeBox's threads, to be told what is done for them elsewhere: its memory, with where in it they
// are, and the tables that programs read.
struct DeboxMemory {
  int memory = -1;
  int areas = -1;
  uint64_t tids = 0;
  uint64_t threads = 0;
  uint64_t done = 0;
};

struct KernelSideOptions {
  uint64_t frequency_hz = 997;
  bool held = false;      // nobody takes what is in the tables for as long as it goes on
  bool threads = false;   // labels are threads', see PK_ANY_THREAD
  bool hooks = true;      // false: the sampler alone, for benchmarks
  bool measure = false;   // all of the time by entry and exit, and no user stacks
  bool mappings = false;  // mapped() is read: programs, and what sampled processes have mapped
  DeboxMemory debox;      // where DeBox is on
  CallFacilities calls;   // by which calls of functions are to be counted, if they are
};

// What the sampling clock's interrupts have taken, with their samples: 0 where interrupts cannot be
// measured.
[[nodiscard]] double clock_ns(const pk_stats& stats);

// What went wrong, by name, for Meta::counters.
[[nodiscard]] std::map<std::string, uint64_t> kernel_counters(const pk_stats& stats);

class KernelSide {
 public:
  // Entries of the tables. One that is filled for a second: each sample may bring a row of its own
  // and two stacks. Entries are made as they are needed, a stack's is a kilobyte; room for one
  // costs 16 bytes.
  struct Room {
    uint32_t counts = 0;
    uint32_t stacks = 0;
  };
  static Room room_for(const KernelSideOptions& options, uint32_t cpus);
  static Result<KernelSide> load(const KernelFacts& facts, const KernelSideOptions& options);
  KernelSide(KernelSide&&) noexcept;
  KernelSide& operator=(KernelSide&&) noexcept;
  ~KernelSide();

  // Where this kernel's functions are; nullptr: there are no symbols. Before attach().
  void tell_functions(const KnownFunctions* functions);
  // Attaches the hooks and opens the sampling events; nothing is counted before enable().
  Result<> attach();
  // While nothing is counted: all hooks but the lasting ones go, and come back. Of work in flight
  // nothing is known then, and who holds which socket is asked anew. Returns how many could not be
  // attached again.
  void detach_hooks();
  Result<size_t> attach_hooks_again();
  // Of the hooks, enum pk_rest: those that may rest here, and those that do.
  [[nodiscard]] uint32_t may_rest(uint32_t which) const;
  [[nodiscard]] uint32_t resting() const;
  // Those that may of these are to rest from now on, and no others: the sampler does without them.
  // Returns how many of the others could not be attached again.
  size_t rest(uint32_t which);
  // Counting begins, or goes on.
  Result<> enable();
  // Opens the clocks of CPUs that have come back, or come for the first time, also in a pause; says
  // which.
  std::vector<uint32_t> sample_returned();
  // What there is to say of CPUs that were away in this time, a part of the recording, for
  // Meta::degraded.
  [[nodiscard]] std::vector<std::string> absences(uint64_t from, uint64_t until) const;
  // Nothing counts after this moment, up to enable(). Meanwhile the recording's clock goes on, or
  // stands still.
  enum class Time { goes_on, stands_still };
  uint64_t disable(Time time);
  // The recording's clock, ns: CLOCK_MONOTONIC while it never stood still. All times here are its.
  [[nodiscard]] uint64_t now() const;
  [[nodiscard]] bool enabled() const;
  // For how long it was enabled up to then, CLOCK_MONOTONIC, ns.
  [[nodiscard]] uint64_t watched_ns(uint64_t now) const;

  // Attaches programs that count the calls of these functions, by what the options allow; takes
  // some ten milliseconds for each function, or for all of many. Nothing is counted before
  // count_calls(true).
  struct CallsAttached {
    size_t functions = 0;
    std::string how;                   // "fentry"
    std::vector<std::string> refused;  // functions that cannot be counted here
  };
  CallsAttached attach_calls(const KernelFacts& facts, std::span<const CallTarget> targets);
  void count_calls(bool on);
  void detach_calls();
  // Calls that were not counted because they came while a program that counts was at work on the
  // same CPU.
  [[nodiscard]] uint64_t missed_calls() const;

  // Finds out who holds which socket. Returns false where the kernel has no such iterator.
  bool ask_owners();
  // Entries that asking found too many for the table: those asked for longest ago are forgotten.
  [[nodiscard]] uint64_t owners_without_room() const;
  // The kernel's symbols through the ksym iterator, where /proc/kallsyms hides addresses.
  static Result<std::vector<pk_ksym>> ask_symbols();

  // The tables filled so far; after this the kernel side fills empty ones.
  struct Tables {
    std::vector<std::pair<pk_key, pk_count>> counts;
    std::vector<RawStack> stacks;  // of look(); take() leaves them where they are: see stack()
    std::vector<std::pair<uint64_t, pk_label>> labels;
    std::vector<std::pair<pk_vote_key, pk_vote>> votes;
    uint64_t taken = 0;       // up to when
    uint64_t watched_ns = 0;  // for how long counting was enabled, up to then
    uint64_t idle_ns = 0;     // up to then, of CPUs whose sampling clock had stopped for idleness
  };
  Result<Tables> take();
  // The stack of this number, leaf first, where it was counted up to the last take() or the one
  // before; empty: it is not known.
  [[nodiscard]] std::vector<uint64_t> stack(uint64_t number) const;
  // What is not in the tables, for the end of a recording.
  struct Rest {
    std::vector<std::pair<uint64_t, pk_charge>> slots;  // on an object's account
    std::vector<pk_charge> waiting;  // in a CPU's own, for a hook that will not come any more
    std::vector<pk_exact> exact;     // exact time
    std::vector<std::pair<pk_vote_key, pk_vote>> votes;
  };
  [[nodiscard]] Rest take_rest();

  // A recording that goes on with no process of ours: all of it has names below `dir`, in a file
  // system for BPF objects. To be called between attach() and enable(); after enable() this object
  // can go.
  Result<> pin(const std::string& dir);
  // The same again, in another process of the same build. What attaches, enables or turns on and
  // off is not to be called; `sampled` are the CPUs that have a clock.
  static Result<KernelSide> open_pinned(const std::string& dir, const KernelFacts& facts,
                                        const KernelSideOptions& options,
                                        std::vector<uint32_t> sampled);
  // All since the start or the last reset, as it is now; it stays. The tables are read in turn:
  // the ones not in use, then these are used, and what was in use is read.
  Result<Tables> look();
  [[nodiscard]] Rest look_at_rest();
  // Counting begins anew. What is known of work in flight stays, but for the time it had taken.
  Result<> reset();
  // Samples count no more.
  void stop();
  // When it began or was reset, and when it was stopped (0: it was not).
  [[nodiscard]] uint64_t started() const;
  [[nodiscard]] uint64_t stopped() const;
  [[nodiscard]] const std::vector<uint32_t>& sampled() const;
  [[nodiscard]] uint32_t rows() const;  // of the table of counts in use
  [[nodiscard]] Room room() const;
  // A number for the kernel side of this build.
  [[nodiscard]] static uint64_t code();

  [[nodiscard]] int mapped() const;                        // the ring that Mappings reads
  [[nodiscard]] uint64_t owner_of(uint64_t object) const;  // a label, 0 when not known
  [[nodiscard]] pk_stats stats() const;                    // summed over the CPUs
  // How often a socket was asked for data and had none, by CPU.
  [[nodiscard]] std::vector<uint64_t> taken_in_vain() const;
  // See clock_ns(), by CPU.
  [[nodiscard]] std::vector<double> clock_ns() const;
  [[nodiscard]] const Capabilities& capabilities() const;
  // That were sampled; but for those that were away all the time from then on.
  [[nodiscard]] uint32_t cpus(uint64_t from) const;
  // For the cost meter: the programs, and how often hooks have run, by CPU.
  [[nodiscard]] std::vector<int> hook_programs(HookGroup group) const;
  [[nodiscard]] std::vector<uint64_t> hook_runs(HookGroup group) const;
  // Measured on this machine in a few milliseconds: a program that does nothing, on a tracepoint
  // that nobody meets but who renames a task, as we do.
  // The same of interrupts, whose time begins and ends by it from here on.
  [[nodiscard]] HookOverhead measure_overhead();

 private:
  void measure_now();  // what is measured and not in the tables yet goes there, on every CPU

  struct Impl;
  explicit KernelSide(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace pkprof
