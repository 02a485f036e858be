// SPDX-License-Identifier: Apache-2.0
#include "debox/totals.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <utility>

namespace pkprof {

static_assert(DB_BUCKETS == Durations::buckets, "two histograms of one kind");

SystemCalls read_totals(const DeboxSide& side, const DeboxNames& names) {
  SystemCalls out;
  for (const auto& [number, c] : side.calls()) {
    CallKind kind{.name = call_name(number),
                  .count = c.count,
                  .errors = c.errors,
                  .total_ns = c.total_ns,
                  .longest_ns = c.longest_ns,
                  .asleep_ns = c.asleep_ns,
                  .runnable_ns = c.runnable_ns,
                  .voluntary = c.voluntary,
                  .forced = c.forced,
                  .minor_faults = c.minor,
                  .major_faults = c.major,
                  .bytes = c.bytes,
                  .async_ns = c.async_ns,
                  .durations = {}};
    for (size_t i = 0; i < DB_BUCKETS; ++i) kind.durations.add(i, c.bucket[i]);
    out.kinds.push_back(std::move(kind));
  }
  std::ranges::sort(out.kinds, std::greater{}, &CallKind::total_ns);
  std::map<std::pair<uint32_t, uint32_t>, std::vector<Waker>> wakers;
  for (const auto& [key, woken] : side.wakers())
    wakers[{key.kind, key.place}].push_back(
        {woken.count, key.context, key.pid,
         std::string(woken.comm, strnlen(woken.comm, sizeof woken.comm))});
  for (const auto& [key, s] : side.sleeps()) {
    SleepPlace place{.call = call_name(key.kind),
                     .place = names.place(key.place),
                     .inside = names.place(key.inside),
                     .count = s.count,
                     .total_ns = s.total_ns,
                     .longest_ns = s.longest_ns,
                     .runnable_ns = s.runnable_ns,
                     .waiters = s.waiters,
                     .waiters_known = s.waiters_known,
                     .waiters_most = s.waiters_most,
                     .wakers = wakers[{key.kind, key.place}]};
    std::ranges::sort(place.wakers, std::greater{}, &Waker::count);
    out.sleeps.push_back(std::move(place));
  }
  std::ranges::sort(out.sleeps, std::greater{}, &SleepPlace::total_ns);
  out.places = names.places();
  return out;
}

}  // namespace pkprof
