// SPDX-License-Identifier: Apache-2.0
// What becomes of what was counted: the kernel side's tables, which come about once a second, made
// into profiles.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "attribution/parties.h"
#include "attribution/recorder.h"
#include "cost/budget_keeper.h"
#include "cost/totals.h"
#include "process/processes.h"
#include "record/prepared.h"

namespace pkprof {

// How a recording went so far. Times are by its clock (SamplingClocks::now()), which stands still
// while it is paused as --control asks. Between windows of the budget it goes on.
struct Course {
  uint64_t started = 0;
  uint64_t started_unix = 0;  // 0: it was not yet
  uint64_t stopped = 0;       // 0: it goes on
  uint64_t own_cpu_ns = 0;    // of this process, up to then
  bool paused = false;        // as --control asks
  uint64_t paused_ns = 0;     // in pauses that no profile was told of
  CallCounting::Attached calls;
  std::vector<std::string> degraded;
};

// The first of them, for a message.
[[nodiscard]] std::string listed(const std::vector<std::string>& names);

class Gathering {
 public:
  // All are to outlive it.
  Gathering(Prepared& prepared, const RecordOptions& options, Course& course);
  // Counting has begun.
  void begin(const BudgetKeeper& budget);

  // What processes did up to now, also on CPUs that have come back.
  void follow_processes();
  // Takes the tables. At an end, what is on the way is settled, too.
  enum class Drain { checkpoint, end };
  Result<> drain(Drain when = Drain::checkpoint);
  // Of what was not watched up to the last drain, nothing stands for it after this.
  void stand_for_all();
  // Nothing is watched from here on. What is seen later of a socket may be of another one that has
  // its place. What is known of files holds, since who makes them dirty is seen meanwhile, too.
  void forget_what_moves();

  // What was since the last profile; it is in no other. The last one is all that is left.
  Result<Profile> cut();
  Result<Profile> finish();

  [[nodiscard]] uint64_t since() const { return since_; }  // the last profile
  [[nodiscard]] Progress progress() const;

  static constexpr uint64_t interval_ns = 1'000'000'000;  // between drains

 private:
  CountedStack fetch_stack(uint64_t number);
  void begin_batch(uint64_t taken, uint64_t watched_ns);
  void charge_objects(Drain when);
  uint64_t main_party_of(uint64_t object);
  void add_what_has_no_sample();
  Profile make_profile();
  void fill_meta(Meta& meta);
  [[nodiscard]] uint64_t until() const { return course_.stopped ? course_.stopped : drained_.at; }
  [[nodiscard]] Totals totals() const;
  [[nodiscard]] std::map<std::string, uint64_t> counters() const;
  [[nodiscard]] std::map<std::string, uint64_t> user_stacks() const;

  Prepared& prepared_;
  KernelSide& kernel_;
  const RecordOptions& options_;
  Course& course_;
  const BudgetKeeper* budget_ = nullptr;
  UserSymbols user_symbols_;
  std::optional<Result<KernelSymbols>> later_symbols_;  // once they were asked for
  Processes processes_;
  std::vector<ProcessEvent> events_ahead_;  // of after the tables were taken
  Parties parties_;
  Recorder recorder_;
  struct Drained {            // when the tables were taken last
    uint64_t at = 0;          // by the recording's clock
    uint64_t monotonic = 0;   // and CLOCK_MONOTONIC,
    uint64_t watched_ns = 0;  // for how long it was watched up to then,
    uint64_t idle_ns = 0;     // and for how long the CPUs that were idle then had been
  } drained_;
  uint64_t unwatched_ns_ = 0;  // up to then, that nothing stands for yet
  uint64_t next_ask_ = 0;      // when it may be asked again who holds which socket
  struct Reported {            // what is in profiles
    Totals totals;
    uint64_t lost_ns = 0;
    uint64_t watched_ns = 0;
  } reported_;
  uint64_t since_ = 0;
};

}  // namespace pkprof
