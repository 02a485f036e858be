// SPDX-License-Identifier: Apache-2.0
#include "kernel/object/kernel_object.h"

#include <bpf/bpf.h>
#include <sys/random.h>

#include <algorithm>
#include <bit>
#include <fstream>
#include <map>
#include <string_view>

#include "base/clock.h"
#include "probe/libbpf_log.h"
#include "probe/pid_namespace.h"
#include "probe/program_loader.h"

namespace pkprof {
namespace {

// libbpf would write what is in there, which is zeros, over what the kernel made, which is zeros:
// megabytes of them. What is set before loading is lost.
Result<> make_zeros(bpf_map* map) {
  LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = bpf_map__map_flags(map));
  const Fd fd(bpf_map_create(bpf_map__type(map), bpf_map__name(map), bpf_map__key_size(map),
                             bpf_map__value_size(map), bpf_map__max_entries(map), &opts));
  if (!fd.valid() || bpf_map__reuse_fd(map, fd.get()))
    return fail(LibbpfLog().explain("making the kernel side's memory", errno));
  return {};
}

// Sockets are files, and one of UDP has two entries: its own and its port's. Entries are made at
// once, some 80 bytes each.
uint32_t owners_for_open_files() {
  constexpr uint64_t least = 65536;
  constexpr uint64_t most = 524288;
  constexpr uint64_t to_come = 16384;  // files that are opened later
  uint64_t open_files = 0;
  std::ifstream("/proc/sys/fs/file-nr") >> open_files;
  return static_cast<uint32_t>(std::clamp(std::bit_ceil(2 * (open_files + to_come)), least, most));
}

bool is_for_calls(std::string_view program) {
  return program.starts_with("pk_call_fentry") || program.starts_with("pk_call_multi");
}

}  // namespace

KernelObject::KernelObject(const KernelSideOptions& wanted)
    : options(wanted), cpus(static_cast<uint32_t>(libbpf_num_possible_cpus())) {}

// Which hooks are wanted: for each need the first way that this kernel has and has not refused.
void KernelObject::choose(const KernelFacts& facts) {
  hooks.clear();
  std::map<std::string_view, int> ways;
  for (const Hook& hook : all_hooks()) {
    if (!options.hooks && !is_for_clocks(hook)) continue;
    if (refused.contains(hook.program) || !hook_exists(hook, facts)) continue;
    if (hook.group == HookGroup::measure && !options.measure) continue;
    if (hook.group == HookGroup::calls && !options.calls.any()) continue;
    if (hook.group == HookGroup::clients && !options.clients) continue;
    if (hook.group == HookGroup::waits && !options.waits) continue;
    if (hook.group == HookGroup::usage && !(options.usage & hook.usage)) continue;
    if (ways.try_emplace(hook.need.name, hook.way).first->second == hook.way)
      hooks.push_back(&hook);
  }
}

Result<> KernelObject::open(const KernelFacts& facts, CoreTypes& types) {
  ProgramLoader::take_over();
  const LibbpfLog quiet;
  LIBBPF_OPTS(bpf_object_open_opts, open, .btf_custom_path = types.path().c_str());
  skeleton.reset(types.path().empty() ? pkprof_bpf__open() : pkprof_bpf__open_opts(&open));
  if (skeleton && !types.path().empty() &&
      !types.write(bpf_object__btf(skeleton->obj), facts.types()))
    skeleton.reset(pkprof_bpf__open());
  if (!skeleton) return fail_errno("opening the kernel side");
  return {};
}

Result<> KernelObject::share_memory_with_debox() {
  pkprof_bpf* s = skeleton.get();
  const DeboxMemory& debox = options.debox;
  if (debox.memory < 0) {
    bpf_map__set_autocreate(s->maps.debox_memory, false);
    bpf_map__set_autocreate(s->maps.debox_areas, false);
    return {};
  }
  if (bpf_map__reuse_fd(s->maps.debox_memory, debox.memory) ||
      bpf_map__reuse_fd(s->maps.debox_areas, debox.areas))
    return fail_errno("sharing memory with DeBox");
  s->rodata->config.debox = 1;
  s->rodata->config.debox_tids = debox.tids;
  s->rodata->config.debox_threads = debox.threads;
  s->rodata->config.debox_done = debox.done;
  return {};
}

