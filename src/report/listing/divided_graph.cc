// SPDX-License-Identifier: Apache-2.0
// See divided_graph.h.
#include "report/listing/divided_graph.h"

#include <algorithm>

namespace pkprof {

namespace {

uint64_t part_of(uint64_t ns, uint64_t count, uint64_t of) {
  return of == 0 ? 0 : static_cast<uint64_t>(static_cast<unsigned __int128>(ns) * count / of);
}

class Divider {
 public:
  Divider(CallGraph& graph, const std::vector<uint64_t>& counts)
      : graph_(graph), counts_(counts), component_(graph.nodes.size()) {}

  // Callees come before their callers, so what a component called is known when it is its turn.
  void run() {
    const Components components = graph_.components();
    for (uint32_t i = 0; i < components.size(); ++i) {
      for (const CallNodeId id : components.of(i)) component_[id] = i;
    }
    for (uint32_t i = 0; i < components.size(); ++i) divide(components.of(i));
  }

 private:
  [[nodiscard]] bool is_within(const CallArc& arc) const {
    return component_[arc.caller] == component_[arc.callee];
  }

  void divide(std::span<const CallNodeId> members) {
    uint64_t self_ns = 0;
    uint64_t total_ns = 0;
    uint64_t calls = 0;
    for (const CallNodeId id : members) {
      CallNode& node = graph_.nodes[id];
      node.total_ns = node.self_ns;
      for (const CallArcId arc : graph_.calls_from(id)) {
        if (!is_within(graph_.arcs[arc])) node.total_ns += graph_.arcs[arc].total_ns;
      }
      for (const CallArcId arc : graph_.calls_to(id)) {
        if (!is_within(graph_.arcs[arc])) calls += counts_[arc];
      }
      self_ns += node.self_ns;
      total_ns += node.total_ns;
    }
    for (const CallNodeId id : members) {
      for (const CallArcId arc : graph_.calls_to(id)) {
        CallArc& into = graph_.arcs[arc];
        if (is_within(into)) continue;
        into.self_ns = part_of(self_ns, counts_[arc], calls);
        into.total_ns = part_of(total_ns, counts_[arc], calls);
      }
    }
  }

  CallGraph& graph_;
  const std::vector<uint64_t>& counts_;
  std::vector<uint32_t> component_;
};

}  // namespace

void divide_by_counts(CallGraph& graph, const std::vector<uint64_t>& counts) {
  graph.complete(false);
  Divider(graph, counts).run();
  graph.complete();
  // A cycle that nothing calls has its members' time all the same.
  for (Cycle& cycle : graph.cycles) {
    uint64_t ns = 0;
    for (const CallNodeId id : cycle.members) ns += graph.nodes[id].total_ns;
    cycle.total_ns = std::max(cycle.total_ns, ns);
  }
}

}  // namespace pkprof
