// SPDX-License-Identifier: Apache-2.0
#include "report/waits/waits.h"

#include <algorithm>
#include <functional>
#include <tuple>
#include <utility>

#include "model/source.h"
#include "report/ledger.h"

namespace pkprof {
namespace {

struct Found {
  Waiting waiting;
  std::map<std::pair<std::string, GroupId>, WaitReason> reasons;
};

void add_wait(const Profile& profile, Groups& groups, const Profile::Sample& sample, Found& found) {
  const auto& [key, value] = sample;
  const std::string kind(wait_kind(profile.text(key.source)));
  (is_idle_wait(kind) ? found.waiting.idle_ns : found.waiting.wait_ns) += value.ns;
  found.waiting.kinds[kind] += value.ns;
  const GroupId whom = groups.of(key.ran_on, key.thread, true);
  WaitReason& reason = found.reasons[{kind, whom}];
  reason.kind = kind;
  reason.whom = whom;
  reason.ns += value.ns;
  reason.count += value.count;
  std::vector<GroupId> chain;
  for (const LabelId before : profile.wakeups()[key.wakeup].before)
    chain.push_back(groups.of(before, 0, true));
  reason.chains[chain] += value.ns;
}

}  // namespace

std::string_view wait_kind(std::string_view source) {
  return source.substr(std::min(source.size(), source.find(':') + 1));
}

WakerChain main_chain(const WaitReason& reason) {
  WakerChain chain;
  for (;;) {
    std::map<GroupId, uint64_t> next;
    const size_t depth = chain.wakers.size();
    for (const auto& [wakers, ns] : reason.chains)
      if (wakers.size() > depth &&
          std::equal(chain.wakers.begin(), chain.wakers.end(), wakers.begin()))
        next[wakers[depth]] += ns;
    const auto most =
        std::ranges::max_element(next, {}, &std::pair<const GroupId, uint64_t>::second);
    if (most == next.end() || 2 * most->second <= chain.ns) return chain;
    if (depth == 0) chain.ns = most->second;
    chain.wakers.push_back(most->first);
  }
}

bool is_idle_wait(std::string_view kind) {
  return kind == "idle" || kind == "stopped";
}

Waits waits_of(const Profile& profile, By by, std::span<const uint32_t> pids) {
  Waits waits{.groups = Groups(profile, by, pids)};
  std::map<GroupId, Found> all;
  const auto is_row = [&](LabelId id) {
    const Label& label = profile.labels()[id];
    return label.kind == LabelKind::process && is_selected(label, pids);
  };
  for (const Profile::Sample& sample : profile.samples()) {
    const SampleKey& key = sample.key;
    if (key.resource != Resource::wait || !is_row(key.served)) continue;
    const GroupId who = waits.groups.of(key.served, key.served_thread);
    add_wait(profile, waits.groups, sample, all[who]);
  }
  // A thread is on the CPU also while an interrupt works there for somebody else.
  for (const auto& [key, value] : profile.samples()) {
    if (key.resource != Resource::cpu || !is_row(key.ran_on)) continue;
    const auto it = all.find(waits.groups.of(key.ran_on, key.thread));
    if (it != all.end()) it->second.waiting.cpu_ns += value.ns;
  }
  for (auto& [who, found] : all) {
    found.waiting.who = who;
    for (auto& [kind_and_whom, reason] : found.reasons)
      found.waiting.reasons.push_back(std::move(reason));
    std::ranges::stable_sort(found.waiting.reasons, std::greater(), &WaitReason::ns);
    waits.rows.push_back(std::move(found.waiting));
  }
  std::ranges::stable_sort(waits.rows, std::greater(),
                           [](const Waiting& row) { return std::pair(row.wait_ns, row.idle_ns); });
  return waits;
}

}  // namespace pkprof