void KernelObject::tell_mappings() {
  pkprof_bpf* s = skeleton.get();
  s->rodata->config.mappings = options.mappings;
  for (bpf_map* map : {s->maps.mappers, s->maps.mapped, s->maps.told_mappings, s->maps.told_files})
    bpf_map__set_autocreate(map, options.mappings);
  s->rodata->config.unwind = options.unwind;
  for (bpf_map* map : {s->maps.unwind_tables, s->maps.unfinished})
    bpf_map__set_autocreate(map, options.unwind);
  // Of each CPU, what a thousand samples a second of short processes tell in a second.
  constexpr uint32_t ring_bytes = 128 << 10;
  constexpr uint32_t most = 16 << 20;
  bpf_map__set_max_entries(s->maps.mapped, std::min(std::bit_ceil(2 * cpus) * ring_bytes, most));
  // Of each CPU, what it samples in a few hundredths of a second.
  bpf_map__set_max_entries(s->maps.unfinished,
                           std::min(std::bit_ceil(2 * cpus) * 4 * ring_bytes, most));
}

void KernelObject::tell_clients() {
  pkprof_bpf* s = skeleton.get();
  s->rodata->config.clients = options.clients;
  if (!options.clients) {
    for (bpf_map* map : {s->maps.workers, s->maps.clients, s->maps.flows, s->maps.ends,
                         s->maps.tcp_ends, s->maps.awaited, s->maps.listeners})
      bpf_map__set_autocreate(map, false);
    return;
  }
  bpf_map__set_max_entries(s->maps.workers, PK_WORKERS);
  bpf_map__set_max_entries(s->maps.clients, PK_CLIENTS);
  bpf_map__set_max_entries(s->maps.flows, PK_FLOWS);
  bpf_map__set_max_entries(s->maps.tcp_ends, PK_ENDS);
  bpf_map__set_max_entries(s->maps.awaited, PK_AWAITED);
  bpf_map__set_max_entries(s->maps.listeners, PK_LISTENERS);
}

void KernelObject::tell_waits() {
  pkprof_bpf* s = skeleton.get();
  for (bpf_map* map :
       {s->maps.waiters, s->maps.wakers, s->maps.turns, s->maps.wait_scratch, s->maps.disk_logs})
    bpf_map__set_autocreate(map, options.waits);
  if (!options.waits) return;
  bpf_map__set_max_entries(s->maps.waiters, PK_WAITERS + PK_WAITERS_NEAR);
  bpf_map__set_max_entries(s->maps.wakers, PK_KEPT_WAKERS);
  bpf_map__set_max_entries(s->maps.disk_logs, PK_DISKS);
}

void KernelObject::tell_usage() {
  pkprof_bpf* s = skeleton.get();
  const auto want = [this](bpf_map* map, uint32_t which) {
    bpf_map__set_autocreate(map, (options.usage & which) != 0);
  };
  want(s->maps.usage_scratch, UINT32_MAX);
  want(s->maps.at_disk, PK_USAGE_DISK);
  want(s->maps.peers, PK_USAGE_NET);
  want(s->maps.other_ends, PK_USAGE_NET);
  want(s->maps.contenders, PK_USAGE_LOCK);
  want(s->maps.spinners, PK_USAGE_LOCK);
  want(s->maps.lock_names, PK_USAGE_LOCK);
  if (options.usage & PK_USAGE_DISK) bpf_map__set_max_entries(s->maps.at_disk, PK_DISK_REQUESTS);
  if (options.usage & PK_USAGE_NET)
    for (bpf_map* map : {s->maps.peers, s->maps.other_ends})
      bpf_map__set_max_entries(map, PK_PEERS);
  if (options.usage & PK_USAGE_LOCK) {
    bpf_map__set_max_entries(s->maps.contenders, PK_CONTENDERS);
    bpf_map__set_max_entries(s->maps.lock_names, PK_LOCK_NAMES);
  }
}

void KernelObject::tell_facts(const KernelFacts& facts) {
  auto& config = skeleton->rodata->config;
  config.runqueues = facts.percpu_offset("runqueues");
  config.kernel_stat = facts.percpu_offset("kstat");
  config.preempt_count = facts.preempt_count_offset();
  config.softirq_pending = facts.softirq_pending_offset();
  config.packets = facts.percpu_offset("softnet_data", "processed");
  if (facts.percpu_offset("tick_cpu_sched", "idle_sleeptime"))
    config.tick_sched = facts.percpu_offset("tick_cpu_sched");
  config.cpustat = facts.percpu_offset("kernel_cpustat");
}

