// SPDX-License-Identifier: Apache-2.0
#include "debox/side.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <iterator>

#include "debox/config.h"
#include "probe/core_types.h"
#include "probe/hook_overhead.h"
#include "probe/libbpf_log.h"
#include "probe/link.h"
#include "probe/mapped_table.h"
#include "probe/program_loader.h"

// What bpftool wrote uses the types of the headers above.
#include "debox.skel.h"

namespace pkprof {
namespace {

struct SkeletonFree {
  void operator()(debox_bpf* s) const { debox_bpf__destroy(s); }
};
struct RingFree {
  void operator()(ring_buffer* r) const { ring_buffer__free(r); }
};

// errno says why, where it is not valid.
Fd make_area(const bpf_map* areas, uint32_t area, uint32_t elements) {
  LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE | BPF_F_INNER_MAP);
  Fd map(bpf_map_create(BPF_MAP_TYPE_ARRAY, "db_records", sizeof(uint32_t), sizeof(debox_record),
                        elements, &opts));
  const int fd = map.get();
  if (fd < 0 || bpf_map_update_elem(bpf_map__fd(areas), &area, &fd, BPF_ANY)) return Fd();
  return map;
}

// At least 1.
uint32_t threads_of(uint32_t pid) {
  std::error_code error;
  const std::filesystem::directory_iterator tasks("/proc/" + std::to_string(pid) + "/task", error);
  if (error) return 1;
  return static_cast<uint32_t>(std::max<ptrdiff_t>(std::distance(begin(tasks), end(tasks)), 1));
}

Fd open_event(uint32_t tid, uint64_t what, uint64_t period, bool children) {
  perf_event_attr attr{};
  attr.size = sizeof(attr);
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = what;
  attr.sample_period = period;
  attr.exclude_user = what == PERF_COUNT_SW_CPU_CLOCK;
  attr.sample_type = PERF_SAMPLE_ADDR;
  attr.inherit = children;
  return Fd(static_cast<int>(
      syscall(SYS_perf_event_open, &attr, static_cast<pid_t>(tid), -1, -1, PERF_FLAG_FD_CLOEXEC)));
}

}  // namespace

struct DeboxSide::Impl {
  std::unique_ptr<debox_bpf, SkeletonFree> skeleton;
  std::vector<Link> links;
  std::vector<Link> call_links;
  std::unique_ptr<ring_buffer, RingFree> ring;
  MappedTable<db_calls> kinds;
  Fd own_records;  // of threads whose programs do not read them
  uint32_t cpus = 0;
  std::vector<bool> areas = std::vector<bool>(DB_AREAS);  // in use; the first is own_records
  std::function<void(TakenCall&&)> each;
  size_t taken = 0;
  bool stacks = false;
  DeboxTrace trace{std::nullopt};

  Result<> attach(bpf_program* program, std::vector<Link>& to);
};

Result<> DeboxSide::Impl::attach(bpf_program* program, std::vector<Link>& to) {
  LibbpfLog log;
  Link link(bpf_program__attach(program));
  if (!link)
    return fail(log.explain("attaching " + std::string(bpf_program__name(program)), errno));
  to.push_back(std::move(link));
  return {};
}

