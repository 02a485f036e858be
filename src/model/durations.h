// SPDX-License-Identifier: Apache-2.0
// A histogram of durations: an eighth of an octave a bucket, so that a percentile is known within
// an eighth of itself.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace pkprof {

class Durations {
 public:
  static constexpr size_t octaves = 32;  // up to 64 ns, and to 2, 4, 8 ... times that
  static constexpr size_t steps = 8;     // of each
  static constexpr size_t buckets = octaves * steps;

  // The first nanosecond of a bucket; the first one has all below 64 ns, and `steps` buckets
  // together are its octave. `bucket` may be `buckets`: what is past the last one.
  [[nodiscard]] static uint64_t start_ns(size_t bucket);
  // The bucket that a duration falls into. The kernel side has the same (bpf/debox/call.bpf.c).
  [[nodiscard]] static size_t bucket_of(uint64_t ns);

  void add(size_t bucket, uint64_t count);
  // Takes away what was there at an earlier time.
  void subtract(const Durations& before);
  [[nodiscard]] uint64_t count() const { return count_; }
  // The duration that a share of all, 0 to 1, does not exceed, as if they were spread evenly over
  // each bucket; 0 where there are none.
  [[nodiscard]] uint64_t percentile_ns(double share) const;

 private:
  std::array<uint64_t, buckets> counts_{};
  uint64_t count_ = 0;
};

}  // namespace pkprof
