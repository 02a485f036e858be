// SPDX-License-Identifier: Apache-2.0
// Stacks as the page draws them: one tree of calls for the whole profile, and the time at its nodes
// by who ran, who was served, by what and why. A page is bounded, whatever the profile: calls that
// took the least time are summed up under their callers, and it is said how much that may be. Of a
// profile of waits, it is where threads waited, and where those were who woke them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/profile.h"
#include "report/functions.h"
#include "report/ledger.h"

namespace pkprof {

struct PageNode {
  uint32_t parent = 0;  // it stands before its children; node 0 is the root, its own parent
  FunctionId function = 0;
};

// To whom a sample is charged.
struct PageCharge {
  LabelId served = 0;
  Part part = Part::user;  // of what was done for `served`
  bool taken = false;      // from whoever was on the CPU

  bool operator==(const PageCharge&) const = default;
};

inline constexpr LabelId not_woken = UINT32_MAX;

struct PageSample {
  LabelId ran_on = 0;
  LabelId served = 0;
  StringId source = 0;
  Basis basis = Basis::own;
  Part part = Part::user;  // of what was done for `served`
  bool taken = false;      // from `ran_on`
  bool for_client = false;
  PageCharge by_client;  // as charged_to_clients() has it; as above, unless `for_client`
  uint32_t call = 0;     // node of the client's own call, below which a server's is; 0: not known
  uint32_t node = 0;
  LabelId waker = not_woken;  // of a wait: who ended it
  uint32_t waker_node = 0;    // where it was then
  uint64_t ns = 0;

  [[nodiscard]] bool is_like(const PageSample& other) const;
};

struct PageStacks {
  FunctionTable functions;
  std::vector<PageNode> nodes;
  std::vector<PageSample> samples;  // of all that is not idle; each once
  // Of nodes that are summed up: the function they have, one past the others, and the time that
  // each of them stays below. Without such, 0.
  FunctionId small = 0;
  uint64_t small_ns = 0;
};

inline constexpr size_t most_page_nodes = 150'000;

[[nodiscard]] PageStacks page_stacks(const Profile& profile, size_t most_nodes = most_page_nodes);

}  // namespace pkprof
