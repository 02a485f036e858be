// SPDX-License-Identifier: Apache-2.0
// The measurement. For each round and frequency: every workload with no profiler, then each
// profiler is started, every workload has a slice while it samples, and it is ended. The order of
// profilers and of workloads rotates from round to round, so that none has its place always: what a
// profiler does every few seconds must not fall to the same workload, nor the machine's drift to
// the same profiler. The last thing is again every workload with none, so that each slice lies
// between two.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
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
  double lead = 2;     // of the same load before it, which do not count
  double settle = 1;   // between a profiler's attaching and its first slice
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
  void turn(const Variant& variant, int hz, int round);
  void slices(const Variant& variant, int hz, int round, Profiler* profiler);
  void all_failed(const Variant& variant, int hz, int round, const std::string& why);

  Plan plan_;
  Stage& stage_;
  std::function<void(const std::string&)> emit_;
  const std::atomic<bool>& stop_;
};

}  // namespace pkprof::overhead