Result<DeboxSide> DeboxSide::load(const KernelFacts& facts, const DeboxSideOptions& options) {
  auto impl = std::make_unique<Impl>();
  impl->trace = DeboxTrace(options.traced);
  ProgramLoader::take_over();
  CoreTypes types;  // until it is loaded
  LIBBPF_OPTS(bpf_object_open_opts, open, .btf_custom_path = types.path().c_str());
  impl->skeleton.reset(types.path().empty() ? debox_bpf__open() : debox_bpf__open_opts(&open));
  if (impl->skeleton && !types.path().empty() &&
      !types.write(bpf_object__btf(impl->skeleton->obj), facts.types()))
    impl->skeleton.reset(debox_bpf__open());
  debox_bpf* s = impl->skeleton.get();
  if (!s) return fail_errno("opening DeBox's kernel side");
  impl->cpus = static_cast<uint32_t>(libbpf_num_possible_cpus());
  tell_debox(s->rodata->db_config, facts, options.symbols);
  s->rodata->db_config.stacks = impl->stacks = options.stacks;
  s->bss->db_slow_ns = UINT64_MAX;
  bpf_map__set_max_entries(s->maps.db_kinds, impl->cpus * DB_KINDS);
  bpf_program* program = nullptr;
  bpf_object__for_each_program(program, s->obj) bpf_program__set_autoload(program, true);
  impl->trace.prepare(*s, options.symbols);
  constexpr uint32_t ring_bytes_with_stacks = 16 << 20;
  if (options.stacks) bpf_map__set_max_entries(s->maps.db_slow, ring_bytes_with_stacks);
  LibbpfLog log;
  ProgramLoader loader(facts);
  if (const int err = debox_bpf__load(s); err)
    return fail(log.explain("loading DeBox's kernel side", -err));
  if (const auto refused = loader.load(); !refused.empty())
    return fail(log.explain("loading DeBox's kernel side", refused.front().error));

  if (auto r = impl->trace.tell(*s, options.symbols); !r) return std::unexpected(r.error());

  impl->own_records = make_area(s->maps.db_areas, 0, DB_SETS * DB_WAYS);
  if (!impl->own_records.valid()) return fail(log.explain("making room for records", errno));
  impl->areas[0] = true;
  if (auto r = impl->kinds.map(bpf_map__fd(s->maps.db_kinds), size_t{impl->cpus} * DB_KINDS); !r)
    return std::unexpected(r.error());
  Impl* const self = impl.get();
  impl->ring.reset(ring_buffer__new(
      bpf_map__fd(s->maps.db_slow),
      [](void* context, void* data, size_t size) {
        Impl& to = *static_cast<Impl*>(context);
        if (auto call =
                taken_call({static_cast<const char*>(data), size}, to.stacks, to.trace.wanted()))
          to.each(std::move(*call));
        return ++to.taken < DeboxSide::most_records ? 0 : -ECANCELED;
      },
      self, nullptr));
  if (!impl->ring) return fail_errno("mapping the records' ring");
  return DeboxSide(std::move(impl));
}

Result<> DeboxSide::attach() {
  const auto& progs = impl_->skeleton->progs;
  for (bpf_program* program : {progs.db_sched_switch, progs.db_sched_waking, progs.db_fork,
                               progs.db_exec, progs.db_exit_thread, progs.db_signal})
    if (auto r = impl_->attach(program, impl_->links); !r) return r;
  return {};
}

Result<> DeboxSide::attach_calls() {
  if (!impl_->call_links.empty()) return {};
  const auto& progs = impl_->skeleton->progs;
  for (bpf_program* program : {progs.db_exit, progs.db_enter})
    if (auto r = impl_->attach(program, impl_->call_links); !r) return r;
  return {};
}

void DeboxSide::detach_calls() {
  impl_->call_links.clear();
}

std::vector<std::string> DeboxSide::attach_trace(const KernelFacts& facts) {
  return impl_->trace.attach(*impl_->skeleton, facts);
}

void DeboxSide::detach_trace() {
  impl_->trace.detach();
}

bool DeboxSide::traces() const {
  return impl_->trace.wanted();
}

Result<> DeboxSide::watch(const db_watched& who) {
  db_watched context = who;
  if (who.tid == who.pid) context.others = threads_of(who.pid) - 1;
  LIBBPF_OPTS(bpf_test_run_opts, run, .ctx_in = &context, .ctx_size_in = sizeof(context));
  if (bpf_prog_test_run_opts(bpf_program__fd(impl_->skeleton->progs.db_watch), &run))
    return fail_errno("telling the kernel side of a thread");
  if (run.retval) return fail("there are too many threads of interest");
  return {};
}

void DeboxSide::unwatch(uint32_t tid, uint32_t area) {
  db_watched context{};
  context.tid = tid;
  context.was = area;
  LIBBPF_OPTS(bpf_test_run_opts, run, .ctx_in = &context, .ctx_size_in = sizeof(context));
  bpf_prog_test_run_opts(bpf_program__fd(impl_->skeleton->progs.db_unwatch), &run);
}

bool DeboxSide::watches(uint32_t tid) const {
  const auto* set = &impl_->skeleton->bss->db_tids[size_t{tid & (DB_SETS - 1)} * DB_WAYS];
  return std::find(set, set + DB_WAYS, tid) != set + DB_WAYS;
}

