// SPDX-License-Identifier: Apache-2.0
// Times of calls where no stacks are known: as gprof has them. The time of a function, and of what
// it called, is divided among its callers by how often each called it, as if every call cost the
// same; functions that call each other around are one for that.
//
// S. Graham, P. Kessler, M. McKusick, "gprof: a Call Graph Execution Profiler", 1982.
#pragma once

#include <cstdint>
#include <vector>

#include "report/listing/call_graph.h"

namespace pkprof {

// Fills in all times but the nodes' own, which are there; `counts` are by arc. A member of a cycle
// has the time of itself and of what it called outside, and calls within one have none.
void divide_by_counts(CallGraph& graph, const std::vector<uint64_t>& counts);

}  // namespace pkprof
