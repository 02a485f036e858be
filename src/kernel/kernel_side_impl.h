// SPDX-License-Identifier: Apache-2.0
// What the files of KernelSide share: kernel_side.cc loads and attaches, kernel_clocks.cc has the
// sampling clocks, kernel_tables.cc reads what was counted, kernel_ask.cc asks the kernel. No one
// else includes this.
#pragma once

#include <bpf/libbpf.h>

#include <atomic>
#include <future>
#include <memory>
#include <random>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "kernel/kernel_side.h"
#include "kernel/mapped_table.h"
#include "kernel/online_cpus.h"
#include "kernel/recorded_time.h"
#include "pkprof/cpu.h"
#include "probe/core_types.h"
#include "probe/hooks.h"

// What bpftool wrote uses the types of the headers above.
#include "pkprof.skel.h"

namespace pkprof {

struct SkeletonFree {
  void operator()(pkprof_bpf* s) const { pkprof_bpf__destroy(s); }
};
struct LinkFree {
  void operator()(bpf_link* l) const { bpf_link__destroy(l); }
};
using Skeleton = std::unique_ptr<pkprof_bpf, SkeletonFree>;
using Link = std::unique_ptr<bpf_link, LinkFree>;

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

struct KernelSide::Impl {
  Skeleton skeleton;
  std::vector<Link> links;
  struct HookLink {
    const Hook* hook;
    int program;
    Link link;
  };
  std::vector<HookLink> hook_links;
  Link empty;  // of what hooks were measured with, until they are attached
  [[nodiscard]] int program_of(const Hook& hook) const;
  Link attach(const Hook& hook);
  static void let_settle();
  RecordedTime time;
  uint64_t started = UINT64_MAX;   // when it was enabled last; this: it is disabled
  uint32_t windows = 0;            // times that hooks were turned on
  uint64_t watched_before_ns = 0;  // before it was enabled last
  uint64_t owners_without_room = 0;
  std::vector<Fd> samplers;
  const double own_rhythm = static_cast<double>(std::random_device{}()) / 4294967296.0;
  std::vector<uint32_t> sampled;     // the CPUs they are on
  std::vector<CpuAbsence> absences;  // that are over
  // Before these, or before it was disabled, of CPUs whose clock had stopped for idleness.
  uint64_t idle_before_ns = 0;
  std::vector<Fd> pinned_programs[hook_groups];
  Room room;
  Fd counts[2];
  Fd stacks[2];
  Fd counts_in_use;  // tables with the one in use as their entry
  Fd stacks_in_use;
  int active = 0;         // of counts, and
  int active_stacks = 0;  // of stacks: in use
  uint32_t cpus = 0;
  KernelSideOptions options;
  std::vector<const Hook*> hooks;  // loaded ones
  Capabilities capabilities;
  std::set<std::string> refused;  // programs, with why
  // Calls: the programs that count, with their links, and what CPUs keep.
  std::vector<Fd> call_programs;
  std::vector<Fd> call_links;
  uint64_t missed_before = 0;  // before counting began
  MappedTable<pk_call> calls;
  MappedTable<pk_waiting_calls> waiting_calls;

  // What the kernel side keeps of each CPU that there may be; there is room for many more.
  [[nodiscard]] auto per_cpu() const { return std::span(skeleton->bss->cpus).first(cpus); }

  Result<> open(const KernelFacts& facts, CoreTypes& types);
  Result<> open_and_load(const KernelFacts& facts);
  Result<> share_memory_with_debox();
  void tell_mappings();
  void choose(const KernelFacts& facts);
  Result<> use_counts(int which);
  Result<> use_other_stacks();
  Result<> use_tables(int which, std::launch stacks_update, uint32_t rows = 0);
  Result<> put_in_use(int which, std::launch stacks_update);
  Result<> open_clocks();
  Result<bool> open_clock(uint32_t cpu);
  [[nodiscard]] bool is_sampled(uint32_t cpu) const;
  // Time up to `stopped` of CPUs whose sampling clock had stopped for idleness.
  [[nodiscard]] uint64_t idle_tail_of(uint32_t cpu, uint64_t stopped) const;
  [[nodiscard]] uint64_t idle_tail(uint64_t stopped) const;
  static void begin_anew(pk_cpu& cpu, uint64_t now);
  Result<> forget_work();
  void run_everywhere(bpf_program* program);
  void look_at_cpus();  // which of them are idle
  void warm_tables();
  Result<> map_calls();
  bool attach_call(const KernelFacts& facts, const CallTarget& target);
  size_t attach_calls(bpf_program* program, std::span<const CallTarget* const> targets,
                      std::vector<std::string>& left_out, int& tries);
  [[nodiscard]] Rest read_rest(bool keep) const;
  void take_calls(Tables& out);
  void introduce();
  void note(const char* name, bool works, std::string how, const char* costs) {
    capabilities.push_back({name, works, std::move(how), costs});
  }
};

}  // namespace pkprof
