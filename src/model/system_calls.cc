// SPDX-License-Identifier: Apache-2.0
#include "model/system_calls.h"

#include <algorithm>
#include <functional>
#include <tuple>

namespace pkprof {
namespace {

// Counters only grow; one that has not (a table that was cleared) is nothing new.
void less(uint64_t& now, uint64_t before) {
  now -= std::min(now, before);
}

void subtract(CallKind& now, const CallKind& before) {
  for (const auto counter :
       {&CallKind::count, &CallKind::errors, &CallKind::total_ns, &CallKind::asleep_ns,
        &CallKind::runnable_ns, &CallKind::voluntary, &CallKind::forced, &CallKind::minor_faults,
        &CallKind::major_faults, &CallKind::bytes, &CallKind::async_ns})
    less(now.*counter, before.*counter);
  now.durations.subtract(before.durations);
  now.longest_ns = std::min(now.longest_ns, now.durations.percentile_ns(1));
}

void subtract(SleepPlace& now, const SleepPlace& before) {
  for (const auto counter : {&SleepPlace::count, &SleepPlace::total_ns, &SleepPlace::runnable_ns,
                             &SleepPlace::waiters, &SleepPlace::waiters_known})
    less(now.*counter, before.*counter);
  now.longest_ns = std::min(now.longest_ns, now.total_ns);
  for (Waker& waker : now.wakers)
    for (const Waker& old : before.wakers)
      if (std::tie(waker.context, waker.pid) == std::tie(old.context, old.pid))
        less(waker.count, old.count);
  std::erase_if(now.wakers, [](const Waker& waker) { return waker.count == 0; });
  std::ranges::sort(now.wakers, std::greater{}, &Waker::count);
}

}  // namespace

SystemCalls calls_since(const SystemCalls& now, const SystemCalls& before) {
  SystemCalls out = now;
  out.slowest.clear();
  less(out.duration_ns, before.duration_ns);
  less(out.cost_kernel_ns, before.cost_kernel_ns);
  less(out.cost_user_ns, before.cost_user_ns);
  std::map<std::string, const CallKind*> kinds;
  for (const CallKind& kind : before.kinds) kinds[kind.name] = &kind;
  for (CallKind& kind : out.kinds)
    if (const auto it = kinds.find(kind.name); it != kinds.end()) subtract(kind, *it->second);
  std::erase_if(out.kinds, [](const CallKind& kind) { return kind.count == 0; });
  std::ranges::sort(out.kinds, std::greater{}, &CallKind::total_ns);
  const auto key = [](const SleepPlace& s) { return std::tie(s.call, s.place, s.inside); };
  std::map<std::tuple<std::string, std::string, std::string>, const SleepPlace*> sleeps;
  for (const SleepPlace& sleep : before.sleeps) sleeps[key(sleep)] = &sleep;
  for (SleepPlace& sleep : out.sleeps)
    if (const auto it = sleeps.find(key(sleep)); it != sleeps.end()) subtract(sleep, *it->second);
  std::erase_if(out.sleeps, [](const SleepPlace& sleep) { return sleep.count == 0; });
  std::ranges::sort(out.sleeps, std::greater{}, &SleepPlace::total_ns);
  return out;
}

}  // namespace pkprof
