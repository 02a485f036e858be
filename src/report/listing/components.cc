// SPDX-License-Identifier: Apache-2.0
// See components.h. Stacks may be as deep as a file says, so nothing here recurses.
#include "report/listing/components.h"

#include <algorithm>
#include <utility>

namespace pkprof {

namespace {

// Strongly connected components by Tarjan's algorithm ("Depth-first search and linear graph
// algorithms", 1972), with a stack of its own in place of the recursion.
class ComponentFinder {
 public:
  explicit ComponentFinder(const CallGraph& graph)
      : graph_(graph), order_(graph.nodes.size()), low_(graph.nodes.size()) {}

  Components run() {
    for (CallNodeId id = 0; id < order_.size(); ++id) {
      if (order_[id] == 0) visit_from(id);
    }
    return std::move(found_);
  }

 private:
  struct Visit {
    CallNodeId node;
    uint32_t next;  // of its calls
  };
  static constexpr uint32_t done = UINT32_MAX;  // in a component already

  void enter(CallNodeId id) {
    order_[id] = low_[id] = ++entered_;
    pending_.push_back(id);
    visits_.push_back({id, 0});
  }

  void visit_from(CallNodeId start) {
    enter(start);
    while (!visits_.empty()) {
      Visit& visit = visits_.back();
      const CallNodeId id = visit.node;
      const auto calls = graph_.calls_from(id);
      if (visit.next < calls.size()) {
        const CallNodeId callee = graph_.arcs[calls[visit.next++]].callee;
        if (order_[callee] == 0)
          enter(callee);
        else if (order_[callee] != done)
          low_[id] = std::min(low_[id], order_[callee]);
        continue;
      }
      visits_.pop_back();
      if (!visits_.empty()) {
        uint32_t& above = low_[visits_.back().node];
        above = std::min(above, low_[id]);
      }
      if (low_[id] == order_[id]) close(id);
    }
  }

  // All that was entered since `head` and is in no component yet.
  void close(CallNodeId head) {
    const auto first = std::find(pending_.rbegin(), pending_.rend(), head).base() - 1;
    for (auto it = first; it != pending_.end(); ++it) order_[*it] = done;
    found_.nodes.insert(found_.nodes.end(), first, pending_.end());
    found_.bounds.push_back(found_.nodes.size());
    pending_.erase(first, pending_.end());
  }

  const CallGraph& graph_;
  std::vector<uint32_t> order_;  // of entering, from 1
  std::vector<uint32_t> low_;    // the first entered that can be reached
  uint32_t entered_ = 0;
  std::vector<Visit> visits_;
  std::vector<CallNodeId> pending_;
  Components found_;
};

}  // namespace

Components components_of(const CallGraph& graph) {
  return ComponentFinder(graph).run();
}

}  // namespace pkprof
