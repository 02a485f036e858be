// SPDX-License-Identifier: Apache-2.0
// When hooks may rest: while no sample needs what they say, or while nearly all of their runs have
// nothing to say. Nothing is inferred meanwhile: what a resting hook would have said is not known.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace pkprof {

class RestingHooks {
 public:
  // Samples up to now of what the hooks may be needed for, and those of them that did need them.
  // Returns whether the hooks may rest from now on: hardly any sample needs them. Each time that
  // more need them after all it takes longer to be sure again.
  bool look(uint64_t samples, uint64_t needed);

 private:
  void begin(uint64_t samples, uint64_t needed);

  uint64_t samples_ = 0;  // up to the begin of what is looked at
  uint64_t needed_ = 0;
  uint64_t enough_ = 192;  // samples, to be sure
  bool rests_ = false;
};

// A hook on taking data from a socket, beside a process that asks for it all the time: it runs a
// million times a second, to see that there was none. While it rests work is charged to the
// socket's holder without the call path; now and then it is seen whether that is over.
class VainRuns {
 public:
  // Runs up to now that were in vain, by CPU. Returns whether the hook may rest from now on.
  bool look(std::span<const uint64_t> in_vain, uint64_t now);

 private:
  std::vector<uint64_t> in_vain_;
  uint64_t since_ = 0;
  uint64_t rests_until_ = 0;
};

// A hook on what fires for much else: it rests once there has been hardly any of its own for a
// second, and is back as soon as there is.
class RareRuns {
 public:
  // Those of its own up to now, which others count. Returns whether the hook may rest from now on.
  bool look(uint64_t runs, uint64_t now);

 private:
  uint64_t runs_ = 0;
  uint64_t looked_ = 0;
  uint64_t seen_ = 0;  // when there were some last
};

}  // namespace pkprof
