// SPDX-License-Identifier: Apache-2.0
#include "cost/windows.h"

#include <algorithm>

namespace pkprof {
namespace {

constexpr double second_ns = 1e9;
constexpr double savings_ns = 1e9;      // a CPU saves what it earns in this time,
constexpr double loan_ns = 6e9;         // and begins with what it earns in this
constexpr double earns = 0.9;           // of its share
constexpr double earns_at_first = 0.3;  // while it pays back
constexpr uint64_t pays_back_ns = 10'000'000'000;
constexpr double longest_paid_ns = 4e9;  // a window may take what a CPU earns in this time

}  // namespace

Windows::Windows(double budget, uint64_t seed, uint64_t now)
    : share_(budget < 1 ? budget : 0),
      random_(static_cast<std::minstd_rand::result_type>(seed | 1)),
      start_(now),
      now_(now) {
  begin_window(now);
}

double Windows::random_between(double low, double high) {
  return std::uniform_real_distribution<double>(low, high)(random_);
}

void Windows::begin_window(uint64_t now) {
  watching_ = true;
  began_ = now;
  began_at_ = spent_ns_;
  length_ns_ = random_between(0.7, 1.3) * second_ns;
}

void Windows::settle(uint64_t now, std::span<const uint64_t> spent_ns) {
  const bool pays_back = now < start_ + pays_back_ns;
  const double most = share_ * (pays_back ? loan_ns : savings_ns);
  const double earned =
      static_cast<double>(now - now_) * share_ * (pays_back ? earns_at_first : earns);
  spent_ns_.resize(spent_ns.size());
  began_at_.resize(spent_ns.size());
  credit_ns_.resize(spent_ns.size(), most);
  for (size_t cpu = 0; cpu < spent_ns.size(); ++cpu) {
    // Less than nothing where what was thought to be dear turns out to be cheap.
    const double paid = static_cast<double>(spent_ns[cpu]) - static_cast<double>(spent_ns_[cpu]);
    credit_ns_[cpu] = std::min(credit_ns_[cpu] + earned - paid, most);
    spent_ns_[cpu] = spent_ns[cpu];
  }
  now_ = now;
}

bool Windows::watch(uint64_t now, std::span<const uint64_t> spent_ns) {
  if (share_ <= 0 || spent_ns.empty()) return true;
  settle(now, spent_ns);
  const double least = std::ranges::min(credit_ns_);
  if (!watching_) {
    if (least >= needed_ns_) begin_window(now);
    return watching_;
  }
  if (least >= 0) return true;
  uint64_t paid = 0;
  for (size_t cpu = 0; cpu < spent_ns_.size(); ++cpu)
    paid = std::max(paid, spent_ns_[cpu] - std::min(spent_ns_[cpu], began_at_[cpu]));
  const bool is_long = static_cast<double>(now - began_) >= length_ns_;
  if (!is_long && static_cast<double>(paid) < share_ * longest_paid_ns) return true;
  watching_ = false;
  needed_ns_ = random_between(0, share_ * savings_ns);
  return false;
}

void Windows::begin(uint64_t now, std::span<const uint64_t> spent_ns) {
  now_ = now;
  spent_ns_.assign(spent_ns.begin(), spent_ns.end());
  begin_window(now);
}

}  // namespace pkprof
