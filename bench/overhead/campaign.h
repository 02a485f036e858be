// SPDX-License-Identifier: Apache-2.0
// The measurement. In each round, for each frequency and workload: the load is started, and while
// it goes on profilers come and go over it, one after the other. It has a slice under each, and one
// under none before the first, between any two and after the last. So what differs from one start
// of a load to the next (how two ends of a connection settle) is the same for all that is compared,
// and the machine has had seconds to drift, not minutes. The order of the profilers rotates from
// round to round. CPUs do not halt meanwhile (awake.h), but for workloads that say so.
#pragma once

#include <atomic>
#include <functional>
#include <string>
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
  int rounds = 11;
  double seconds = 1;  // of a slice
  double lead = 1;     // between the start of a load and its first slice
  double settle = 1;   // between a profiler's attaching and its slice
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
  [[nodiscard]] bool turn(Load& load, const Variant& variant, Slice slice);
  [[nodiscard]] bool plain_slice(Load& load, Slice slice);
  void failed(const Slice& slice, const std::string& why);

  Plan plan_;
  Stage& stage_;
  std::function<void(const std::string&)> emit_;
  const std::atomic<bool>& stop_;
};

}  // namespace pkprof::overhead
