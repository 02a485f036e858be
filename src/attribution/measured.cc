// SPDX-License-Identifier: Apache-2.0
#include "attribution/measured.h"

#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "attribution/parties.h"

namespace pkprof {
namespace {

// What is measured as one: a task's turns, or the softirqs of one vector that ran on it.
struct Whole {
  uint64_t ran_on;
  uint8_t vec;  // PK_VEC_NONE: its turns

  auto operator<=>(const Whole&) const = default;
};

struct Time {
  uint64_t measured = 0;
  uint64_t sampled = 0;
};

using Times = std::map<Whole, Time>;

// What ran on the kernel itself is what found no room.
bool is_sampled(const pk_key& key) {
  return is_of_cpu(key) && key.kind != PK_INTERRUPT && key.kind != PK_STOLEN &&
         key.kind != PK_MEASURED && key.kind != PK_CALLS && key.ran_on != PK_KERNEL;
}

// Between the vectors a softirq's loop is not measured, and is part of the turn.
Whole whole_of(const pk_key& key, const Times& times, const KernelThreads& threads) {
  const bool measured = key.kind == PK_MEASURED;
  if (measured ? key.exact_kind != PK_EXACT_SOFTIRQ : key.kind != PK_SOFTIRQ)
    return {key.ran_on, PK_VEC_NONE};
  const auto vec = static_cast<uint8_t>(measured ? key.number : key.vec);
  // A network thread's polling is its turn, though it counts as a softirq's work.
  if (vec == PK_VEC_NET_RX && threads.polls(key.ran_on)) return {key.ran_on, PK_VEC_NONE};
  const Whole vector{key.ran_on, vec};
  if (measured) return vector;
  const auto it = times.find(vector);
  return it != times.end() && it->second.measured ? vector : Whole{key.ran_on, PK_VEC_NONE};
}

// As the sampler has it where nobody is known that the thread works for.
Row row_of_thread(uint64_t thread) {
  Row row{};
  row.key.ran_on = thread;
  row.key.served = PK_KERNEL;
  row.key.kind = PK_KTHREAD;
  row.key.syscall = PK_NO_SYSCALL;
  row.key.vec = PK_VEC_NONE;
  row.key.basis = PK_BASIS_OWN;
  return row;
}

// How what is like it was divided, for time of which there is no sample.
class Alike {
 public:
  void add(const Row& row, uint64_t ns) {
    const bool softirq = row.key.kind == PK_SOFTIRQ;
    if (!softirq && row.key.kind != PK_USER && row.key.kind != PK_OWN) return;
    Part& part = parts_[softirq ? row.key.vec : uint8_t{PK_VEC_NONE}];
    part.sum += ns;
    if (softirq)
      part.served[{row.key.served, row.key.served_kind}] += ns;
    else if (row.key.kind == PK_USER)
      part.user += ns;
  }

  // Turns of a task.
  void divide_turns(uint64_t ran_on, uint64_t ns, Rows& rows) const {
    Row row = row_alike(ran_on, PK_VEC_NONE);
    row.key.served = ran_on;
    if (ran_on == PK_IDLE) {
      row.key.kind = PK_IDLING;
      rows.emplace_back(row, pk_count{ns, 0});
      return;
    }
    const auto it = parts_.find(PK_VEC_NONE);
    const double share =
        it == parts_.end() || !it->second.sum
            ? 0.5
            : static_cast<double>(it->second.user) / static_cast<double>(it->second.sum);
    const auto user = static_cast<uint64_t>(static_cast<double>(ns) * share);
    row.key.kind = PK_USER;
    rows.emplace_back(row, pk_count{user, 0});
    row.key.kind = PK_OWN;
    rows.emplace_back(row, pk_count{ns - user, 0});
  }

