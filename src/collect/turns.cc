// SPDX-License-Identifier: Apache-2.0
#include "collect/turns.h"

#include <algorithm>

#include "collect/clock.h"

namespace pkprof {
namespace {

// Of all groups at the same time, so that one wakeup is enough: a process that wakes twenty times a
// second to see that nothing has changed takes more than hooks do that hardly run.
constexpr uint64_t glance_ns = 200'000'000;

uint64_t glance_after(uint64_t now) {
  return (now / glance_ns + 1) * glance_ns;
}

}  // namespace

Turns::Turns(KernelSide& kernel, Segments& segments, HookGroup group, double share,
             uint64_t period_ns, uint64_t now)
    : kernel_(kernel),
      segments_(segments),
      group_(group),
      budget_(share, period_ns, now + static_cast<uint64_t>(group)),
      turn_(budget_.first()),
      since_(now),
      watched_since_(now),
      next_(now + turn_.on_ns),
      glance_(glance_after(now)) {
  begin_segment(now);
}

void Turns::begin_segment(uint64_t now) {
  kernel_.tell_segment(group_, segments_.begin(group_, now));
}

// Those on interrupts come in pairs, of which none may stay alone; those on disk requests must not
// know of some requests' beginnings or ends only.
std::span<const int> Turns::to_stay(const CostMeter& cost) const {
  if (group_ != HookGroup::work) return {};
  return cost.idle(group_);
}

// What it costs to turn the hooks off and on; where it was not done yet, what it does as a rule.
uint64_t Turns::turning_ns(const CostMeter& cost) const {
  constexpr uint64_t each_ns = 300'000;
  return turning_ns_ ? turning_ns_
                     : (kernel_.hook_programs(group_).size() - to_stay(cost).size()) * each_ns;
}

size_t Turns::look(CostMeter& cost, uint64_t now) {
  size_t failed = 0;
  if (now < next_ && !budget_.is_spent(kernel_.hook_runs(group_), cost.hook_ns(group_))) {
    glance_ = glance_after(now);
    // While they are on throughout, what ends that will be at the end of it.
    if (on_ && turn_.off_ns == 0) begin_segment(now);
    return 0;
  }
  if (!on_ && now < next_) {  // what stayed is idle no more
    kernel_.watch(group_, false);
    some_stayed_ = false;
    cost.forget_idle(group_);
    return 0;
  }
  if (on_) {
    watched_ns_ = watched_ns(now);
    watched_since_ = now;
    turn_ = budget_.next(kernel_.hook_runs(group_), cost.hook_ns(group_), now - since_,
                         turning_ns(cost));
    if (turn_.off_ns) {
      const auto staying = to_stay(cost);
      const uint64_t began = thread_ns();
      kernel_.watch(group_, false, staying);
      segments_.pause(group_, now);
      turning_ns_ = thread_ns() - began;
      budget_.begin_pause(kernel_.hook_runs(group_));
      some_stayed_ = !staying.empty();
      on_ = false;
    }
  } else {
    // What is attached costs, and attaching takes a while: the turn began before it.
    const uint64_t began = thread_ns();
    failed = kernel_.watch(group_, true);
    turning_ns_ += thread_ns() - began;
    watched_since_ = kernel_.now();
    begin_segment(watched_since_);
    on_ = true;
  }
  since_ = now;
  next_ = now + (on_ ? turn_.on_ns : turn_.off_ns);
  glance_ = glance_after(now);
  return failed;
}

void Turns::begin_anew(uint64_t now) {
  turn_ = budget_.anew();
  next_ = now + (on_ ? turn_.on_ns : 0);
}

void Turns::pause() {
  paused_at_runs_ = kernel_.hook_runs(group_);
  if (on_ || some_stayed_) kernel_.watch(group_, false);
  some_stayed_ = false;
}

size_t Turns::go_on(bool anew) {
  if (!on_ && anew) {
    const uint64_t now = kernel_.now();
    begin_segment(now);
    on_ = true;
    since_ = watched_since_ = now;
    glance_ = glance_after(now);
    begin_anew(now);
  }
  return on_ ? kernel_.watch(group_, true) : 0;
}

void Turns::went_on() {
  budget_.pass_over(paused_at_runs_, kernel_.hook_runs(group_));
}

void Turns::stop(uint64_t now) {
  watched_ns_ = watched_ns(now);
  if (on_ || some_stayed_) kernel_.watch(group_, false);
  on_ = false;
  some_stayed_ = false;
}

uint64_t Turns::watched_ns(uint64_t now) const {
  return watched_ns_ + (on_ ? now - std::min(now, watched_since_) : 0);
}

}  // namespace pkprof
