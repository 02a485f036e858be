// SPDX-License-Identifier: Apache-2.0
// What the kernel side has counted, as it is read from its tables.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "pkprof/user_abi.h"

namespace pkprof {

// A stack as the kernel side hands it over: leaf first, by its number. For its frames in files see
// PK_FRAME_IN_FILE.
using RawStack = std::pair<uint64_t, std::vector<uint64_t>>;

// One of them, and how it ended, if it is of user code.
struct CountedStack {
  CountedStack() = default;
  CountedStack(std::vector<uint64_t> frames, pk_stack_end ended = PK_STACK_ASIDE)
      : ip(std::move(frames)), end(ended) {}

  std::vector<uint64_t> ip;  // none: it is not known
  pk_stack_end end = PK_STACK_ASIDE;
};

struct Tables {
  std::vector<std::pair<pk_key, pk_count>> counts;
  std::vector<RawStack> stacks;  // of a snapshot; what is taken leaves them: KernelTables::stack()
  std::vector<std::pair<uint64_t, pk_label>> labels;
  std::vector<std::pair<pk_vote_key, pk_vote>> votes;
  uint64_t taken = 0;       // up to when
  uint64_t watched_ns = 0;  // for how long counting was enabled, up to then
  uint64_t idle_ns = 0;     // up to then, of CPUs whose sampling clock had stopped for idleness
};

// What is not in the tables yet, for the end of a recording.
struct Leftovers {
  std::vector<std::pair<uint64_t, pk_charge>> slots;  // on an object's account
  std::vector<pk_charge> waiting;  // in a CPU's own, for a hook that will not come any more
  std::vector<pk_exact> exact;     // exact time
  std::vector<std::pair<pk_vote_key, pk_vote>> votes;
};

}  // namespace pkprof
