// SPDX-License-Identifier: Apache-2.0
#include "model/durations.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace pkprof {
namespace {

constexpr uint64_t first_octave_ns = 64;

}  // namespace

uint64_t Durations::start_ns(size_t bucket) {
  const size_t octave = std::min(bucket, buckets) / steps;
  if (octave == 0) return bucket == 0 ? 0 : first_octave_ns;
  const uint64_t base = first_octave_ns << (octave - 1);
  return base + base / steps * (bucket % steps);
}

size_t Durations::bucket_of(uint64_t ns) {
  if (ns < first_octave_ns) return 0;
  const auto octave = static_cast<size_t>(std::bit_width(ns / first_octave_ns));  // 1: 64 to 127
  if (octave >= octaves) return buckets - 1;
  return octave * steps + (ns >> (octave + 2)) % steps;
}

void Durations::add(size_t bucket, uint64_t count) {
  counts_[std::min(bucket, buckets - 1)] += count;
  count_ += count;
}

void Durations::subtract(const Durations& before) {
  count_ = 0;
  for (size_t i = 0; i < buckets; ++i) {
    counts_[i] -= std::min(counts_[i], before.counts_[i]);
    count_ += counts_[i];
  }
}

uint64_t Durations::percentile_ns(double share) const {
  if (count_ == 0) return 0;
  const double wanted = std::clamp(share, 0.0, 1.0) * static_cast<double>(count_);
  double before = 0;
  for (size_t i = 0; i < buckets; ++i) {
    if (!counts_[i]) continue;
    const auto here = static_cast<double>(counts_[i]);
    if (before + here >= wanted) {
      const auto start = static_cast<double>(start_ns(i));
      const auto end = static_cast<double>(start_ns(i + 1));
      return static_cast<uint64_t>(start + (end - start) * (wanted - before) / here);
    }
    before += here;
  }
  return start_ns(buckets);
}

}  // namespace pkprof
