// SPDX-License-Identifier: Apache-2.0
#include "kernel/kernel_side.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <sys/random.h>
#include <time.h>

#include <algorithm>
#include <bit>
#include <fstream>
#include <future>
#include <map>
#include <set>

#include "base/clock.h"
#include "kernel/kernel_side_impl.h"
#include "kernel/program_loader.h"
#include "probe/libbpf_log.h"
#include "probe/pid_namespace.h"
#include "probe/polling.h"

namespace pkprof {
namespace {

// To make an element when it is needed and free it when it is read takes a microsecond, and an
// interrupt for every dozen of stacks: those of a small table are made at once, a kilobyte each.
bool is_made_at_once(uint32_t entries) {
  constexpr uint32_t most_made_at_once = 16384;
  return entries <= most_made_at_once;
}

Fd make_table(const char* name, uint32_t key, uint32_t value, uint32_t entries) {
  LIBBPF_OPTS(bpf_map_create_opts, opts);
  if (!is_made_at_once(entries)) opts.map_flags = BPF_F_NO_PREALLOC;
  return Fd(bpf_map_create(BPF_MAP_TYPE_HASH, name, key, value, entries, &opts));
}

// What programs find the table in use by.
Fd make_table_in_use(const char* name, const Fd& table) {
  LIBBPF_OPTS(bpf_map_create_opts, opts, .inner_map_fd = static_cast<uint32_t>(table.get()));
  return Fd(bpf_map_create(BPF_MAP_TYPE_ARRAY_OF_MAPS, name, sizeof(uint32_t), sizeof(uint32_t), 1,
                           &opts));
}

constexpr uint32_t labels_held = 262144;

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

// Whether something serves what these options ask for.
bool is_asked_for(const Need& need, const KernelSideOptions& options) {
  return std::ranges::any_of(all_hooks(), [&](const Hook& h) {
    return h.need == std::string_view(need.name) && (options.hooks || is_for_clocks(h)) &&
           (h.group != HookGroup::measure || options.measure) &&
           (h.group != HookGroup::calls || options.calls.any());
  });
}

}  // namespace

// Which hooks are wanted: for each need the first way that this kernel has and has not refused.
void KernelSide::Impl::choose(const KernelFacts& facts) {
  hooks.clear();
  std::map<std::string_view, int> ways;
  for (const Hook& hook : all_hooks()) {
    if (!options.hooks && !is_for_clocks(hook)) continue;
    if (refused.contains(hook.program) || !hook_exists(hook, facts)) continue;
    if (hook.group == HookGroup::measure && !options.measure) continue;
    if (hook.group == HookGroup::calls && !options.calls.any()) continue;
    if (ways.try_emplace(hook.need, hook.way).first->second == hook.way) hooks.push_back(&hook);
  }
}

Result<> KernelSide::Impl::open(const KernelFacts& facts, CoreTypes& types) {
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

Result<> KernelSide::Impl::share_memory_with_debox() {
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

void KernelSide::Impl::tell_mappings() {
  pkprof_bpf* s = skeleton.get();
  s->rodata->config.mappings = options.mappings;
  for (bpf_map* map : {s->maps.mappers, s->maps.mapped, s->maps.told_mappings, s->maps.told_files})
    bpf_map__set_autocreate(map, options.mappings);
  // Of each CPU, what a thousand samples a second of short processes tell in a second.
  constexpr uint32_t ring_bytes = 128 << 10;
  constexpr uint32_t most = 16 << 20;
  bpf_map__set_max_entries(s->maps.mapped, std::min(std::bit_ceil(2 * cpus) * ring_bytes, most));
}

Result<> KernelSide::Impl::open_and_load(const KernelFacts& facts) {
  CoreTypes types;  // until it is loaded
  if (auto r = open(facts, types); !r) return r;
  pkprof_bpf* s = skeleton.get();
  if (bpf_map__reuse_fd(s->maps.counts, counts_in_use.get()) ||
      bpf_map__reuse_fd(s->maps.stacks, stacks_in_use.get()))
    return fail_errno("giving the kernel side its tables");
  bpf_map__set_max_entries(s->maps.owners, owners_for_open_files());
  if (options.held) {
    // Names are needed of all who have time in the tables; of votes the latest are worth most.
    bpf_map__set_max_entries(s->maps.labels, labels_held);
    bpf_map__set_type(s->maps.votes, BPF_MAP_TYPE_LRU_HASH);
    bpf_map__set_map_flags(s->maps.votes, 0);
  }
  s->rodata->config.runqueues = facts.percpu_offset("runqueues");
  s->rodata->config.kernel_stat = facts.percpu_offset("kstat");
  s->rodata->config.preempt_count = facts.preempt_count_offset();
  s->rodata->config.softirq_pending = facts.softirq_pending_offset();
  s->rodata->config.packets = facts.percpu_offset("softnet_data", "processed");
  if (facts.percpu_offset("tick_cpu_sched", "idle_sleeptime"))
    s->rodata->config.tick_sched = facts.percpu_offset("tick_cpu_sched");
  s->rodata->config.cpustat = facts.percpu_offset("kernel_cpustat");
  s->rodata->config.measure = options.measure;
  s->rodata->config.share_calls = std::ranges::none_of(
      hooks, [](const Hook* h) { return h->program == std::string_view("pk_csd_entry"); });
  s->rodata->config.threads = options.threads;
  const auto numbers = pid_namespace();
  if (!numbers) return std::unexpected(numbers.error());
  s->rodata->config.pid_namespace = *numbers;
  s->rodata->config.calls = options.calls.any();
  if (options.calls.any()) {
    bpf_map__set_max_entries(s->maps.calls, cpus * PK_CALL_SLOTS);
    bpf_map__set_max_entries(s->maps.waiting_calls, cpus);
  }
  if (auto r = share_memory_with_debox(); !r) return r;
  tell_mappings();
  if (getrandom(&s->rodata->config.seed, sizeof(__u64), 0) < 0)
    s->rodata->config.seed = monotonic_ns();

  bpf_program* program = nullptr;
  bpf_object__for_each_program(program, s->obj) {
    const std::string_view name = bpf_program__name(program);
    const bool wanted =
        name == "pk_sample" || name == "pk_warm" || name == "pk_introduce" || name == "pk_look" ||
        (name == "pk_measure_now" && (options.hooks || options.measure)) ||
        (name == "pk_empty" && options.hooks) || (name == "pk_iter_sockets" && options.hooks) ||
        (name.starts_with("pk_call_fentry") && options.calls.each) ||
        (name.starts_with("pk_call_multi") && options.calls.many) ||
        std::any_of(hooks.begin(), hooks.end(), [&](const Hook* h) { return h->program == name; });
    bpf_program__set_autoload(program, wanted && !refused.contains(std::string(name)));
  }
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
    return name.starts_with("pk_call_fentry") || name.starts_with("pk_call_multi") ||
           std::ranges::any_of(hooks,
                               [&](const Hook* h) { return h->function && h->program == name; });
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
  s->bss->rows_with_stacks = room.counts / 4 * 3;
  return {};
}

int KernelSide::Impl::program_of(const Hook& hook) const {
  return bpf_program__fd(bpf_object__find_program_by_name(skeleton->obj, hook.program));
}

Link KernelSide::Impl::attach(const Hook& hook) {
  bpf_program* program = bpf_object__find_program_by_name(skeleton->obj, hook.program);
  LibbpfLog log;
  return Link(std::string_view(bpf_program__section_name(program)).starts_with("raw_tp")
                  ? bpf_program__attach_raw_tracepoint(program, hook.where)
                  : bpf_program__attach(program));
}

// Where it cannot be run, what sampling costs is the kernel's own work.
void KernelSide::Impl::introduce() {
  LIBBPF_OPTS(bpf_test_run_opts, run);
  bpf_prog_test_run_opts(bpf_program__fd(skeleton->progs.pk_introduce), &run);
}

void KernelSide::Impl::run_everywhere(bpf_program* program) {
  const int fd = bpf_program__fd(program);
  for (uint32_t cpu = 0; fd >= 0 && cpu < cpus; ++cpu) {
    LIBBPF_OPTS(bpf_test_run_opts, run, .flags = BPF_F_TEST_RUN_ON_CPU, .cpu = cpu);
    bpf_prog_test_run_opts(fd, &run);
  }
}

// See pk_look in sampler.bpf.c. Twice: a CPU that the host let wait is looked at before its clock
// gets to take the sample that is late, and has taken it by the second time.
void KernelSide::Impl::look_at_cpus() {
  for (int i = 0; i < 2; ++i) run_everywhere(skeleton->progs.pk_look);
}

// See pk_warm in account.bpf.c. Where it cannot be run, a few stacks are lost and counted.
void KernelSide::Impl::warm_tables() {
  run_everywhere(skeleton->progs.pk_warm);
}

KernelSide::Room KernelSide::room_for(const KernelSideOptions& options, uint32_t cpus) {
  constexpr uint64_t least = 16384;
  constexpr uint64_t least_measured = 65536;  // a row for each task that ran, sampled or not
  constexpr uint64_t most = 262144;
  constexpr uint32_t most_stacks_held = 65536;
  if (options.held) return {.counts = most, .stacks = most_stacks_held};
  if (options.calls.any()) return {.counts = most, .stacks = most_stacks_held};
  const auto entries = static_cast<uint32_t>(std::bit_ceil(
      std::clamp(2 * options.frequency_hz * cpus, options.measure ? least_measured : least, most)));
  return {.counts = entries, .stacks = entries};
}

Result<KernelSide> KernelSide::load(const KernelFacts& facts, const KernelSideOptions& options) {
  auto impl = std::make_unique<Impl>();
  impl->options = options;
  impl->cpus = static_cast<uint32_t>(libbpf_num_possible_cpus());
  if (impl->cpus > PK_MAX_CPUS)
    return fail("this machine has " + std::to_string(impl->cpus) + " CPUs; pkprof knows up to " +
                std::to_string(PK_MAX_CPUS));
  impl->room = room_for(options, impl->cpus);
  for (int i = 0; i < 2; ++i) {
    impl->counts[i] = make_table("pk_counts", sizeof(pk_key), sizeof(pk_count), impl->room.counts);
    impl->stacks[i] =
        make_table("pk_stacks", sizeof(uint64_t), sizeof(pk_stack), impl->room.stacks);
    if (!impl->counts[i].valid() || !impl->stacks[i].valid())
      return fail(LibbpfLog().explain("making the kernel side's tables", errno));
  }
  impl->counts_in_use = make_table_in_use("counts", impl->counts[0]);
  impl->stacks_in_use = make_table_in_use("stacks", impl->stacks[0]);
  if (!impl->counts_in_use.valid() || !impl->stacks_in_use.valid())
    return fail(LibbpfLog().explain("making the kernel side's tables", errno));
  // The waits that this takes go on while verifiers are at work. What is not made at once is to be
  // warmed, both tables of a kind.
  const int first =
      is_made_at_once(impl->room.counts) && is_made_at_once(impl->room.stacks) ? 0 : 1;
  constexpr auto side_by_side = std::launch::async | std::launch::deferred;
  auto used = std::async(side_by_side, [&] { return impl->put_in_use(first, side_by_side); });
  for (;;) {
    impl->choose(facts);
    const size_t before = impl->refused.size();
    if (auto r = impl->open_and_load(facts); r)
      break;
    else if (impl->refused.size() == before)
      return std::unexpected(r.error());
  }
  if (auto r = used.get(); !r) return std::unexpected(r.error());
  impl->warm_tables();
  if (impl->active != 0) {
    if (auto r = impl->use_tables(0, side_by_side); !r) return std::unexpected(r.error());
    impl->warm_tables();
  }
  impl->introduce();
  if (auto r = impl->map_calls(); !r) return std::unexpected(r.error());
  return KernelSide(std::move(impl));
}

void KernelSide::tell_functions(const KnownFunctions* functions) {
  impl_->note("kernel symbols for attribution", functions && functions->missing.empty(),
              !functions                   ? "no kernel symbols"
              : functions->missing.empty() ? "found"
                                           : "no symbol for " + functions->missing[0],
              "softirq time is charged to whoever was interrupted");
  if (!functions) return;
  auto& told = impl_->skeleton->bss->addresses;
  // Unused entries lie above every address.
  pk_function unused{};
  unused.start = UINT64_MAX;
  std::ranges::fill(told.functions, unused);
  std::ranges::copy(functions->entries, told.functions);
  std::ranges::copy(functions->timers, told.timer_function);
  std::ranges::copy(functions->known, told.known);
}

Result<> KernelSide::attach() {
  Impl& m = *impl_;
  std::set<std::string_view> attached;
  const bool functions = std::ranges::any_of(m.hooks, &Hook::function);
  const std::string waits = functions ? what_hooking_waits_for() : "";
  for (const Hook* hook : m.hooks) {
    Link link;
    errno = 0;
    if (!hook->function || waits.empty()) link = m.attach(*hook);
    if (!link && is_shortage(errno))
      return fail(LibbpfLog().explain(std::string("attaching ") + hook->program, errno));
    if (!link) {
      m.refused.insert(hook->program);
      continue;
    }
    m.hook_links.push_back({hook, m.program_of(*hook), std::move(link)});
    attached.insert(hook->need);
  }
  m.empty.reset();
  // Without hooks there is no pause to wait for, either.
  m.windows = 1;
  m.skeleton->bss->window = m.windows;
  for (auto& cpu : m.per_cpu()) cpu.window = m.windows;
  for (const Need& need : all_needs()) {
    if (!is_asked_for(need, m.options)) continue;
    std::string how;
    for (const Hook* hook : m.hooks)
      if (hook->need == need.name && !m.refused.contains(hook->program)) {
        how += (how.empty() ? "" : ", ") + std::string(hook->where);
      }
    const bool works = attached.contains(need.name);
    m.note(need.name, works,
           works           ? how
           : waits.empty() ? "this kernel has no means for it"
                           : waits,
           need.costs);
  }
  return m.open_clocks();
}

// One after the other. A CPU that the host does not run keeps us waiting, and what those before it
// took meanwhile would be of the next interval: then it is done again.
void KernelSide::measure_now() {
  constexpr int most_times = 5;
  constexpr uint64_t enough_ns = 500'000;
  constexpr uint64_t enough_for_each_ns = 20'000;
  for (int i = 0; i < most_times; ++i) {
    const uint64_t start = monotonic_ns();
    impl_->run_everywhere(impl_->skeleton->progs.pk_measure_now);
    if (!impl_->options.measure) break;
    if (monotonic_ns() - start < enough_ns + impl_->cpus * enough_for_each_ns) break;
  }
}

// What is armed meets its hook before the hooks go.
void KernelSide::Impl::let_settle() {
  const timespec settle{0, 1'000'000};
  nanosleep(&settle, nullptr);
}

void KernelSide::detach_hooks() {
  Impl& m = *impl_;
  m.skeleton->bss->window = 0;
  m.let_settle();
  for (Impl::HookLink& h : m.hook_links)
    if (h.hook->group != HookGroup::lasting) h.link.reset();
}

Result<size_t> KernelSide::attach_hooks_again() {
  Impl& m = *impl_;
  auto& bss = *m.skeleton->bss;
  if (auto r = m.forget_work(); !r) return std::unexpected(r.error());
  size_t failed = 0;
  for (Impl::HookLink& h : m.hook_links) {
    if (h.link || h.hook->rest & bss.resting) continue;
    h.link = m.attach(*h.hook);
    if (!h.link) ++failed;
  }
  bss.window = ++m.windows;
  if (m.options.hooks) ask_owners();
  return failed;
}

// Without hooks that name sockets, the socket named last is not the packet's that the stack is at.
uint32_t KernelSide::may_rest(uint32_t which) const {
  const auto attached = [this](std::string_view program) {
    return std::ranges::any_of(impl_->hook_links,
                               [&](const Impl::HookLink& h) { return program == h.hook->program; });
  };
  const bool named = attached("pk_tcp_probe") &&
                     (attached("pk_sk_data_ready") || attached("pk_sock_def_readable"));
  return named ? which : which & ~static_cast<uint32_t>(PK_REST_PACKETS);
}

uint32_t KernelSide::resting() const {
  return impl_->skeleton->bss->resting;
}

size_t KernelSide::rest(uint32_t which) {
  Impl& m = *impl_;
  auto& bss = *m.skeleton->bss;
  const uint32_t resting = may_rest(which);
  size_t failed = 0;
  for (Impl::HookLink& h : m.hook_links) {
    if (!(h.hook->rest & bss.resting & ~resting)) continue;
    h.link = m.attach(*h.hook);
    if (!h.link) ++failed;
  }
  bss.resting = resting;
  m.let_settle();
  for (Impl::HookLink& h : m.hook_links)
    if (h.hook->rest & resting) h.link.reset();
  return failed;
}

const Capabilities& KernelSide::capabilities() const {
  return impl_->capabilities;
}

std::vector<int> KernelSide::hook_programs(HookGroup group) const {
  std::set<std::string_view> seen;
  std::vector<int> fds;
  for (const Fd& fd : impl_->pinned_programs[static_cast<size_t>(group)]) fds.push_back(fd.get());
  for (const Impl::HookLink& h : impl_->hook_links)
    if (h.hook->group == group && seen.insert(h.hook->program).second) fds.push_back(h.program);
  if (group == HookGroup::calls)
    for (const Fd& fd : impl_->call_programs) fds.push_back(fd.get());
  return fds;
}

KernelSide::KernelSide(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
KernelSide::KernelSide(KernelSide&&) noexcept = default;
KernelSide& KernelSide::operator=(KernelSide&&) noexcept = default;
KernelSide::~KernelSide() = default;

}  // namespace pkprof
