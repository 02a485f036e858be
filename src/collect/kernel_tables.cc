// SPDX-License-Identifier: Apache-2.0
// KernelSide: what was counted.
#include <bpf/bpf.h>

#include <algorithm>

#include "collect/clock.h"
#include "collect/kernel_side_impl.h"

namespace pkprof {
namespace {

// Reads a hash table whole and empties it; `take` gets keys and values.
template <typename K, typename V, typename Take>
Result<> drain_table(int fd, uint32_t capacity, Take take) {
  constexpr uint32_t batch = 1024;
  std::vector<K> keys(batch);
  std::vector<V> values(batch);
  uint64_t position[8] = {};  // opaque to us
  void* in = nullptr;
  for (uint32_t rounds = 0; rounds <= capacity; ++rounds) {
    uint32_t count = batch;
    const int err = bpf_map_lookup_and_delete_batch(fd, in, position, keys.data(), values.data(),
                                                    &count, nullptr);
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
Result<> drain_table(int fd, uint32_t capacity, std::vector<std::pair<K, V>>& out) {
  return drain_table<K, V>(fd, capacity, [&](const K& k, const V& v) { out.emplace_back(k, v); });
}

}  // namespace

// Each update waits until no program sees the old table any more. While samples come, the counts
// go first: a stack is stored before it is counted, so none is counted in a table that is read
// before its stack is. Before that, the two updates may go side by side.
Result<> KernelSide::Impl::use_tables(int which, std::launch stacks_update) {
  const auto use = [](const bpf_map* outer, const Fd& inner) {
    const uint32_t zero = 0;
    const int fd = inner.get();
    return bpf_map_update_elem(bpf_map__fd(outer), &zero, &fd, BPF_ANY) ? errno : 0;
  };
  auto second =
      std::async(stacks_update, [&] { return use(skeleton->maps.stacks, stacks[which]); });
  const int counts_error = use(skeleton->maps.counts, counts[which]);
  const int stacks_error = second.get();
  if (const int error = counts_error ? counts_error : stacks_error)
    return fail_errno("giving the kernel side its tables", error);
  active = which;
  return {};
}

Result<KernelSide::Tables> KernelSide::take() {
  Impl& m = *impl_;
  Tables out;
  const int old = m.active;
  if (m.skeleton->bss->started) measure_now();
  out.taken = monotonic_ns();
  if (auto r = m.use_tables(1 - old, std::launch::deferred); !r) return std::unexpected(r.error());
  const uint32_t n = m.options.table_entries;
  if (auto r = drain_table(m.counts[old].get(), n, out.counts); !r)
    return std::unexpected(r.error());
  // Most are far from as long as they may be.
  const auto take_stack = [&out](uint64_t number, const pk_stack& stack) {
    const size_t depth = std::min<size_t>(stack.depth, PK_MAX_DEPTH);
    out.stacks.emplace_back(number, std::vector<uint64_t>(stack.ip, stack.ip + depth));
  };
  if (auto r = drain_table<uint64_t, pk_stack>(m.stacks[old].get(), n, take_stack); !r)
    return std::unexpected(r.error());
  if (auto r = drain_table(bpf_map__fd(m.skeleton->maps.labels), 65536, out.labels); !r)
    return std::unexpected(r.error());
  if (auto r = drain_table(bpf_map__fd(m.skeleton->maps.votes), 65536, out.votes); !r)
    return std::unexpected(r.error());
  m.skeleton->bss->epoch = m.skeleton->bss->epoch + 1;
  return out;
}

std::vector<std::pair<uint64_t, pk_charge>> KernelSide::take_slots() {
  std::vector<std::pair<uint64_t, pk_charge>> out;
  for (pk_slot& slot : impl_->skeleton->bss->slots) {
    for (uint32_t i = 0; i < slot.used && i < PK_SLOT_CHARGES; ++i)
      out.emplace_back(slot.object, slot.charge[i]);
    slot.used = 0;
  }
  return out;
}

std::vector<pk_exact> KernelSide::take_exact() {
  std::vector<pk_exact> out;
  const auto take = [&out](pk_exact& row) {
    if (row.count) out.push_back(row);
    row.count = 0;
  };
  for (auto& cpu : impl_->skeleton->bss->cpus) {
    for (pk_exact& row : cpu.exact) take(row);
    take(cpu.softirq);
  }
  return out;
}

std::vector<std::pair<pk_vote_key, pk_vote>> KernelSide::take_votes() {
  std::vector<std::pair<pk_vote_key, pk_vote>> out;
  for (auto& cpu : impl_->skeleton->bss->cpus)
    for (int level = 0; level < PK_LEVELS; ++level) {
      if (cpu.vote[level].weight) out.emplace_back(cpu.vote_key[level], cpu.vote[level]);
      cpu.vote[level].weight = 0;
    }
  return out;
}

std::vector<pk_charge> KernelSide::take_waiting() {
  std::vector<pk_charge> out;
  for (auto& cpu : impl_->skeleton->bss->cpus) {
    if (cpu.armed) out.push_back(cpu.charge);
    cpu.armed = 0;
  }
  return out;
}

uint64_t KernelSide::idle_tail(uint64_t stopped) const {
  constexpr uint64_t gap = 10'000'000;  // as PK_GAP_NS of the sampler: a busy CPU has ticks
  const auto* bss = impl_->skeleton->bss;
  uint64_t idle = 0;
  for (const uint32_t cpu : impl_->sampled) {
    const uint64_t last = bss->cpus[cpu].last_ns ? bss->cpus[cpu].last_ns : impl_->started;
    const uint64_t tail = stopped > last ? stopped - last : 0;
    const bool was_idle = tail > gap || (bss->cpus[cpu].idle && tail > 2 * bss->period);
    // Below zero while an interrupt goes on, of which a part is off the last sample already.
    const auto counted = static_cast<int64_t>(bss->cpus[cpu].irq_ns);
    if (was_idle)
      idle += tail - std::min(tail, static_cast<uint64_t>(std::max<int64_t>(counted, 0)));
  }
  return idle;
}

uint64_t KernelSide::owner_of(uint64_t object) const {
  uint64_t label = 0;
  if (bpf_map_lookup_elem(bpf_map__fd(impl_->skeleton->maps.owners), &object, &label)) return 0;
  return label;
}

pk_stats KernelSide::stats() const {
  pk_stats sum{};
  for (const auto& cpu : impl_->skeleton->bss->cpus) {
    const auto* from = reinterpret_cast<const uint64_t*>(&cpu.stats);
    auto* to = reinterpret_cast<uint64_t*>(&sum);
    for (size_t i = 0; i < sizeof(sum) / sizeof(uint64_t); ++i) to[i] += from[i];
  }
  return sum;
}

double KernelSide::sample_ns() const {
  const pk_stats s = stats();
  return s.timed ? static_cast<double>(s.timed_ns) / static_cast<double>(s.timed) : 0;
}

std::vector<uint64_t> KernelSide::hook_runs(HookGroup group) const {
  std::vector<uint64_t> runs(impl_->cpus);
  for (uint32_t i = 0; i < impl_->cpus; ++i) {
    const auto& cpu = impl_->skeleton->bss->cpus[i];
    runs[i] = group == HookGroup::work         ? cpu.hits
              : group == HookGroup::interrupts ? cpu.irq_hits
                                               : cpu.rare_hits;
  }
  return runs;
}

}  // namespace pkprof