// A link keeps its event.
DeboxSide::Events DeboxSide::watch_events(uint32_t tid, bool children, bool faults,
                                          bool trace) const {
  const auto watch = [&](uint64_t what, uint64_t period, const bpf_program* program) {
    const Fd event = open_event(tid, what, period, children);
    if (!event.valid()) return Fd();
    return Fd(bpf_link_create(bpf_program__fd(program), event.get(), BPF_PERF_EVENT, nullptr));
  };
  const auto& progs = impl_->skeleton->progs;
  Events events;
  if (faults) {
    events.minor_faults = watch(PERF_COUNT_SW_PAGE_FAULTS_MIN, 1, progs.db_minor_fault);
    events.major_faults = watch(PERF_COUNT_SW_PAGE_FAULTS_MAJ, 1, progs.db_major_fault);
  }
  if (trace && impl_->trace.sampled())
    events.samples = watch(PERF_COUNT_SW_CPU_CLOCK, DeboxTrace::sample_ns, progs.db_trace_sample);
  return events;
}

Result<DeboxSide::Records> DeboxSide::make_records(uint32_t elements) {
  const auto free = std::ranges::find(impl_->areas, false);
  if (free == impl_->areas.end()) return fail("there are too many threads that read their records");
  Records records;
  records.area = static_cast<uint32_t>(free - impl_->areas.begin());
  records.memory = make_area(impl_->skeleton->maps.db_areas, records.area, elements);
  // Frozen, user space can neither write to it nor have it as memory to be written to. (To open it
  // only for reading would not do: such a file cannot be shared memory.)
  bpf_map_info info{};
  uint32_t size = sizeof info;
  if (!records.memory.valid() || bpf_map_freeze(records.memory.get()) ||
      bpf_obj_get_info_by_fd(records.memory.get(), &info, &size)) {
    const int why = errno;
    free_records(records.area);
    return fail_errno("making room for records", why);
  }
  records.id = info.id;
  *free = true;
  return records;
}

bool DeboxSide::is_held(uint32_t id) {
  return Fd(bpf_map_get_fd_by_id(id)).valid() || errno != ENOENT;
}

void DeboxSide::free_records(uint32_t area) {
  bpf_map_delete_elem(bpf_map__fd(impl_->skeleton->maps.db_areas), &area);
  impl_->areas[area] = false;
}

std::map<uint32_t, db_calls> DeboxSide::calls() const {
  std::map<uint32_t, db_calls> all;
  for (const db_calls& one : impl_->kinds.entries()) {
    if (!one.count) continue;
    db_calls& sum = all[one.kind];
    sum.kind = one.kind;
    sum.count += one.count;
    sum.errors += one.errors;
    sum.total_ns += one.total_ns;
    sum.longest_ns = std::max(sum.longest_ns, one.longest_ns);
    sum.asleep_ns += one.asleep_ns;
    sum.runnable_ns += one.runnable_ns;
    sum.voluntary += one.voluntary;
    sum.forced += one.forced;
    sum.minor += one.minor;
    sum.major += one.major;
    sum.bytes += one.bytes;
    sum.async_ns += one.async_ns;
    for (size_t i = 0; i < DB_BUCKETS; ++i) sum.bucket[i] += one.bucket[i];
  }
  return all;
}

void DeboxSide::want_kinds(const std::vector<uint32_t>& kinds) {
  auto& left_out = impl_->skeleton->bss->db_left_out;
  std::ranges::fill(left_out, UINT64_MAX);
  for (const uint32_t kind : kinds) left_out[kind / 64] &= ~(uint64_t{1} << (kind % 64));
}

void DeboxSide::want_records(uint64_t at_least_ns) {
  impl_->skeleton->bss->db_slow_ns = at_least_ns;
}

Result<bool> DeboxSide::take_records(const std::function<void(TakenCall&&)>& each) {
  impl_->each = each;
  impl_->taken = 0;
  const int taken = ring_buffer__consume(impl_->ring.get());
  impl_->each = nullptr;
  if (impl_->taken == most_records) return true;
  if (taken < 0) return fail_errno("reading records", -taken);
  return false;
}

