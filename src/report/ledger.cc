// SPDX-License-Identifier: Apache-2.0
// Samples are first summed into cells (ran-on, served, source, basis, client; by thread if so asked
// for), of which there are few; rows, totals and flows are then sums of cells.
#include "report/ledger.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "model/hash.h"
#include "model/source.h"

namespace pkprof {

namespace {

struct Cell {
  LabelId ran_on;
  LabelId served;
  StringId source;
  Basis basis;
  uint32_t thread;  // as in SampleKey, or 0 when threads are not asked for
  uint32_t served_thread;
  LabelId client;  // for whom that was in the end; `served`, where it was no server's work
  uint64_t ns;
  [[nodiscard]] SampleKey sample_key() const {
    return {.ran_on = ran_on,
            .served = served,
            .source = source,
            .basis = basis,
            .thread = thread,
            .served_thread = served_thread};
  }
  [[nodiscard]] auto key() const {
    return std::tuple(ran_on, served, source, basis, thread, served_thread, client);
  }
};

// Clients are processes and addresses; a file may say otherwise.
LabelId client_of(const Profile& profile, const SampleKey& key) {
  const auto may_be = [&](LabelId id) {
    const LabelKind kind = profile.labels()[id].kind;
    return kind == LabelKind::process || kind == LabelKind::remote || kind == LabelKind::other;
  };
  if (key.client == 0 || !may_be(key.served)) return key.served;
  const LabelId client = profile.clients()[key.client].label;
  return may_be(client) ? client : key.served;
}

std::vector<Cell> cells_of(const Profile& profile, bool threads) {
  std::vector<Cell> cells;
  IndexTable index;
  for (const auto& [key, value] : profile.samples()) {
    if (profile.text(key.source) == counted_calls) continue;
    const Cell cell{key.ran_on,
                    key.served,
                    key.source,
                    key.basis,
                    threads ? key.thread : 0,
                    threads ? key.served_thread : 0,
                    client_of(profile, key),
                    value.ns};
    const uint64_t hash = hash_words(
        hash_seed(), {static_cast<uint64_t>(cell.ran_on) << 32 | cell.served,
                      static_cast<uint64_t>(cell.source) << 8 | static_cast<uint64_t>(cell.basis),
                      static_cast<uint64_t>(cell.thread) << 32 | cell.served_thread, cell.client});
    const uint32_t found =
        index.find(hash, [&](uint32_t i) { return cells[i].key() == cell.key(); });
    if (found != IndexTable::none) {
      cells[found].ns += cell.ns;
    } else {
      index.insert(hash, static_cast<uint32_t>(cells.size()));
      cells.push_back(cell);
    }
  }
  return cells;
}

class LedgerBuilder {
 public:
  LedgerBuilder(const Profile& profile, std::span<const uint32_t> pids, By by)
      : profile_(profile), pids_(pids), by_(by), groups_(profile, by, pids) {}

  Ledger run() {
    for (const Cell& cell : cells_of(profile_, by_ == By::thread)) {
      ledger_.sampled_ns += cell.ns;
      serve(cell);
      charge_to_client(cell);
      run_on(cell);
      flow(cell);
    }
    add_unsampled();
    ledger_.by = by_;
    ledger_.groups = groups_.all();
    sort();
    return std::move(ledger_);
  }

 private:
  // Null for labels that are not rows. Valid until another row is asked for.
  LedgerRow* row(LabelId id, uint32_t thread) {
    const uint32_t place = place_of_row(id, thread);
    return place == IndexTable::none ? nullptr : &ledger_.processes[place];
  }

  uint32_t place_of_row(LabelId id, uint32_t thread) {
    if (!is_selected(profile_.labels()[id], pids_)) return IndexTable::none;
    const GroupId group = groups_.of(id, thread);
    if (group >= row_of_.size()) row_of_.resize(group + 1, IndexTable::none);
    if (row_of_[group] == IndexTable::none) {
      row_of_[group] = static_cast<uint32_t>(ledger_.processes.size());
      ledger_.processes.push_back({.label = groups_.all()[group].label, .group = group});
    }
    return row_of_[group];
  }

