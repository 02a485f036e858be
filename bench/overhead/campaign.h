// SPDX-License-Identifier: Apache-2.0
// The measurement. In each round, for each frequency and workload: the load is started, and while
// it goes on the profilers are started, measured for a while and turned off. Then each has its
// turns, in an order that rotates: it is turned on, has a slice of the load, and is turned off.
// Between any two is a slice under none. So what differs from one start of a load to the next (how
// two ends of a connection settle) is the same for all that is compared, and the machine has had
// tenths of a second to drift. Where a profiler that is off still costs (Variant::hears_of_maps) it
// is started and ended for each of its turns, after the others', which takes seconds. CPUs do not
// halt meanwhile (awake.h), but for workloads that say so.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "load.h"
#include "log.h"
#include "profilers.h"
#include "stage.h"
#include "workloads.h"

namespace pkprof::overhead {

struct Plan {
  std::vector<Workload> workloads;
  std::vector<Variant> variants;  // "plain" is always measured
  std::vector<int> frequencies;
  int rounds = 3;
  int turns = 10;        // of each profiler in a round
  int starts = 2;        // the same where it is started for each
  double seconds = 0.3;  // of a slice
  double lead = 1;       // between the start of a load and its first slice
  double settle = 1.5;   // between a profiler's attaching and its first slice
};

class Campaign {
 public:
  // `emit` is given each line of the log; `stop` ends it before the next slice.
  Campaign(Plan plan, Stage& stage, std::function<void(const std::string&)> emit,
           const std::atomic<bool>& stop)
      : plan_(std::move(plan)), stage_(stage), emit_(std::move(emit)), stop_(stop) {}

  // Leaves out what cannot be had here, and says so in the log. An error if nothing is left.
  [[nodiscard]] Result<> prepare();
  void run();

 private:
  void keep_usable_workloads();
  void keep_usable_variants();
  void skip(const std::string& name, const std::string& why);
  void under_load(const Workload& workload, int hz, int round);
  struct Resident {
    const Variant* variant = nullptr;
    std::optional<Profiler> profiler;  // none once it has failed
  };
  using Variants = std::vector<const Variant*>;
  // In these: false when the load has failed, or all is to stop.
  [[nodiscard]] bool by_switching(Load& load, Slice slice, const Variants& variants);
  [[nodiscard]] bool by_starting(Load& load, Slice slice, const Variants& variants);
  [[nodiscard]] bool turn(Load& load, Resident& resident, Slice slice);
  [[nodiscard]] bool turn_of_its_own(Load& load, const Variant& variant, Slice slice);
  [[nodiscard]] bool plain_slice(Load& load, Slice slice, double seconds);
  [[nodiscard]] std::optional<Profiler> start(const Variant& variant, const Slice& slice);
  void failed(const Slice& slice, const std::string& why);

  // Told to end. One that does not is not started again over this load: it would take minutes more.
  [[nodiscard]] Result<> end(Profiler& profiler, const Slice& slice);

  Plan plan_;
  std::set<std::pair<std::string, std::string>> hang_;  // workload and variant
  Stage& stage_;
  std::function<void(const std::string&)> emit_;
  const std::atomic<bool>& stop_;
};

}  // namespace pkprof::overhead