db_stats DeboxSide::stats() const {
  const bpf_map* map = impl_->skeleton->maps.db_cpus;
  const size_t size = (size_t{bpf_map__value_size(map)} + 7) / 8 * 8;
  std::vector<char> values(size * impl_->cpus);
  const uint32_t zero = 0;
  db_stats sum{};
  if (bpf_map_lookup_elem(bpf_map__fd(map), &zero, values.data())) return sum;
  for (uint32_t cpu = 0; cpu < impl_->cpus; ++cpu) {
    db_stats one{};
    std::memcpy(&one, values.data() + cpu * size, sizeof(one));  // first in struct db_cpu
    sum.threads_full += one.threads_full;
    sum.kinds_full += one.kinds_full;
    sum.places_full += one.places_full;
    sum.records_lost += one.records_lost;
    sum.lost_longest_ns = std::max(sum.lost_longest_ns, one.lost_longest_ns);
    sum.sleeps_full += one.sleeps_full;
    sum.marks_unread += one.marks_unread;
    sum.unseen += one.unseen;
  }
  return sum;
}

namespace {

template <typename Key, typename Value>
std::vector<std::pair<Key, Value>> read_hash(const bpf_map* map) {
  std::vector<std::pair<Key, Value>> all;
  const int fd = bpf_map__fd(map);
  Key key{};
  for (int err = bpf_map_get_next_key(fd, nullptr, &key); !err;
       err = bpf_map_get_next_key(fd, &key, &key)) {
    Value value{};
    if (!bpf_map_lookup_elem(fd, &key, &value)) all.emplace_back(key, value);
  }
  return all;
}

}  // namespace

std::vector<std::pair<db_slept_key, db_slept>> DeboxSide::sleeps() const {
  return read_hash<db_slept_key, db_slept>(impl_->skeleton->maps.db_sleeps);
}

std::vector<std::pair<db_waker_key, db_woken>> DeboxSide::wakers() const {
  return read_hash<db_waker_key, db_woken>(impl_->skeleton->maps.db_wakers);
}

std::map<uint32_t, uint64_t> DeboxSide::places() const {
  std::map<uint32_t, uint64_t> places;
  for (const auto& [address, number] :
       read_hash<uint64_t, uint32_t>(impl_->skeleton->maps.db_places))
    places[number] = address;
  return places;
}

uint32_t DeboxSide::places_there() const {
  return *static_cast<const volatile uint32_t*>(&impl_->skeleton->bss->db_places_there);
}

RunningShare DeboxSide::cost() const {
  const auto& progs = impl_->skeleton->progs;
  std::vector<int> programs;
  for (const bpf_program* program :
       {progs.db_enter, progs.db_exit, progs.db_signal, progs.db_sched_switch,
        progs.db_sched_waking, progs.db_minor_fault, progs.db_major_fault, progs.db_fork,
        progs.db_exec, progs.db_exit_thread, progs.db_function_begins, progs.db_function_ends,
        progs.db_trace_sample})
    if (bpf_program__fd(program) >= 0) programs.push_back(bpf_program__fd(program));
  for (const Fd& program : impl_->trace.programs()) programs.push_back(program.get());
  return {std::move(programs), measure_overhead(progs.db_empty)};
}

DeboxMemory DeboxSide::memory() const {
  const debox_bpf& s = *impl_->skeleton;
  const auto offset = [&s](const void* of) {
    return static_cast<uint64_t>(static_cast<const char*>(of) -
                                 reinterpret_cast<const char*>(s.bss));
  };
  return {.memory = bpf_map__fd(s.maps.bss),
          .areas = bpf_map__fd(s.maps.db_areas),
          .tids = offset(s.bss->db_tids),
          .threads = offset(s.bss->db_threads),
          .done = offset(s.bss->db_done)};
}

int DeboxSide::records_fd() const {
  return ring_buffer__epoll_fd(impl_->ring.get());
}

DeboxSide::DeboxSide(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
DeboxSide::DeboxSide(DeboxSide&&) noexcept = default;
DeboxSide& DeboxSide::operator=(DeboxSide&&) noexcept = default;
DeboxSide::~DeboxSide() = default;

}  // namespace pkprof
