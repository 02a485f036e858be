// SPDX-License-Identifier: Apache-2.0
#include "summary.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace pkprof::overhead {
namespace {

Spread spread_of(std::vector<double> values) {
  std::ranges::sort(values);
  return {values.size(), quantile(values, 0.25), quantile(values, 0.5), quantile(values, 0.75)};
}

Gap gap_of(std::vector<double> values) {
  std::ranges::sort(values);
  const auto n = static_cast<double>(values.size());
  const auto rank = static_cast<size_t>(std::max(0.0, std::floor((n - 1.96 * std::sqrt(n)) / 2)));
  return {values.size(), quantile(values, 0.5), values[rank], values[values.size() - 1 - rank]};
}

// The mean of those that there are.
std::optional<double> mean(const Slice* one, const Slice* other) {
  if (one && other) return (one->value + other->value) / 2;
  if (one || other) return (one ? one : other)->value;
  return {};
}

// The plain slice nearest to each, in the direction that the range is walked in.
template <typename Range>
std::map<const Slice*, const Slice*> nearest_plain(const Range& slices) {
  std::map<const Slice*, const Slice*> nearest;
  const Slice* last = nullptr;
  for (const Slice* s : slices) {
    nearest[s] = last;
    if (s->variant == kPlain) last = s;
  }
  return nearest;
}

}  // namespace

double quantile(const std::vector<double>& sorted, double share) {
  if (sorted.empty()) return std::numeric_limits<double>::quiet_NaN();
  const double at = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(at);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(sorted[below], sorted[above], at - static_cast<double>(below));
}

Summary::Summary(const std::vector<Run>& runs) {
  for (size_t i = 0; i < runs.size(); ++i) add(i, runs[i].slices);
}

void Summary::add(size_t run, const std::vector<Slice>& slices) {
  std::map<std::tuple<std::string, int, int>, std::vector<const Slice*>> by_load;
  for (const Slice& s : slices) by_load[{s.workload, s.hz, s.round}].push_back(&s);
  for (auto& [load, mine] : by_load) {
    const std::string& workload = std::get<0>(load);
    const auto before = nearest_plain(mine);
    std::ranges::reverse(mine);
    const auto after = nearest_plain(mine);
    for (const Slice* s : mine) {
      const bool is_plain = s->variant == kPlain;
      if (is_plain) plain_[workload].push_back(s->value);
      if (!is_plain) frequencies_.insert(s->hz);
      // The first and the last plain slice have a neighbour on one side only: drift between the
      // two would look like noise.
      if (is_plain && !(before.at(s) && after.at(s))) continue;
      const auto without = mean(before.at(s), after.at(s));
      if (!without || *without <= 0) continue;
      if (is_plain) {
        noise_[workload].push_back(s->value / *without);
      } else {
        ratios_[{workload, s->hz, s->variant}][{run, s->round, s->turn}] = s->value / *without;
      }
    }
  }
}

std::optional<Spread> Summary::ratio(const std::string& workload, int hz,
                                     const std::string& variant) const {
  if (variant == kPlain) {
    const auto found = noise_.find(workload);
    if (found == noise_.end()) return {};
    return spread_of(found->second);
  }
  const auto found = ratios_.find({workload, hz, variant});
  if (found == ratios_.end()) return {};
  std::vector<double> values;
  for (const auto& [turn, value] : found->second) values.push_back(value);
  return spread_of(std::move(values));
}

std::optional<Spread> Summary::plain(const std::string& workload) const {
  const auto found = plain_.find(workload);
  if (found == plain_.end()) return {};
  return spread_of(found->second);
}

std::optional<Gap> Summary::under(const std::string& workload, int hz, const std::string& variant,
                                  const std::string& reference) const {
  const auto ours = ratios_.find({workload, hz, variant});
  const auto theirs = ratios_.find({workload, hz, reference});
  if (ours == ratios_.end() || theirs == ratios_.end()) return {};
  std::vector<double> differences;
  for (const auto& [turn, value] : ours->second) {
    const auto match = theirs->second.find(turn);
    if (match != theirs->second.end()) differences.push_back(match->second - value);
  }
  if (differences.empty()) return {};
  return gap_of(std::move(differences));
}

}  // namespace pkprof::overhead