  // Softirqs of one vector on several tasks.
  void divide_softirqs(uint8_t vec, std::span<const uint64_t> tasks, std::span<const uint64_t> ns,
                       Rows& rows) const {
    std::vector<std::pair<uint64_t, uint8_t>> served;
    std::vector<Parties::Share> shares;
    const auto it = parts_.find(vec);
    if (it != parts_.end() && it->second.sum) {
      for (const auto& [party, part] : it->second.served) {
        served.push_back(party);
        shares.push_back(
            {party.first, static_cast<double>(part) / static_cast<double>(it->second.sum)});
      }
    } else {
      served.emplace_back(
          vec == PK_VEC_SCHED ? uint64_t{PK_KERNEL} : uint64_t{PK_UNCLAIMED} + PK_UNTRACKED,
          PK_SERVED_LABEL);
      shares.push_back({served[0].first, 1});
    }
    const auto give = [&](size_t task, size_t party, uint64_t piece) {
      if (!piece) return;
      Row row = row_alike(tasks[task], vec);
      row.key.kind = PK_SOFTIRQ;
      std::tie(row.key.served, row.key.served_kind) = served[party];
      rows.emplace_back(row, pk_count{piece, 0});
    };
    if (shares.size() > few_parties) return lay_out(ns, shares, give);
    for (size_t task = 0; task < tasks.size(); ++task) {
      const std::vector<uint64_t> parts = split(ns[task], shares);
      for (size_t party = 0; party < parts.size(); ++party) give(task, party, parts[party]);
    }
  }

 private:
  struct Part {
    uint64_t sum = 0;
    uint64_t user = 0;
    std::map<std::pair<uint64_t, uint8_t>, uint64_t> served;
  };

  static Row row_alike(uint64_t ran_on, uint8_t vec) {
    Row row{};
    row.key.ran_on = ran_on;
    row.key.syscall = PK_NO_SYSCALL;
    row.key.vec = vec;
    row.key.basis = PK_BASIS_PROVISIONAL;
    return row;
  }

  std::map<uint8_t, Part> parts_;  // by vector; PK_VEC_NONE: of turns
};

}  // namespace

void scale_to_measured(Rows& rows, const KernelThreads& threads) {
  Times times;
  for (const auto& [row, count] : rows)
    if (row.key.kind == PK_MEASURED) times[whole_of(row.key, times, threads)].measured += count.ns;
  if (times.empty()) return;
  std::erase_if(rows, [](const auto& r) { return r.first.key.kind == PK_MEASURED; });
  Alike alike;
  for (const auto& [row, count] : rows) {
    if (!is_sampled(row.key)) continue;
    times[whole_of(row.key, times, threads)].sampled += count.ns;
    alike.add(row, count.ns);
  }
  // Rounded sums, so that the parts of a whole add up to it.
  struct Given {
    uint64_t sampled = 0;
    uint64_t measured = 0;
  };
  std::map<Whole, Given> given;
  for (auto& [row, count] : rows) {
    if (!is_sampled(row.key)) continue;
    const Whole whole = whole_of(row.key, times, threads);
    const Time& time = times.at(whole);
    if (!time.sampled) continue;  // all of it is divided below
    Given& up_to = given[whole];
    up_to.sampled += count.ns;
    const uint64_t sum = time.sampled == up_to.sampled
                             ? time.measured
                             : static_cast<uint64_t>(static_cast<double>(time.measured) *
                                                     static_cast<double>(up_to.sampled) /
                                                     static_cast<double>(time.sampled));
    count.ns = sum - std::min(sum, up_to.measured);
    up_to.measured = std::max(sum, up_to.measured);
  }
  struct Softirqs {
    std::vector<uint64_t> tasks;
    std::vector<uint64_t> ns;
  };
  std::map<uint8_t, Softirqs> softirqs;
  for (const auto& [whole, time] : times) {
    if (!time.measured || time.sampled) continue;
    if (whole.vec != PK_VEC_NONE) {
      softirqs[whole.vec].tasks.push_back(whole.ran_on);
      softirqs[whole.vec].ns.push_back(time.measured);
    } else if (threads.is_one(whole.ran_on)) {
      rows.emplace_back(row_of_thread(whole.ran_on), pk_count{time.measured, 0});
    } else {
      alike.divide_turns(whole.ran_on, time.measured, rows);
    }
  }
  for (const auto& [vec, all] : softirqs) alike.divide_softirqs(vec, all.tasks, all.ns, rows);
}

}  // namespace pkprof
