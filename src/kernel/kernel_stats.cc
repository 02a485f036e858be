// SPDX-License-Identifier: Apache-2.0
#include "kernel/kernel_stats.h"

#include "kernel/object/kernel_object.h"

namespace pkprof {

pk_stats sum_of_stats(const KernelObject& object) {
  pk_stats sum{};
  for (const pk_cpu& cpu : object.per_cpu()) {
    const auto* from = reinterpret_cast<const uint64_t*>(&cpu.stats);
    auto* to = reinterpret_cast<uint64_t*>(&sum);
    for (size_t i = 0; i < sizeof(sum) / sizeof(uint64_t); ++i) to[i] += from[i];
  }
  return sum;
}

std::vector<uint64_t> taken_in_vain(const KernelObject& object) {
  std::vector<uint64_t> all;
  for (const pk_cpu& cpu : object.per_cpu()) all.push_back(cpu.stats.taken_in_vain);
  return all;
}

double clock_ns(const pk_stats& stats) {
  if (!stats.clock_interrupts) return 0;
  return static_cast<double>(stats.clock_ns) / static_cast<double>(stats.clock_interrupts) *
         static_cast<double>(stats.samples);
}

std::vector<double> clock_ns(const KernelObject& object) {
  std::vector<double> all;
  for (const pk_cpu& cpu : object.per_cpu()) all.push_back(clock_ns(cpu.stats));
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
      {"clients that there was no more room for", stats.clients_full},
      {"waits of threads that there was no room for", stats.waiters_full},
      {"waits, or uses of other resources, that there was no room for", stats.usage_lost},
  };
}

}  // namespace pkprof
