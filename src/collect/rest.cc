// SPDX-License-Identifier: Apache-2.0
#include "collect/rest.h"

namespace pkprof {
namespace {

constexpr uint64_t enough_samples = 24;  // to say that hardly any need the hooks
// Of hooks that rest: if most samples need them, so many say enough; else it is seen after so long.
constexpr uint64_t at_once = 8;
constexpr uint64_t at_last_ns = 1'500'000'000;

}  // namespace

bool Rest::look(uint64_t samples, uint64_t needed, uint64_t now) {
  const uint64_t seen = samples - samples_;
  const uint64_t these = needed - needed_;
  const bool says_enough =
      rests_ ? (these >= at_once && these * 2 > seen) || (seen > 0 && now >= since_ + at_last_ns)
             : seen >= enough_samples;
  if (!says_enough) return rests_;
  const double part = static_cast<double>(these) / static_cast<double>(seen);
  rests_ = part <= (rests_ ? 2 * hardly_any_ : hardly_any_);
  since_ = now;
  samples_ = samples;
  needed_ = needed;
  return rests_;
}

}  // namespace pkprof
