// SPDX-License-Identifier: Apache-2.0
#include "attribution/wakeups.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "attribution/sources.h"
#include "attribution/usage/lock_names.h"

namespace pkprof {
namespace {

constexpr size_t most = 65536;

}  // namespace

Stacks::Frames from_scheduler_on(const Stacks& stacks, Stacks::Frames frames) {
  constexpr size_t most_of_ours = 16;
  for (size_t i = 0; i < frames.size() && i < most_of_ours; ++i) {
    const std::string_view name = stacks.function(frames[i]);
    if (name == "__schedule" || name == "schedule" || name == "try_to_wake_up")
      return frames.subspan(i);
  }
  return frames;
}

Stacks::Frames behind_programs(const Stacks& stacks, Stacks::Frames frames) {
  constexpr size_t most_of_ours = 16;
  constexpr std::array ours = {"bpf_prog_",      "__bpf_",       "bpf_trace_run",
                               "bpf_trampoline", "__traceiter_", "trace_event_"};
  size_t from = 0;
  for (size_t i = 0; i < frames.size() && i < most_of_ours; ++i)
    if (std::ranges::any_of(ours, [name = stacks.function(frames[i])](const char* prefix) {
          return name.starts_with(prefix);
        }))
      from = i + 1;
  return frames.subspan(from);
}

void Wakeups::ask(Fetch fetch, PartyOf party_of) {
  fetch_ = std::move(fetch);
  party_of_ = std::move(party_of);
}

void Wakeups::meet(uint64_t number, uint64_t image) {
  if (!number || known_.contains(number)) return;
  const auto waker = fetch_ && known_.size() < most ? fetch_(number) : std::nullopt;
  if (!waker) {
    ++forgotten_;
    return;
  }
  Known known{.waker = *waker};
  if (waker->kstack) stacks_.meet(waker->kstack);
  if (waker->ustack)
    known.user =
        stacks_.user_number(waker->ustack, processes_.image_of(waker->who[0], waker->exec_id));
  known.party = party_of(known);
  if (waker->lock) {
    known.lock = stacks_.data_name(image, waker->lock);
    if (known.lock.empty()) known.lock = LockNames::by_address(waker->lock);
  }
  known_.emplace(number, known);
}

const pk_waker* Wakeups::at(uint64_t number) const {
  const auto it = known_.find(number);
  return it == known_.end() ? nullptr : &it->second.waker;
}

uint64_t Wakeups::party_of(const Known& known) const {
  if (known.party) return known.party;
  const uint64_t party = known.waker.party;
  if (party & PK_OBJECT) return party_of_ ? party_of_(party) : 0;
  return party >> 32 ? party : 0;
}

Label Wakeups::waited_for(uint64_t number) const {
  const auto it = known_.find(number);
  Label label{.kind = LabelKind::unclaimed,
              .reason = number ? "forgotten" : std::string(reason_name(PK_UNTRACKED))};
  if (it == known_.end()) return label;
  const pk_waker& waker = it->second.waker;
  if (waker.context == PK_WOKEN_BY_TASK) return processes_.label_of(waker.who[0]);
  if (const uint64_t party = party_of(it->second)) return processes_.label_of(party);
  if (waker.context == PK_WOKEN_BY_KTHREAD) return processes_.label_of(waker.who[0]);
  if (!waker.family) return {.kind = LabelKind::kernel};
  char text[INET6_ADDRSTRLEN] = "?";
  inet_ntop(waker.family, waker.address, text, sizeof text);
  return {.kind = LabelKind::remote, .without_pid = true, .comm = text, .reason = text};
}

std::string Wakeups::lock_of(uint64_t number) const {
  const auto it = known_.find(number);
  return it == known_.end() ? "" : it->second.lock;
}

WakeupId Wakeups::tell(Profile& profile, uint64_t number, Stacks::Mover& move_frame) const {
  const auto it = known_.find(number);
  if (it == known_.end()) return 0;
  const pk_waker& waker = it->second.waker;
  Wakeup wakeup{.label = profile.label(waited_for(number))};
  std::vector<FrameId> stack;
  for (const FrameId frame : from_scheduler_on(stacks_, stacks_.kernel(waker.kstack)))
    stack.push_back(move_frame(frame));
  if (waker.syscall != PK_NO_SYSCALL) {
    const std::string name = "syscall:" + syscall_name(waker.syscall, waker.compat);
    stack.push_back(profile.frame({.kind = FrameKind::pseudo, .function = profile.string(name)}));
  }
  for (const FrameId frame : stacks_.user(it->second.user)) stack.push_back(move_frame(frame));
  wakeup.stack = profile.stack(stack);
  for (size_t i = 1; i < PK_WAKERS && waker.who[i]; ++i)
    wakeup.before.push_back(profile.label(processes_.label_of(waker.who[i])));
  return profile.wakeup(wakeup);
}

void Wakeups::add_stacks(Stacks::Numbers& kernel, Stacks::Numbers& user) const {
  for (const auto& [number, known] : known_) {
    if (known.waker.kstack) kernel.insert(known.waker.kstack);
    if (known.user) user.insert(known.user);
  }
}

void Wakeups::keep(const Stacks::Numbers& numbers) {
  std::erase_if(known_, [&](const auto& entry) { return !numbers.contains(entry.first); });
}

}  // namespace pkprof
