// SPDX-License-Identifier: Apache-2.0
// The table of results: printed at the end, one row a scenario.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>

#include "perf_beside.h"
#include "scenario.h"

namespace pkprof::accuracy {

struct Limits {
  double ends_at_least = 95;  // percent
  double unclaimed_at_most = 5;
  double bystander_at_most = live::bystander_limit();
};

// A scenario's work, and whom it is for.
struct Work {
  std::set<int> ends;
  int bystander = 0;
  std::set<int> pinned;  // not empty: only NET_RX that did not run on these (see scenario.h)
  // What counts, where that is not all of the network's softirq time.
  // NOLINTNEXTLINE(*-redundant-member-init): initializers may leave it out
  std::function<bool(const live::Flow&)> counts = {};
};

struct Observed {
  live::Report report;
  live::Shares shares;
  std::optional<double> perf_on_bystander;
};

struct Amount {
  double seconds = 1.5;  // a recording is made again, longer, until it has the samples
  uint64_t min_samples = 1000;
  int frequency_hz = 3989;
  const char* budget = "100";  // all is on, as by default, also at so many samples
};

// Records with perf beside, puts a row into the table and fails the test where a limit is missed.
Observed measure(const std::string& scenario, const Work& work, const Limits& limits,
                 const Amount& amount = {});
// The same of a report that was made otherwise.
Observed note(const std::string& scenario, live::Report report, const Work& work,
              const Limits& limits);
// A recording of the whole machine, of so many seconds, with what happens only once in it: when
// this is made it has begun.
class Begun {
 public:
  Begun(int seconds, const char* budget);
  live::Report report();  // once it has ended

 private:
  live::TempDir dir_;
  std::optional<live::Running> record_;
};

// A row's remark.
void remark(const std::string& text);
// Of what counts, what was for one over what was for the other. With the truth beside it, it is
// the row's remark.
double show_ratio(const live::Report& report, const std::function<bool(const live::Flow&)>& counts,
                  int one, int other, double truth);
// The same, and the test fails if it is not the truth within a tenth and, of what is sampled, what
// chance makes of so many samples, and of so many votes, where those decide. Guests only show it.
enum class Time : uint8_t { sampled, measured };
void expect_ratio(const live::Report& report, const std::function<bool(const live::Flow&)>& counts,
                  int one, int other, double truth, Time time = Time::sampled, uint64_t votes = 0);

}  // namespace pkprof::accuracy
