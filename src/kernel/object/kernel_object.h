// SPDX-License-Identifier: Apache-2.0
// The BPF object: what this kernel takes of its programs is loaded, and its memory is ours to read.
// What it can do is in the files beside: hooks, clocks, tables, calls. No one outside this folder
// includes this.
//
// Programs that a kernel refuses cost one capability each, not the run: the loader learns from
// libbpf's messages which program was refused, leaves it out and tries again. Everything is
// released with the object; the kernel does the same if the process is killed.
#pragma once

#include <bpf/libbpf.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "kernel/object/kernel_options.h"
#include "kernel/object/table_pair.h"
#include "pkprof/cpu.h"
#include "probe/core_types.h"
#include "probe/facts.h"
#include "probe/hooks.h"

// What bpftool wrote uses the types of the headers above.
#include "pkprof.skel.h"

namespace pkprof {

struct SkeletonFree {
  void operator()(pkprof_bpf* s) const { pkprof_bpf__destroy(s); }
};
using Skeleton = std::unique_ptr<pkprof_bpf, SkeletonFree>;

// The kernel side's entries are locked by whoever uses one, in the kernel for well under a
// microsecond. Returns whether it could be used.
template <typename Use>
bool with_lock(uint32_t& word, Use use) {
  constexpr int most_tries = 100'000;
  std::atomic_ref lock(word);
  for (int i = 0; i < most_tries; ++i) {
    uint32_t free = 0;
    if (!lock.compare_exchange_weak(free, 1, std::memory_order_acquire)) continue;
    use();
    lock.store(0, std::memory_order_release);
    return true;
  }
  return false;
}

class KernelObject {
 public:
  explicit KernelObject(const KernelSideOptions& options);
  // With these tables of counts and stacks.
  Result<> load(const KernelFacts& facts, const TablePair& counts, const TablePair& stacks);
  // What another process of the same build has pinned below `dir`.
  Result<> open_pinned(const std::string& dir, const KernelFacts& facts);
  [[nodiscard]] static std::string map_path(const std::string& dir, const std::string& name);

  // What the kernel side keeps of each CPU that there may be; there is room for many more.
  [[nodiscard]] auto per_cpu() const { return std::span(skeleton->bss->cpus).first(cpus); }
  [[nodiscard]] int program_of(const Hook& hook) const;
  // Says who we are; where it cannot be run, what sampling costs is the kernel's own work.
  void introduce();
  // On each CPU in turn.
  void run_everywhere(bpf_program* program);
  void find_idle_cpus();
  // What is measured and not in the tables yet goes there, on every CPU.
  void measure_now();
  // Of work in flight nothing is known any more.
  void forget_work();

  const KernelSideOptions options;
  const uint32_t cpus;
  Skeleton skeleton;
  std::vector<const Hook*> hooks;  // that are loaded
  std::set<std::string> refused;   // programs

 private:
  Result<> open(const KernelFacts& facts, CoreTypes& types);
  void choose(const KernelFacts& facts);
  Result<> try_to_load(const KernelFacts& facts, const TablePair& counts, const TablePair& stacks);
  Result<> share_memory_with_debox();
  void tell_mappings();
  void tell_clients();
  void tell_waits();
  void tell_usage();
  void tell_facts(const KernelFacts& facts);
  [[nodiscard]] bool is_wanted(const bpf_program* program) const;
};

}  // namespace pkprof