  // Another was served: taken from the ran-on, unless the other is its fellow.
  void take(LedgerRow& from, const Cell& cell) {
    if (!is_taken(profile_, cell.sample_key())) return;
    const bool process = is_selected(profile_.labels()[cell.served], pids_);
    const bool fellow = process && groups_.of(cell.served, cell.served_thread) == from.group;
    (fellow ? from.within_ns : from.stolen_ns) += cell.ns;
  }

  void serve(const Cell& cell) {
    const Label& served = profile_.labels()[cell.served];
    const std::string& source = profile_.text(cell.source);
    if (LedgerRow* to = row(cell.served, cell.served_thread)) {
      switch (part_of(profile_, cell.sample_key())) {
        case Part::user:
          to->user_ns += cell.ns;
          break;
        case Part::own:
          to->own_ns += cell.ns;
          break;
        case Part::async:
          to->async_ns += cell.ns;
          break;
      }
      to->sources[source] += cell.ns;
      to->basis[static_cast<size_t>(cell.basis)] += cell.ns;
    } else if (served.kind == LabelKind::kernel) {
      ledger_.kernel_ns += cell.ns;
    } else if (served.kind == LabelKind::idle) {
      ledger_.idle_ns += cell.ns;
    } else if (served.kind == LabelKind::steal) {
      ledger_.steal_ns += cell.ns;
    } else if (served.kind == LabelKind::unclaimed) {
      ledger_.unclaimed[served.reason.empty() ? "unknown" : served.reason] += cell.ns;
    } else {
      ledger_.other_ns += cell.ns;
    }
  }

  // What is no row's is OTHER's, on either side.
  void charge_to_client(const Cell& cell) {
    if (cell.client == cell.served) return;
    ledger_.has_clients = true;
    const uint32_t server = place_of_row(cell.served, cell.served_thread);
    const uint32_t client = place_of_row(cell.client, 0);
    if (server == client) return;
    const bool of_row = server != IndexTable::none;
    const bool to_row = client != IndexTable::none;
    (of_row ? ledger_.processes[server].for_others_ns : ledger_.other_for_others_ns) += cell.ns;
    (to_row ? ledger_.processes[client].by_servers_ns : ledger_.other_by_servers_ns) += cell.ns;
  }

  void run_on(const Cell& cell) {
    const LabelKind kind = profile_.labels()[cell.ran_on].kind;
    if (LedgerRow* from = row(cell.ran_on, cell.thread)) {
      from->seems_ns += cell.ns;
      take(*from, cell);
    } else if (kind == LabelKind::idle) {
      ledger_.idle_seems_ns += cell.ns;
    } else if (kind == LabelKind::steal) {
      ledger_.steal_seems_ns += cell.ns;
    } else if (kind == LabelKind::kernel) {
      ledger_.kernel_seems_ns += cell.ns;
    } else {
      ledger_.other_seems_ns += cell.ns;
    }
  }

  void flow(const Cell& cell) {
    const bool keep = is_selected(profile_.labels()[cell.ran_on], pids_) ||
                      is_selected(profile_.labels()[cell.served], pids_);
    const Flow add{groups_.of(cell.ran_on, cell.thread, keep),
                   groups_.of(cell.served, cell.served_thread, keep), cell.source, cell.ns};
    const uint64_t hash =
        hash_words(hash_seed(), {static_cast<uint64_t>(add.ran_on) << 32 | add.served, add.source});
    const uint32_t found = flow_index_.find(hash, [&](uint32_t i) {
      const Flow& have = ledger_.flows[i];
      return have.ran_on == add.ran_on && have.served == add.served && have.source == add.source;
    });
    if (found != IndexTable::none) {
      ledger_.flows[found].ns += add.ns;
    } else {
      flow_index_.insert(hash, static_cast<uint32_t>(ledger_.flows.size()));
      ledger_.flows.push_back(add);
    }
  }