bool KernelObject::is_wanted(const bpf_program* program) const {
  const std::string_view name = bpf_program__name(program);
  if (refused.contains(std::string(name))) return false;
  if (name == "pk_sample" || name == "pk_warm" || name == "pk_introduce" || name == "pk_find_idle")
    return true;
  if (name == "pk_measure_now") return options.hooks || options.measure;
  // It goes by what the hook has noted.
  if (name == "pk_iter_waits")
    return std::ranges::any_of(
        hooks, [](const Hook* h) { return h->program == std::string_view("pk_wait_switch"); });
  if (name == "pk_empty" || name == "pk_iter_sockets") return options.hooks;
  if (name.starts_with("pk_call_fentry")) return options.calls.each;
  if (name.starts_with("pk_call_multi")) return options.calls.many;
  return std::ranges::any_of(hooks, [&](const Hook* h) { return h->program == name; });
}

Result<> KernelObject::try_to_load(const KernelFacts& facts, const TablePair& counts,
                                   const TablePair& stacks) {
  CoreTypes types;  // until it is loaded
  if (auto r = open(facts, types); !r) return r;
  pkprof_bpf* s = skeleton.get();
  if (bpf_map__reuse_fd(s->maps.counts, counts.in_use()) ||
      bpf_map__reuse_fd(s->maps.stacks, stacks.in_use()))
    return fail_errno("giving the kernel side its tables");
  bpf_map__set_max_entries(s->maps.owners, owners_for_open_files());
  if (options.held) {
    // Names are needed of all who have time in the tables; of votes the latest are worth most.
    constexpr uint32_t labels_held = 262144;
    bpf_map__set_max_entries(s->maps.labels, labels_held);
    bpf_map__set_type(s->maps.votes, BPF_MAP_TYPE_LRU_HASH);
    bpf_map__set_map_flags(s->maps.votes, 0);
  }
  tell_facts(facts);
  s->rodata->config.measure = options.measure;
  s->rodata->config.share_calls = std::ranges::none_of(
      hooks, [](const Hook* h) { return h->program == std::string_view("pk_csd_entry"); });
  s->rodata->config.threads = options.threads;
  const auto numbers = pid_namespace();
  if (!numbers) return std::unexpected(numbers.error());
  s->rodata->config.pid_namespace = *numbers;
  tell_clients();
  tell_waits();
  tell_usage();
  if (options.calls.any()) {
    bpf_map__set_max_entries(s->maps.calls, cpus * PK_CALL_SLOTS);
    bpf_map__set_max_entries(s->maps.waiting_calls, cpus);
  }
  if (auto r = share_memory_with_debox(); !r) return r;
  tell_mappings();
  if (getrandom(&s->rodata->config.seed, sizeof(__u64), 0) < 0)
    s->rodata->config.seed = monotonic_ns();
  bpf_program* program = nullptr;
  bpf_object__for_each_program(program, s->obj)
      bpf_program__set_autoload(program, is_wanted(program));
  if (auto r = make_zeros(s->maps.bss); !r) return r;
  LibbpfLog log;
  ProgramLoader loader(facts);
  std::vector<ProgramLoader::Refused> culprits;
  if (const int err = pkprof_bpf__load(s))
    culprits.push_back({log.refused_program(), -err});
  else
    culprits = loader.load();
  // Some kernels let nothing be attached to functions. Who may load no program for a tracepoint may
  // load none at all.
  const auto is_of_functions = [&](const std::string& name) {
    return is_for_calls(name) || std::ranges::any_of(hooks, [&](const Hook* h) {
             return h->function && h->program == name;
           });
  };
  for (const ProgramLoader::Refused& culprit : culprits) {
    const bool may_not = culprit.error == EPERM && !is_of_functions(culprit.program);
    if (culprit.program.empty() || culprit.program == "pk_sample" || may_not ||
        is_shortage(culprit.error))
      return fail(log.explain("loading the kernel side", culprit.error));
    refused.insert(culprit.program);
  }
  if (!culprits.empty()) return fail("retry");
  s->bss->period = 1'000'000'000 / options.frequency_hz;
  s->bss->rows_with_stacks = counts.entries() / 4 * 3;
  return {};
}

