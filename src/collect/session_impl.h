// SPDX-License-Identifier: Apache-2.0
// What the files of a session share: session.cc has how a recording goes, session_profile.cc what
// becomes of what was counted. No one else includes this.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "collect/budget_keeper.h"
#include "collect/child.h"
#include "collect/cost.h"
#include "collect/facts.h"
#include "collect/interrupts.h"
#include "collect/kernel_side.h"
#include "collect/kernel_symbols.h"
#include "collect/mappings.h"
#include "collect/parties.h"
#include "collect/processes.h"
#include "collect/recorder.h"
#include "collect/session.h"
#include "collect/sideband.h"
#include "collect/signals.h"
#include "collect/so_far.h"

namespace pkprof {

// Times are by the recording's clock (KernelSide::now()), which stands still while it is paused.
class Session {
 public:
  explicit Session(const RecordOptions& options)
      : options_(options), processes_(user_symbols_, options.threads) {}
  Result<Recording> run();

 private:
  static constexpr uint64_t drain_interval_ns = 1'000'000'000;

  // The first of them, for a message.
  static std::string listed(const std::vector<std::string>& names);
  Result<> prepare();
  Result<> start();
  Result<> go_on();                      // begins, where nothing was recorded yet
  bool is_outdated(uint64_t paused_ns);  // after one more such pause
  void pause();
  bool obey();  // what the control says; false: to end
  Result<> wait();
  void follow_processes();  // also on CPUs that have come back, from here on
  Result<> drain(Spread::When when = Spread::When::meanwhile);
  void add_rest();                 // what is not in the tables
  void charge_objects(bool last);  // whose owner is known; `last`: or will not be
  void put_behind();               // what was learned up to here, for what comes after a pause
  void add_what_has_no_sample(uint64_t idle_ns);
  Result<> finish(Profile& profile);
  Result<Profile> cut();
  [[nodiscard]] bool is_to_look() const {
    return options_.calls && options_.calls->functions.empty();
  }
  Result<> attach_calls(const std::vector<std::string>& functions);
  Result<> count_what_is_hot();
  [[nodiscard]] std::map<std::string, uint64_t> counters() const;
  void fill_meta(Profile& profile, uint64_t until);
  void tell_progress();
  uint64_t interrupt_ns();
  [[nodiscard]] uint64_t period_ns() const { return 1'000'000'000 / options_.frequency_hz; }

  RecordOptions options_;
  Signals signals_;
  std::optional<Child> child_;
  std::vector<std::string> degraded_;
  std::optional<KernelSymbols> kernel_symbols_;
  std::optional<Result<KernelSymbols>> later_symbols_;  // once they were asked for
  UserSymbols user_symbols_;
  Processes processes_;
  std::optional<KernelFacts> facts_;
  std::optional<KernelSide> kernel_;
  KernelSide::CallsAttached calls_;
  std::optional<Sideband> sideband_;
  std::optional<Mappings> mappings_;
  std::vector<ProcessEvent> events_ahead_;  // of after the tables were taken
  Parties parties_;
  std::optional<Recorder> recorder_;
  std::optional<BudgetKeeper> budget_;
  UnseenInterrupts unseen_;
  uint64_t settled_ = 0;             // when what fell into pauses was charged last
  uint64_t drained_ = 0;             // when the tables were taken last
  uint64_t idle_ns_ = 0;             // for how long the CPUs that were idle then had been
  uint64_t drained_watched_ns_ = 0;  // for how long the hooks on interrupts were on up to then
  HookOverhead overhead_;
  [[nodiscard]] SoFar so_far(uint64_t until) const;
  SoFar told_;  // what profiles were told
  uint64_t told_lost_ns_ = 0;
  uint64_t since_ = 0;  // up to when they were
  uint64_t interrupt_ns_ = 0;
  uint64_t started_ = 0;
  uint64_t started_unix_ = 0;  // 0: it was not yet
  uint64_t paused_at_ = 0;     // last, CLOCK_MONOTONIC
  uint64_t paused_ns_ = 0;     // between pieces, that no profile was told
  // Up to when the hooks of a group were on, and pauses of the recording since.
  struct Shown {
    uint64_t watched_ns = 0;
    uint64_t paused_ns = 0;
  };
  std::map<HookGroup, Shown> shown_ = {{HookGroup::work, {}}, {HookGroup::disks, {}}};
  uint64_t stopped_ = 0;
  uint64_t own_cpu_ns_ = 0;  // of this process, while it recorded
  uint64_t next_ask_ = 0;    // when it may be asked again who holds which socket
};

}  // namespace pkprof
