// SPDX-License-Identifier: Apache-2.0
// Names for the stacks that programs had at the ends of their calls, also of programs that have
// ended since, or become others.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/result.h"
#include "model/system_calls.h"
#include "process/sideband.h"
#include "symbol/symbolizer.h"

namespace pkprof {

class DeboxStacks {
 public:
  // Needs what perf events of all processes need.
  static Result<DeboxStacks> open();

  // A process whose calls are followed, with what it has mapped; those that it begins are, too.
  void add(uint32_t pid);

  // To be called with records, in their order, after the processes' own story was taken to its
  // end; frames come innermost first. Code without frame pointers leads nowhere: what is mapped
  // ends there.
  void take_events();
  [[nodiscard]] std::vector<std::string> frames(const SlowCall& slow);
  // No record of a call that ended before `time` (CLOCK_MONOTONIC, ns) is to come.
  void forget(uint64_t time);

  [[nodiscard]] int poll_fd() const { return sideband_.poll_fd(); }
  [[nodiscard]] uint64_t lost() const { return sideband_.lost(); }

 private:
  explicit DeboxStacks(Sideband sideband) : sideband_(std::move(sideband)) {}
  void apply(const ProcessEvent& event);

  Sideband sideband_;
  std::deque<ProcessEvent> events_;  // that came after all that was asked for
  std::unordered_set<uint32_t> pids_;
  UserSymbols users_{{.root = {}, .lines = true}};
};

}  // namespace pkprof
