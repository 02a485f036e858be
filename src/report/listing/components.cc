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
  ComponentFinder(std::span<const uint32_t> bounds, std::span<const uint32_t> targets)
      : bounds_(bounds),
        targets_(targets),
        order_(bounds.empty() ? 0 : bounds.size() - 1),
        low_(order_.size()) {}

  Components run() {
    for (uint32_t id = 0; id < order_.size(); ++id) {
      if (order_[id] == 0) visit_from(id);
    }
    return std::move(found_);
  }

 private:
  struct Visit {
    uint32_t node;
    uint32_t next;  // of its targets
  };
  static constexpr uint32_t done = UINT32_MAX;  // in a component already

  void enter(uint32_t id) {
    order_[id] = low_[id] = ++entered_;
    pending_.push_back(id);
    visits_.push_back({id, bounds_[id]});
  }

  void visit_from(uint32_t start) {
    enter(start);
    while (!visits_.empty()) {
      Visit& visit = visits_.back();
      const uint32_t id = visit.node;
      if (visit.next < bounds_[id + 1]) {
        const uint32_t target = targets_[visit.next++];
        if (order_[target] == 0)
          enter(target);
        else if (order_[target] != done)
          low_[id] = std::min(low_[id], order_[target]);
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
  void close(uint32_t head) {
    const auto first = std::find(pending_.rbegin(), pending_.rend(), head).base() - 1;
    for (auto it = first; it != pending_.end(); ++it) order_[*it] = done;
    found_.nodes.insert(found_.nodes.end(), first, pending_.end());
    found_.bounds.push_back(found_.nodes.size());
    pending_.erase(first, pending_.end());
  }

  std::span<const uint32_t> bounds_, targets_;
  std::vector<uint32_t> order_;  // of entering, from 1
  std::vector<uint32_t> low_;    // the first entered that can be reached
  uint32_t entered_ = 0;
  std::vector<Visit> visits_;
  std::vector<uint32_t> pending_;
  Components found_;
};

}  // namespace

Components components_of(std::span<const uint32_t> bounds, std::span<const uint32_t> targets) {
  return ComponentFinder(bounds, targets).run();
}

}  // namespace pkprof