  void add_unsampled() {
    ledger_.cpu_ns = profile_.cpu_ns();
    if (ledger_.sampled_ns >= ledger_.cpu_ns) return;
    ledger_.unsampled_ns = ledger_.cpu_ns - ledger_.sampled_ns;
    ledger_.unclaimed["unsampled"] += ledger_.unsampled_ns;
  }

  // Stable, and by pid or name where the time is the same: the same profile, the same report.
  void sort() {
    std::ranges::stable_sort(ledger_.processes, [&](const LedgerRow& a, const LedgerRow& b) {
      const auto key = [&](const LedgerRow& row) {
        const Label& label = profile_.labels()[row.label];
        return std::tuple(UINT64_MAX - row.costs_ns() - row.stolen_ns - row.by_servers_ns,
                          label.pid, label.start_ns, ledger_.groups[row.group].thread);
      };
      return key(a) < key(b);
    });
    std::ranges::stable_sort(ledger_.flows, std::greater(), &Flow::ns);
  }

  const Profile& profile_;
  std::span<const uint32_t> pids_;
  By by_;
  Groups groups_;
  Ledger ledger_;
  std::vector<uint32_t> row_of_;  // by group
  IndexTable flow_index_;
};

}  // namespace

uint64_t Ledger::unclaimed_ns() const {
  return std::accumulate(unclaimed.begin(), unclaimed.end(), uint64_t{0},
                         [](uint64_t sum, const auto& entry) { return sum + entry.second; });
}

uint64_t Ledger::sum_ns() const {
  return std::accumulate(processes.begin(), processes.end(),
                         kernel_ns + idle_ns + steal_ns + other_ns + unclaimed_ns(),
                         [](uint64_t sum, const LedgerRow& row) { return sum + row.costs_ns(); });
}

uint64_t Ledger::sum_with_servers_ns() const {
  return std::accumulate(
      processes.begin(), processes.end(),
      kernel_ns + idle_ns + steal_ns + other_with_servers_ns() + unclaimed_ns(),
      [](uint64_t sum, const LedgerRow& row) { return sum + row.with_servers_ns(); });
}

bool is_served_to(const Profile& profile, const SampleKey& key, std::span<const uint32_t> pids) {
  return pids.empty() || is_selected(profile.labels()[key.served], pids);
}

namespace {

// Whoever was on the CPU was served, or may have been: of which thread is not known.
bool is_for_itself(const SampleKey& key) {
  return key.ran_on == key.served &&
         (key.thread == key.served_thread || key.thread == 0 || key.served_thread == 0);
}

}  // namespace

bool is_own_work(const Profile& profile, LabelId ran_on, StringId source) {
  return profile.labels()[ran_on].kthread && source_class(profile.text(source)) == "kthread";
}

Part part_of(const Profile& profile, const SampleKey& key) {
  const std::string& source = profile.text(key.source);
  if (!is_for_itself(key) || is_asynchronous(source)) return Part::async;
  return source == "user" ? Part::user : Part::own;
}

bool is_taken(const Profile& profile, const SampleKey& key) {
  return !is_for_itself(key) && !is_own_work(profile, key.ran_on, key.source);
}

bool is_taken(const Profile& profile, const Ledger& ledger, const Flow& flow) {
  if (flow.ran_on == flow.served) return false;
  const Group& ran_on = ledger.groups[flow.ran_on];
  const Group& served = ledger.groups[flow.served];
  if (ran_on.label == left_out) return true;
  const LabelKind kind = profile.labels()[ran_on.label].kind;
  if (kind != LabelKind::process && kind != LabelKind::other) return false;
  const bool unknown = ran_on.kind == GroupKind::any_thread || served.kind == GroupKind::any_thread;
  if (unknown && ran_on.label == served.label) return false;  // perhaps for itself
  return !is_own_work(profile, ran_on.label, flow.source);
}

Ledger build_ledger(const Profile& profile, std::span<const uint32_t> pids, By by) {
  return LedgerBuilder(profile, pids, by).run();
}

}  // namespace pkprof
