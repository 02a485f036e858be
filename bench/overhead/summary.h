// SPDX-License-Identifier: Apache-2.0
// What a log says in the end.
//
// Machines are noisy, and drift: so a slice is worth something only beside the plain slices of the
// same load next to it in time, before and after (their mean), and only in numbers. Of such ratios
// the median counts; the quartiles tell how they are spread. Two variants are compared turn by
// turn, where they had the same load at nearly the same time, and so most of the noise in common.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "log.h"

namespace pkprof::overhead {

// Of sorted values: linear between the two nearest. NaN of none.
[[nodiscard]] double quantile(const std::vector<double>& sorted, double share);

struct Spread {
  size_t turns = 0;
  double low = 0;  // lower quartile
  double median = 0;
  double high = 0;
};

// How much lower one ratio is than another: the median over turns, and where that median lies with
// 95 % confidence, whatever the distribution (between order statistics; under six: between
// the smallest and the largest).
struct Gap {
  size_t turns = 0;
  double median = 0;
  double from = 0;
  double to = 0;
};

class Summary {
 public:
  explicit Summary(const std::vector<Run>& runs);

  [[nodiscard]] const std::set<int>& frequencies() const { return frequencies_; }
  // With : without. "plain" is its own noise: a plain slice with those before and after it.
  [[nodiscard]] std::optional<Spread> ratio(const std::string& workload, int hz,
                                            const std::string& variant) const;
  // Of what was measured without a profiler, per second.
  [[nodiscard]] std::optional<Spread> plain(const std::string& workload) const;
  // By how much `variant` is under `reference`.
  [[nodiscard]] std::optional<Gap> under(const std::string& workload, int hz,
                                         const std::string& variant,
                                         const std::string& reference) const;

 private:
  using Key = std::tuple<std::string, int, std::string>;  // workload, hz, variant
  using Turn = std::tuple<size_t, int, int>;              // run, round, turn
  void add(size_t run, const std::vector<Slice>& slices);

  std::map<Key, std::map<Turn, double>> ratios_;
  std::map<std::string, std::vector<double>> noise_;  // by workload: plain slices to each other
  std::map<std::string, std::vector<double>> plain_;
  std::set<int> frequencies_;
};

}  // namespace pkprof::overhead
