// SPDX-License-Identifier: Apache-2.0
// What the files of a session share: session.cc has how a recording goes, session_profile.cc what
// becomes of what was counted. No one else includes this.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "attribution/parties.h"
#include "attribution/recorder.h"
#include "base/signals.h"
#include "cost/budget_keeper.h"
#include "cost/cost.h"
#include "cost/totals.h"
#include "kernel/kernel_side.h"
#include "kernel/kernel_symbols.h"
#include "probe/facts.h"
#include "process/child.h"
#include "process/mappings.h"
#include "process/processes.h"
#include "process/sideband.h"
#include "record/session.h"

namespace pkprof {

// Times are by the recording's clock (SamplingClocks::now()), which stands still while the
// recording is paused as --control asks. Between windows of the budget it goes on.
class Session {
 public:
  explicit Session(const RecordOptions& options)
      : options_(options),
        user_symbols_({.inlines = options.inlines}),
        processes_(user_symbols_, options.threads) {}
  Result<Recording> run();

 private:
  static constexpr uint64_t drain_interval_ns = 1'000'000'000;

  // The first of them, for a message.
  static std::string listed(const std::vector<std::string>& names);
  Result<> prepare();
  Result<> start();
  void stop_watching(WhileOff clock);
  void pause();        // as --control asks
  Result<> go_on();    // begins, where nothing was recorded yet
  bool obey();         // what the control says; false: to end
  bool keep_budget();  // ends a window or begins one; false: to end
  Result<> wait();
  void follow_processes();  // also on CPUs that have come back, from here on
  enum class Drain { checkpoint, end };
  Result<> drain(Drain when = Drain::checkpoint);
  void begin_batch(uint64_t taken, uint64_t watched_ns);
  void charge_objects(bool last);  // whose owner is known; `last`: or will not be
  void add_what_has_no_sample(uint64_t idle_ns);
  void stand_for_all(uint64_t until);
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

  RecordOptions options_;
  std::optional<Signals> signals_;
  std::optional<Child> child_;
  std::vector<std::string> degraded_;
  std::optional<KernelSymbols> kernel_symbols_;
  std::optional<Result<KernelSymbols>> later_symbols_;  // once they were asked for
  UserSymbols user_symbols_;
  Processes processes_;
  std::optional<KernelFacts> facts_;
  std::optional<KernelSide> kernel_;
  CallCounting::Attached calls_;
  std::optional<Sideband> sideband_;
  std::optional<Mappings> mappings_;
  std::vector<ProcessEvent> events_ahead_;  // of after the tables were taken
  Parties parties_;
  std::optional<Recorder> recorder_;
  std::optional<BudgetKeeper> budget_;
  uint64_t drained_ = 0;             // when the tables were taken last,
  uint64_t drained_watched_ns_ = 0;  // for how long it was watched up to then,
  uint64_t drained_at_ = 0;          // and CLOCK_MONOTONIC then
  uint64_t unwatched_ns_ = 0;        // up to then, that nothing stands for yet
  uint64_t idle_ns_ = 0;             // for how long the CPUs that were idle then had been
  HookOverhead overhead_;
  [[nodiscard]] Totals totals() const;
  Totals reported_;  // what profiles were told
  uint64_t reported_lost_ns_ = 0;
  uint64_t since_ = 0;             // up to when they were,
  uint64_t since_watched_ns_ = 0;  // and for how long it was watched up to then
  uint64_t started_ = 0;
  uint64_t started_unix_ = 0;  // 0: it was not yet
  bool paused_ = false;        // as --control asks
  uint64_t paused_at_ = 0;     // last, CLOCK_MONOTONIC
  uint64_t paused_ns_ = 0;     // between pieces, that no profile was told
  uint64_t stopped_ = 0;
  uint64_t own_cpu_ns_ = 0;  // of this process, while it recorded
  uint64_t next_ask_ = 0;    // when it may be asked again who holds which socket
};

}  // namespace pkprof