Result<> KernelObject::load(const KernelFacts& facts, const TablePair& counts,
                            const TablePair& stacks) {
  for (;;) {
    choose(facts);
    const size_t before = refused.size();
    auto loaded = try_to_load(facts, counts, stacks);
    if (loaded || refused.size() == before) return loaded;
  }
}

// The kernel keeps names with dots for itself.
std::string KernelObject::map_path(const std::string& dir, const std::string& name) {
  std::string path = name;
  std::ranges::replace(path, '.', '_');
  return dir + "/map_" + path;
}

Result<> KernelObject::open_pinned(const std::string& dir, const KernelFacts& facts) {
  CoreTypes types;  // until it is loaded
  if (auto r = open(facts, types); !r) return r;
  if (auto r = share_memory_with_debox(); !r) return r;
  tell_mappings();
  tell_clients();
  tell_waits();
  tell_usage();
  bpf_map* map = nullptr;
  bpf_object__for_each_map(map, skeleton->obj) {
    if (!bpf_map__autocreate(map)) continue;
    const std::string path = map_path(dir, bpf_map__name(map));
    const Fd fd(bpf_obj_get(path.c_str()));
    if (!fd.valid() || bpf_map__reuse_fd(map, fd.get())) return fail_errno("opening " + path);
  }
  bpf_program* program = nullptr;
  bpf_object__for_each_program(program, skeleton->obj) bpf_program__set_autoload(
      program, program == skeleton->progs.pk_find_idle ||
                   (options.hooks && program == skeleton->progs.pk_iter_sockets));
  LibbpfLog log;
  ProgramLoader loader(facts);
  if (const int err = pkprof_bpf__load(skeleton.get()))
    return fail(log.explain("opening the recording in " + dir, -err));
  if (const auto not_loaded = loader.load(); !not_loaded.empty())
    return fail(log.explain("opening the recording in " + dir, not_loaded.front().error));
  return {};
}

int KernelObject::program_of(const Hook& hook) const {
  return bpf_program__fd(bpf_object__find_program_by_name(skeleton->obj, hook.program));
}

void KernelObject::introduce() {
  LIBBPF_OPTS(bpf_test_run_opts, run);
  bpf_prog_test_run_opts(bpf_program__fd(skeleton->progs.pk_introduce), &run);
}

void KernelObject::run_everywhere(bpf_program* program) {
  const int fd = bpf_program__fd(program);
  for (uint32_t cpu = 0; fd >= 0 && cpu < cpus; ++cpu) {
    LIBBPF_OPTS(bpf_test_run_opts, run, .flags = BPF_F_TEST_RUN_ON_CPU, .cpu = cpu);
    bpf_prog_test_run_opts(fd, &run);
  }
}

// See pk_find_idle in sampler.bpf.c. Twice: a CPU that the host let wait is looked at before its
// clock gets to take the sample that is late, and has taken it by the second time.
void KernelObject::find_idle_cpus() {
  for (int i = 0; i < 2; ++i) run_everywhere(skeleton->progs.pk_find_idle);
}

// One after the other. A CPU that the host does not run keeps us waiting, and what those before it
// took meanwhile would be of the next interval: then it is done again.
void KernelObject::measure_now() {
  constexpr int most_times = 5;
  constexpr uint64_t enough_ns = 500'000;
  constexpr uint64_t enough_for_each_ns = 20'000;
  for (int i = 0; i < most_times; ++i) {
    const uint64_t start = monotonic_ns();
    run_everywhere(skeleton->progs.pk_measure_now);
    if (!options.measure) break;
    if (monotonic_ns() - start < enough_ns + cpus * enough_for_each_ns) break;
  }
}

// What a CPU names by its address may have changed unseen. Notes hold: each names what it is of so
// that nothing else is taken for it.
void KernelObject::forget_work() {
  for (pk_cpu& cpu : per_cpu()) {
    cpu.hot.skb = 0;
    cpu.hot.from = 0;
    cpu.hot.sk = 0;
    cpu.hot.tx_sk = 0;
    cpu.hot.sent = 0;
    cpu.sender = 0;
    cpu.hot.hrtimer = 0;
    cpu.timer.expiring = 0;
    cpu.irq.since = 0;
    cpu.irq.timer = 0;
    cpu.measure.softirq_since = 0;
    cpu.disk.done = 0;
    cpu.disk.remapped_bio = 0;
  }
}

}  // namespace pkprof
