// SPDX-License-Identifier: Apache-2.0
// KernelSide: what was counted.
#include <bpf/bpf.h>
#include <time.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "kernel/kernel_side_impl.h"

namespace pkprof {
namespace {

enum class Keep : bool { no, yes };

// Reads a hash table whole and, unless it is to be kept, empties it; `take` gets keys and values.
template <typename K, typename V, typename Take>
Result<> read_table(int fd, uint32_t capacity, Keep keep, Take take) {
  const auto read = keep == Keep::yes ? bpf_map_lookup_batch : bpf_map_lookup_and_delete_batch;
  constexpr uint32_t batch = 1024;
  std::vector<K> keys(batch);
  std::vector<V> values(batch);
  uint64_t position[8] = {};  // opaque to us
  void* in = nullptr;
  for (uint32_t rounds = 0; rounds <= capacity; ++rounds) {
    uint32_t count = batch;
    const int err = read(fd, in, position, keys.data(), values.data(), &count, nullptr);
    const int error = err ? errno : 0;
    if (error && error != ENOENT) {
      if (error == ENOSPC && keys.size() < capacity) {  // one bucket is larger than the batch
        keys.resize(keys.size() * 2);
        values.resize(values.size() * 2);
        continue;
      }
      return fail_errno("reading a table of the kernel side", error);
    }
    for (uint32_t i = 0; i < count; ++i) take(keys[i], values[i]);
    if (error == ENOENT) return {};
    in = position;
  }
  return {};
}

template <typename K, typename V>
Result<> read_table(int fd, uint32_t capacity, Keep keep, std::vector<std::pair<K, V>>& out) {
  return read_table<K, V>(fd, capacity, keep,
                          [&](const K& k, const V& v) { out.emplace_back(k, v); });
}

Result<> read_counts_and_stacks(const Fd& counts, const Fd& stacks, KernelSide::Room room,
                                Keep keep, KernelSide::Tables& out) {
  if (auto r = read_table(counts.get(), room.counts, keep, out.counts); !r) return r;
  // Most are far from as long as they may be.
  return read_table<uint64_t, pk_stack>(
      stacks.get(), room.stacks, keep, [&out](uint64_t number, const pk_stack& stack) {
        const size_t depth = std::min<size_t>(stack.depth, PK_MAX_DEPTH);
        out.stacks.emplace_back(number, std::vector<uint64_t>(stack.ip, stack.ip + depth));
      });
}

Result<> read_labels_and_votes(const pkprof_bpf& skeleton, Keep keep, KernelSide::Tables& out) {
  const auto read = [keep](const bpf_map* map, auto& to) {
    return read_table(bpf_map__fd(map), bpf_map__max_entries(map), keep, to);
  };
  if (auto r = read(skeleton.maps.labels, out.labels); !r) return r;
  return read(skeleton.maps.votes, out.votes);
}

// As the sampler counts idle time.
pk_key idle_row() {
  pk_key key{};
  key.ran_on = PK_IDLE;
  key.served = PK_IDLE;
  key.syscall = PK_NO_SYSCALL;
  key.kind = PK_IDLING;
  key.vec = PK_VEC_NONE;
  key.basis = PK_BASIS_OWN;
  return key;
}

}  // namespace

// Each update waits until no program sees the old table any more. While samples come, the counts
// go first: a stack is stored before it is counted, so none is counted in a table that is read
// before its stack is. Before that, the two updates may go side by side.
Result<> KernelSide::Impl::use_tables(int which, std::launch stacks_update, uint32_t rows) {
  skeleton->bss->rows = rows;
  skeleton->bss->stored_stacks = 0;
  return put_in_use(which, stacks_update);
}

Result<> KernelSide::Impl::put_in_use(int which, std::launch stacks_update) {
  const auto use = [](const Fd& outer, const Fd& inner) {
    const uint32_t zero = 0;
    const int fd = inner.get();
    return bpf_map_update_elem(outer.get(), &zero, &fd, BPF_ANY) ? errno : 0;
  };
  auto second = std::async(stacks_update, [&] { return use(stacks_in_use, stacks[which]); });
  const int counts_error = use(counts_in_use, counts[which]);
  const int stacks_error = second.get();
  if (const int error = counts_error ? counts_error : stacks_error)
    return fail_errno("giving the kernel side its tables", error);
  active = active_stacks = which;
  return {};
}

Result<> KernelSide::Impl::use_counts(int which) {
  skeleton->bss->rows = 0;
  const uint32_t zero = 0;
  const int fd = counts[which].get();
  if (bpf_map_update_elem(counts_in_use.get(), &zero, &fd, BPF_ANY))
    return fail_errno("giving the kernel side its table of counts");
  active = which;
  return {};
}

// The stacks of the table that is left are there until the next time.
Result<> KernelSide::Impl::use_other_stacks() {
  const int which = 1 - active_stacks;
  const auto forget = [](uint64_t, const pk_stack&) {};
  if (auto r = read_table<uint64_t, pk_stack>(stacks[which].get(), room.stacks, Keep::no, forget);
      !r)
    return r;
  const uint32_t zero = 0;
  const int fd = stacks[which].get();
  if (bpf_map_update_elem(stacks_in_use.get(), &zero, &fd, BPF_ANY))
    return fail_errno("giving the kernel side its table of stacks");
  active_stacks = which;
  skeleton->bss->stored_stacks = 0;
  return {};
}

std::vector<uint64_t> KernelSide::stack(uint64_t number) const {
  const Impl& m = *impl_;
  pk_stack stack;
  for (const int which : {m.active_stacks, 1 - m.active_stacks}) {
    if (bpf_map_lookup_elem(m.stacks[which].get(), &number, &stack)) continue;
    return {stack.ip, stack.ip + std::min<size_t>(stack.depth, PK_MAX_DEPTH)};
  }
  return {};
}

Result<KernelSide::Tables> KernelSide::take() {
  Impl& m = *impl_;
  Tables out;
  const int old = m.active;
  if (enabled()) measure_now();
  const uint64_t taken = monotonic_ns();
  out.taken = m.time.at(taken);
  out.watched_ns = watched_ns(taken);
  out.idle_ns = m.idle_tail(taken);
  if (auto r = m.use_counts(1 - old); !r) return std::unexpected(r.error());
  if (auto r = read_table(m.counts[old].get(), m.room.counts, Keep::no, out.counts); !r)
    return std::unexpected(r.error());
  if (m.skeleton->bss->stored_stacks > m.room.stacks / 2)
    if (auto r = m.use_other_stacks(); !r) return std::unexpected(r.error());
  if (auto r = read_labels_and_votes(*m.skeleton, Keep::no, out); !r)
    return std::unexpected(r.error());
  m.take_calls(out);
  if (const uint64_t ns = std::exchange(m.idle_before_ns, 0))
    out.counts.emplace_back(idle_row(), pk_count{ns, 0});
  m.skeleton->bss->epoch = m.skeleton->bss->epoch + 1;
  return out;
}

Result<KernelSide::Tables> KernelSide::look() {
  Impl& m = *impl_;
  Tables out;
  const int old = m.active;
  const auto read_counts = [&](int which) {
    return read_counts_and_stacks(m.counts[which], m.stacks[which], m.room, Keep::yes, out);
  };
  if (auto r = read_counts(1 - old); !r) return std::unexpected(r.error());
  if (stopped()) {
    out.taken = stopped();
    out.idle_ns = m.idle_tail(out.taken);
  } else {
    const auto rows = static_cast<uint32_t>(out.counts.size());
    // The tables are changed at once; that nobody sees the old ones any more takes a while.
    m.look_at_cpus();
    out.taken = monotonic_ns();
    // At once: what a CPU that wakes says of its sleep goes into the next tables.
    out.idle_ns = m.idle_tail(out.taken);
    if (auto r = m.use_tables(1 - old, std::launch::deferred, rows); !r)
      return std::unexpected(r.error());
  }
  if (auto r = read_counts(old); !r) return std::unexpected(r.error());
  if (auto r = read_labels_and_votes(*m.skeleton, Keep::yes, out); !r)
    return std::unexpected(r.error());
  return out;
}

namespace {

// Names of those who ended, which may yet be charged, are kept as long as there is much room.
Result<> forget_labels(pkprof_bpf& skeleton) {
  const bpf_map* map = skeleton.maps.labels;
  const uint32_t room = bpf_map__max_entries(map);
  std::vector<std::pair<uint64_t, pk_label>> labels;
  if (auto r = read_table(bpf_map__fd(map), room, Keep::yes, labels); !r) return r;
  if (labels.size() < room / 2) return {};
  labels.clear();
  if (auto r = read_table(bpf_map__fd(map), room, Keep::no, labels); !r) return r;
  skeleton.bss->epoch = skeleton.bss->epoch + 1;  // they are to be told anew
  return {};
}

}  // namespace

// A CPU has as long as two samples last to put its exact time into the tables that go; one that is
// idle has none to speak of. Counting begins before the new tables are used, so that nothing in
// them is older.
Result<> KernelSide::reset() {
  Impl& m = *impl_;
  auto* bss = m.skeleton->bss;
  const int old = m.active;
  Tables gone;
  if (auto r = read_counts_and_stacks(m.counts[1 - old], m.stacks[1 - old], m.room, Keep::no, gone);
      !r)
    return r;
  bss->epoch = bss->epoch + 1;
  const uint64_t wait_ns = 2 * bss->period;
  const timespec wait{static_cast<time_t>(wait_ns / 1'000'000'000),
                      static_cast<long>(wait_ns % 1'000'000'000)};
  nanosleep(&wait, nullptr);
  for (pk_cpu& cpu : m.per_cpu()) cpu.idle_time = 0;
  m.look_at_cpus();
  bss->started = m.started = monotonic_ns();
  if (auto r = m.use_tables(1 - old, std::launch::deferred); !r) return r;
  static_cast<void>(take_rest());
  for (pk_cpu& cpu : m.per_cpu()) {
    if (static_cast<int64_t>(cpu.irq_ns) > 0) cpu.irq_ns = 0;  // of a sample that will not come
    cpu.carried_ns = 0;
  }
  if (auto r = read_counts_and_stacks(m.counts[old], m.stacks[old], m.room, Keep::no, gone); !r)
    return r;
  return forget_labels(*m.skeleton);
}

KernelSide::Rest KernelSide::Impl::read_rest(bool keep) const {
  Rest rest;
  const auto clear = [keep](auto& what) {
    if (!keep) what = 0;
  };
  for (pk_slot& slot : skeleton->bss->slots) {
    if (!slot.used) continue;
    with_lock(slot.lock, [&] {
      for (uint32_t i = 0; i < slot.used && i < PK_SLOT_CHARGES; ++i)
        rest.slots.emplace_back(slot.object, slot.charge[i]);
      clear(slot.used);
    });
  }
  const auto read_exact = [&](pk_exact& row) {
    if (row.count) rest.exact.push_back(row);
    clear(row.ns);  // its next use counts on from there
    clear(row.count);
  };
  for (auto& cpu : per_cpu()) {
    for (pk_exact& row : cpu.exact) read_exact(row);
    read_exact(cpu.softirq);
    for (pk_pending& pending : cpu.pending) {
      if (pending.vote.weight) rest.votes.emplace_back(pending.key, pending.vote);
      clear(pending.vote.weight);
    }
    if (cpu.armed) rest.waiting.push_back(cpu.charge);
    clear(cpu.armed);
  }
  return rest;
}

// What a CPU names by its address, and who holds a socket: both may have changed unseen. Notes
// hold: each names what it is of so that nothing else is taken for it.
Result<> KernelSide::Impl::forget_work() {
  for (pk_cpu& cpu : per_cpu()) {
    cpu.skb = 0;
    cpu.from = 0;
    cpu.sk = 0;
    cpu.tx_sk = 0;
    cpu.sent = 0;
    cpu.sender = 0;
    cpu.hrtimer = 0;
    cpu.expiring = 0;
    cpu.irq_since = 0;
    cpu.irq_timer = 0;
    cpu.softirq_since = 0;
    cpu.done = 0;
    cpu.sent_on = 0;
  }
  std::vector<std::pair<uint64_t, uint64_t>> owners;
  const bpf_map* map = skeleton->maps.owners;
  return read_table(bpf_map__fd(map), bpf_map__max_entries(map), Keep::no, owners);
}

KernelSide::Rest KernelSide::take_rest() {
  return impl_->read_rest(false);
}

KernelSide::Rest KernelSide::look_at_rest() {
  return impl_->read_rest(true);
}

// Of a CPU that has gone offline, up to then.
uint64_t KernelSide::Impl::idle_tail_of(uint32_t cpu, uint64_t stopped) const {
  constexpr uint64_t gap = 10'000'000;  // as PK_GAP_NS of the sampler: a busy CPU has ticks
  const auto* bss = skeleton->bss;
  const pk_cpu& c = bss->cpus[cpu];
  const uint64_t last = std::max<uint64_t>(c.last_ns, started);
  const uint64_t end = c.gone == c.opened ? stopped : std::min<uint64_t>(stopped, c.gone_since);
  const uint64_t tail = end > last ? end - last : 0;
  const bool was_idle = tail > 2 * bss->period && (tail > gap || c.idle);
  // Below zero while an interrupt goes on, of which a part is off the last sample already.
  const auto counted = static_cast<int64_t>(c.irq_ns);
  if (!was_idle) return 0;
  return tail - std::min(tail, static_cast<uint64_t>(std::max<int64_t>(counted, 0)));
}

uint64_t KernelSide::Impl::idle_tail(uint64_t stopped) const {
  uint64_t idle = 0;
  for (const uint32_t cpu : sampled) idle += idle_tail_of(cpu, stopped);
  return idle;
}

int KernelSide::mapped() const {
  return bpf_map__fd(impl_->skeleton->maps.mapped);
}

uint64_t KernelSide::owner_of(uint64_t object) const {
  uint64_t label = 0;
  if (bpf_map_lookup_elem(bpf_map__fd(impl_->skeleton->maps.owners), &object, &label)) return 0;
  return label;
}

pk_stats KernelSide::stats() const {
  pk_stats sum{};
  for (const auto& cpu : impl_->per_cpu()) {
    const auto* from = reinterpret_cast<const uint64_t*>(&cpu.stats);
    auto* to = reinterpret_cast<uint64_t*>(&sum);
    for (size_t i = 0; i < sizeof(sum) / sizeof(uint64_t); ++i) to[i] += from[i];
  }
  return sum;
}

double clock_ns(const pk_stats& stats) {
  if (!stats.clock_interrupts) return 0;
  return static_cast<double>(stats.clock_ns) / static_cast<double>(stats.clock_interrupts) *
         static_cast<double>(stats.samples);
}

std::vector<uint64_t> KernelSide::taken_in_vain() const {
  std::vector<uint64_t> all;
  for (const auto& cpu : impl_->per_cpu()) all.push_back(cpu.stats.taken_in_vain);
  return all;
}

std::vector<double> KernelSide::clock_ns() const {
  std::vector<double> all;
  for (const auto& cpu : impl_->per_cpu()) all.push_back(pkprof::clock_ns(cpu.stats));
  return all;
}

std::map<std::string, uint64_t> kernel_counters(const pk_stats& stats) {
  // Old words on a stack may be taken for frames, once in 20,000 samples or so, and one may be
  // found among those that are compared by chance: that is no news.
  const bool news = stats.unwound_wrong > 1 + stats.samples / (PK_UNWIND_CHECK * UINT64_C(1000));
  return {
      {"kernel stacks lost", stats.no_kstack},
      {"kernel stacks with a frame too many or too few, about",
       news ? stats.unwound_wrong * PK_UNWIND_CHECK : 0},
      {"user stacks lost", stats.no_ustack},
      {"mappings of processes not told", stats.mappings_lost},
      {"stacks without room", stats.stacks_full},
      {"samples without a stack for want of rows", stats.rows_shortened},
      {"labels without room", stats.labels_full},
      {"votes without room", stats.votes_full},
      {"calls without room", stats.calls_lost},
      {"calls without their caller for want of rows", stats.calls_shortened},
      {"calls in softirqs that could not wait, shared by votes", stats.calls_voted},
  };
}

std::vector<uint64_t> KernelSide::hook_runs(HookGroup group) const {
  std::vector<uint64_t> runs(impl_->cpus);
  for (uint32_t i = 0; i < impl_->cpus; ++i) {
    const auto& cpu = impl_->skeleton->bss->cpus[i];
    runs[i] = group == HookGroup::work         ? cpu.hits
              : group == HookGroup::disks      ? cpu.disk_hits
              : group == HookGroup::interrupts ? cpu.irq_hits
              : group == HookGroup::measure    ? cpu.measure_hits
              : group == HookGroup::calls      ? cpu.stats.calls
                                               : cpu.rare_hits;
  }
  return runs;
}

}  // namespace pkprof
