// SPDX-License-Identifier: Apache-2.0
// Names for the stacks that programs had at the ends of their calls, also of programs that have
// ended since, or become others.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/result.h"
#include "debox/taken_call.h"
#include "process/sideband.h"
#include "symbol/symbolizer.h"
#include "unwind/table_maker.h"

namespace pkprof {

class DeboxStacks {
 public:
  // Needs what perf events of all processes need.
  static Result<DeboxStacks> open();

  // A process whose calls are followed, with what it has mapped; those that it begins are, too.
  void add(uint32_t pid);

  // To be called with records, in their order, after the processes' own story was taken to its
  // end; frames come innermost first, up to where the thread begins.
  void take_events();
  [[nodiscard]] SlowCall named(TakenCall&& taken);
  // No record of a call that ended before `time` (CLOCK_MONOTONIC, ns) is to come.
  void forget(uint64_t time);

  [[nodiscard]] int poll_fd() const { return sideband_.poll_fd(); }
  [[nodiscard]] uint64_t lost() const { return sideband_.lost(); }

 private:
  explicit DeboxStacks(Sideband sideband);
  void apply(const ProcessEvent& event);
  [[nodiscard]] std::vector<uint64_t> addresses(uint32_t pid, const TakenCall& taken);
  [[nodiscard]] uint32_t rule_at(uint32_t pid, const UserMap& map, uint64_t address);

  Sideband sideband_;
  std::deque<ProcessEvent> events_;  // that came after all that was asked for
  std::unordered_set<uint32_t> pids_;
  UserSymbols users_{{.root = {}, .lines = true}};
  std::unique_ptr<TableMaker> maker_;
  std::map<std::pair<uint64_t, std::string>, TableMaker::Table> tables_;  // by inode and path
};

}  // namespace pkprof
