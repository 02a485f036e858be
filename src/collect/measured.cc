// SPDX-License-Identifier: Apache-2.0
#include "collect/measured.h"

#include <cmath>
#include <map>
#include <unordered_map>

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

bool is_sampled(const pk_key& key) {
  return key.kind != PK_INTERRUPT && key.kind != PK_STOLEN && key.kind != PK_MEASURED &&
         key.kind != PK_CALLS;
}

// Between the vectors a softirq's loop is not measured, and is part of the turn.
Whole whole_of(const pk_key& key, const Times& times) {
  if (key.kind == PK_MEASURED)
    return {key.ran_on,
            static_cast<uint8_t>(key.vec == PK_EXACT_SOFTIRQ ? key.syscall : uint8_t{PK_VEC_NONE})};
  if (key.kind != PK_SOFTIRQ) return {key.ran_on, PK_VEC_NONE};
  // A network thread's polling is its turn, though it counts as a softirq's work.
  const Whole vector{key.ran_on, key.vec};
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

  void divide(const Whole& whole, uint64_t ns, Rows& rows) const {
    Row row{};
    row.key.ran_on = whole.ran_on;
    row.key.syscall = PK_NO_SYSCALL;
    row.key.vec = whole.vec;
    row.key.basis = PK_BASIS_PROVISIONAL;
    const auto it = parts_.find(whole.vec);
    if (whole.vec == PK_VEC_NONE) {
      row.key.served = whole.ran_on;
      if (whole.ran_on == PK_IDLE) {
        row.key.kind = PK_IDLING;
        rows.emplace_back(row, pk_count{ns, 0});
        return;
      }
      const double share =
          it == parts_.end() || !it->second.sum
              ? 0.5
              : static_cast<double>(it->second.user) / static_cast<double>(it->second.sum);
      const auto user = static_cast<uint64_t>(static_cast<double>(ns) * share);
      row.key.kind = PK_USER;
      rows.emplace_back(row, pk_count{user, 0});
      row.key.kind = PK_OWN;
      rows.emplace_back(row, pk_count{ns - user, 0});
      return;
    }
    row.key.kind = PK_SOFTIRQ;
    uint64_t left = ns;
    if (it != parts_.end() && it->second.sum) {
      for (const auto& [served, part] : it->second.served) {
        const auto share = std::min(
            left, static_cast<uint64_t>(static_cast<double>(ns) * static_cast<double>(part) /
                                        static_cast<double>(it->second.sum)));
        row.key.served = served.first;
        row.key.served_kind = served.second;
        rows.emplace_back(row, pk_count{share, 0});
        left -= share;
      }
    }
    row.key.served =
        whole.vec == PK_VEC_SCHED ? uint64_t{PK_KERNEL} : uint64_t{PK_UNCLAIMED} + PK_UNTRACKED;
    row.key.served_kind = PK_SERVED_LABEL;
    if (left) rows.emplace_back(row, pk_count{left, 0});
  }

 private:
  struct Part {
    uint64_t sum = 0;
    uint64_t user = 0;
    std::map<std::pair<uint64_t, uint8_t>, uint64_t> served;
  };
  std::map<uint8_t, Part> parts_;  // by vector; PK_VEC_NONE: of turns
};

}  // namespace

void scale_to_measured(Rows& rows, const std::function<bool(uint64_t)>& is_kernel_thread) {
  Times times;
  for (const auto& [row, count] : rows)
    if (row.key.kind == PK_MEASURED) times[whole_of(row.key, times)].measured += count.ns;
  if (times.empty()) return;
  std::erase_if(rows, [](const auto& r) { return r.first.key.kind == PK_MEASURED; });
  Alike alike;
  for (const auto& [row, count] : rows) {
    if (!is_sampled(row.key)) continue;
    times[whole_of(row.key, times)].sampled += count.ns;
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
    const Whole whole = whole_of(row.key, times);
    const Time& time = times.at(whole);
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
  for (const auto& [whole, time] : times) {
    if (!time.measured || time.sampled) continue;
    if (whole.vec == PK_VEC_NONE && is_kernel_thread(whole.ran_on)) {
      rows.emplace_back(row_of_thread(whole.ran_on), pk_count{time.measured, 0});
    } else {
      alike.divide(whole, time.measured, rows);
    }
  }
}

}  // namespace pkprof
