// SPDX-License-Identifier: Apache-2.0
#include "kernel/kernel_tables.h"

#include <bpf/bpf.h>
#include <time.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "base/clock.h"
#include "kernel/call_counting.h"
#include "kernel/object/kernel_object.h"
#include "kernel/object/read_table.h"
#include "kernel/sampling_clocks.h"

namespace pkprof {
namespace {

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

size_t depth_of(const pk_stack& stack) {
  return std::min<size_t>(static_cast<uint32_t>(stack.depth), PK_MAX_DEPTH);
}

// Before samples come.
constexpr auto side_by_side = std::launch::async | std::launch::deferred;

}  // namespace

TableRoom table_room(const KernelSideOptions& options, uint32_t cpus) {
  constexpr uint64_t least = 16384;
  constexpr uint64_t least_measured = 65536;  // a row for each task that ran, sampled or not
  constexpr uint64_t most = 262144;
  constexpr uint32_t most_stacks_held = 65536;
  if (options.held || options.calls.any()) return {.counts = most, .stacks = most_stacks_held};
  const auto entries = static_cast<uint32_t>(std::bit_ceil(
      std::clamp(2 * options.frequency_hz * cpus, options.measure ? least_measured : least, most)));
  return {.counts = entries, .stacks = entries};
}

Result<> KernelTables::make() {
  const TableRoom room = table_room(object_.options, object_.cpus);
  auto counts = TablePair::make(
      {.name = "counts", .key = sizeof(pk_key), .value = sizeof(pk_count), .entries = room.counts});
  if (!counts) return std::unexpected(counts.error());
  auto stacks = TablePair::make({.name = "stacks",
                                 .key = sizeof(uint64_t),
                                 .value = sizeof(pk_stack),
                                 .entries = room.stacks});
  if (!stacks) return std::unexpected(stacks.error());
  use_pinned(std::move(*counts), std::move(*stacks));
  return {};
}

void KernelTables::use_pinned(TablePair counts, TablePair stacks) {
  counts_ = std::move(counts);
  stacks_ = std::move(stacks);
}

// What is not made at once is to be warmed, both tables of a kind.
Result<> KernelTables::put_in_use() {
  return use_both(counts_.is_made_at_once() && stacks_.is_made_at_once() ? 0 : 1, side_by_side);
}

Result<> KernelTables::use_both(int which, std::launch stacks_update) {
  auto second = std::async(stacks_update, [&] { return stacks_.use(which); });
  const auto first = counts_.use(which);
  const auto last = second.get();
  return first ? last : first;
}

// Where it cannot be run, a few stacks are lost and counted.
Result<> KernelTables::warm() {
  object_.run_everywhere(object_.skeleton->progs.pk_warm);
  if (counts_.used() == 0) return {};
  if (auto r = use(0, side_by_side); !r) return r;
  object_.run_everywhere(object_.skeleton->progs.pk_warm);
  return {};
}

// Each update waits until no program sees the old table any more. While samples come, the counts
// go first: a stack is stored before it is counted, so none is counted in a table that is read
// before its stack is. Before that, the two updates may go side by side.
Result<> KernelTables::use(int which, std::launch stacks_update, uint32_t rows) {
  object_.skeleton->bss->rows = rows;
  object_.skeleton->bss->stored_stacks = 0;
  return use_both(which, stacks_update);
}

Result<> KernelTables::use_other_counts() {
  object_.skeleton->bss->rows = 0;
  return counts_.use(counts_.unused());
}

// The stacks of the table that is left are there until the next time.
Result<> KernelTables::use_other_stacks() {
  const int which = stacks_.unused();
  const auto forget = [](uint64_t, const pk_stack&) {};
  if (auto r =
          read_table<uint64_t, pk_stack>(stacks_.fd(which), stacks_.entries(), Keep::no, forget);
      !r)
    return r;
  if (auto r = stacks_.use(which); !r) return r;
  object_.skeleton->bss->stored_stacks = 0;
  return {};
}

CountedStack KernelTables::stack(uint64_t number) const {
  pk_stack stack;
  for (const int which : {stacks_.used(), stacks_.unused()}) {
    if (bpf_map_lookup_elem(stacks_.fd(which), &number, &stack)) continue;
    const uint64_t end = std::min<uint64_t>(stack.depth >> PK_STACK_END_SHIFT, PK_STACK_ENDS - 1);
    return {{stack.ip, stack.ip + depth_of(stack)}, static_cast<pk_stack_end>(end)};
  }
  return {};
}

Result<> KernelTables::read_counts(int which, Keep keep, Tables& out) {
  return read_table<pk_key, pk_count>(
      counts_.fd(which), counts_.entries(), keep,
      [&out](const pk_key& key, const pk_count& count) { out.counts.emplace_back(key, count); });
}

Result<> KernelTables::read_counts_and_stacks(int which, Keep keep, Tables& out) {
  if (auto r = read_counts(which, keep, out); !r) return r;
  // Most are far from as long as they may be.
  return read_table<uint64_t, pk_stack>(
      stacks_.fd(which), stacks_.entries(), keep, [&out](uint64_t number, const pk_stack& stack) {
        out.stacks.emplace_back(number,
                                std::vector<uint64_t>(stack.ip, stack.ip + depth_of(stack)));
      });
}

Result<> KernelTables::read_labels_and_votes(Keep keep, Tables& out) {
  const auto& maps = object_.skeleton->maps;
  if (auto r = read_table(maps.labels, keep, out.labels); !r) return r;
  return read_table(maps.votes, keep, out.votes);
}

Result<Tables> KernelTables::take() {
  Tables out;
  if (clocks_.enabled()) object_.measure_now();
  const uint64_t taken = monotonic_ns();
  out.taken = clocks_.at(taken);
  out.watched_ns = clocks_.watched_ns(taken);
  out.idle_ns = clocks_.idle_tail(taken);
  if (auto r = use_other_counts(); !r) return std::unexpected(r.error());
  if (auto r = read_counts(counts_.unused(), Keep::no, out); !r) return std::unexpected(r.error());
  if (object_.skeleton->bss->stored_stacks > stacks_.entries() / 2)
    if (auto r = use_other_stacks(); !r) return std::unexpected(r.error());
  if (auto r = read_labels_and_votes(Keep::no, out); !r) return std::unexpected(r.error());
  calls_.take(out);
  if (const uint64_t ns = clocks_.take_idle_before())
    out.counts.emplace_back(idle_row(), pk_count{ns, 0});
  object_.skeleton->bss->epoch = object_.skeleton->bss->epoch + 1;
  return out;
}

Result<Tables> KernelTables::snapshot() {
  Tables out;
  const int old = counts_.used();
  if (auto r = read_counts_and_stacks(counts_.unused(), Keep::yes, out); !r)
    return std::unexpected(r.error());
  if (clocks_.ended()) {
    out.taken = clocks_.ended();
    out.idle_ns = clocks_.idle_tail(out.taken);
  } else {
    const auto rows = static_cast<uint32_t>(out.counts.size());
    // The tables are changed at once; that nobody sees the old ones any more takes a while.
    object_.find_idle_cpus();
    out.taken = monotonic_ns();
    // At once: what a CPU that wakes says of its sleep goes into the next tables.
    out.idle_ns = clocks_.idle_tail(out.taken);
    if (auto r = use(1 - old, std::launch::deferred, rows); !r) return std::unexpected(r.error());
  }
  if (auto r = read_counts_and_stacks(old, Keep::yes, out); !r) return std::unexpected(r.error());
  if (auto r = read_labels_and_votes(Keep::yes, out); !r) return std::unexpected(r.error());
  return out;
}

// Names of those who ended, which may yet be charged, are kept as long as there is much room.
Result<> KernelTables::forget_labels() {
  const bpf_map* map = object_.skeleton->maps.labels;
  std::vector<std::pair<uint64_t, pk_label>> labels;
  if (auto r = read_table(map, Keep::yes, labels); !r) return r;
  if (labels.size() < bpf_map__max_entries(map) / 2) return {};
  labels.clear();
  if (auto r = read_table(map, Keep::no, labels); !r) return r;
  object_.skeleton->bss->epoch = object_.skeleton->bss->epoch + 1;  // they are to be told anew
  return {};
}

// A CPU has as long as two samples last to put its exact time into the tables that go; one that is
// idle has none to speak of. Counting begins before the new tables are used, so that nothing in
// them is older.
Result<> KernelTables::reset() {
  auto* bss = object_.skeleton->bss;
  const int old = counts_.used();
  Tables gone;
  if (auto r = read_counts_and_stacks(1 - old, Keep::no, gone); !r) return r;
  bss->epoch = bss->epoch + 1;
  const uint64_t wait_ns = 2 * bss->period;
  const timespec wait{static_cast<time_t>(wait_ns / 1'000'000'000),
                      static_cast<long>(wait_ns % 1'000'000'000)};
  nanosleep(&wait, nullptr);
  for (pk_cpu& cpu : object_.per_cpu()) cpu.sampler.idle_time = 0;
  object_.find_idle_cpus();
  clocks_.begin_anew(monotonic_ns());
  if (auto r = use(1 - old, std::launch::deferred); !r) return r;
  static_cast<void>(take_leftovers());
  for (pk_cpu& cpu : object_.per_cpu()) {
    if (static_cast<int64_t>(cpu.irq.ns) > 0) cpu.irq.ns = 0;  // of a sample that will not come
    cpu.sampler.carried_ns = 0;
  }
  if (auto r = read_counts_and_stacks(old, Keep::no, gone); !r) return r;
  return forget_labels();
}

Leftovers KernelTables::read_leftovers(Keep keep) const {
  Leftovers left;
  const auto clear = [keep](auto& what) {
    if (keep == Keep::no) what = 0;
  };
  for (pk_slot& slot : object_.skeleton->bss->slots) {
    if (!slot.used) continue;
    with_lock(slot.lock, [&] {
      for (uint32_t i = 0; i < slot.used && i < PK_SLOT_CHARGES; ++i)
        left.slots.emplace_back(slot.object, slot.charge[i]);
      clear(slot.used);
    });
  }
  const auto read_exact = [&](pk_exact& row) {
    if (row.count) left.exact.push_back(row);
    clear(row.ns);  // its next use counts on from there
    clear(row.count);
  };
  for (pk_cpu& cpu : object_.per_cpu()) {
    for (pk_exact& row : cpu.measure.exact) read_exact(row);
    read_exact(cpu.measure.softirq);
    for (pk_pending& pending : cpu.votes.pending) {
      if (pending.vote.weight) left.votes.emplace_back(pending.key, pending.vote);
      clear(pending.vote.weight);
    }
    if (cpu.hot.armed) left.waiting.push_back(cpu.wait.charge);
    clear(cpu.hot.armed);
  }
  return left;
}

Leftovers KernelTables::take_leftovers() {
  return read_leftovers(Keep::no);
}

Leftovers KernelTables::snapshot_leftovers() {
  return read_leftovers(Keep::yes);
}

uint32_t KernelTables::rows() const {
  return object_.skeleton->bss->rows;
}

}  // namespace pkprof
