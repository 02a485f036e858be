// SPDX-License-Identifier: Apache-2.0
// The strongly connected components of a call graph: functions that call each other around, and
// each of the others by itself.
#pragma once

#include <span>
#include <vector>

#include "report/listing/call_graph.h"

namespace pkprof {

struct Components {
  std::vector<CallNodeId> nodes;     // one component behind the other
  std::vector<size_t> bounds = {0};  // component i is nodes[bounds[i] .. bounds[i+1])

  [[nodiscard]] size_t size() const { return bounds.size() - 1; }
  [[nodiscard]] std::span<const CallNodeId> of(size_t i) const {
    return std::span(nodes).subspan(bounds[i], bounds[i + 1] - bounds[i]);
  }
};

// Each behind all that it calls. The graph knows already who calls whom.
[[nodiscard]] Components components_of(const CallGraph& graph);

}  // namespace pkprof
