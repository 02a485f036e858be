// SPDX-License-Identifier: Apache-2.0
#include "report/tree/tree.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <ranges>

namespace pkprof {

TreeBuilder::TreeBuilder(const Profile& profile, const FunctionTable& table) {
  const auto stacks = static_cast<StackId>(profile.stack_count());
  bounds_.push_back(0);
  for (StackId id = 0; id < stacks; ++id) {
    for (const FrameId frame : profile.frames_of(id) | std::views::reverse)
      functions_.push_back(table.of_frame[frame]);
    bounds_.push_back(functions_.size());
  }
  std::vector<StackId> order(stacks);
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, [&](StackId a, StackId b) {
    const auto by_path = std::lexicographical_compare_three_way(path(a).begin(), path(a).end(),
                                                                path(b).begin(), path(b).end());
    return by_path != 0 ? by_path < 0 : a < b;
  });
  rank_.resize(stacks);
  for (uint32_t i = 0; i < stacks; ++i) rank_[order[i]] = i;
}

std::span<const FunctionId> TreeBuilder::path(StackId id) const {
  return {functions_.data() + bounds_[id], functions_.data() + bounds_[id + 1]};
}

Tree TreeBuilder::build(std::vector<StackTime>& times) const {
  std::ranges::sort(times, {}, [&](const StackTime& time) { return rank_[time.stack]; });
  Tree tree(1);
  std::vector<NodeId> open = {0};  // the nodes of the path before
  std::span<const FunctionId> before;
  for (const auto& [stack, ns] : times) {
    const std::span<const FunctionId> now = path(stack);
    const auto common = std::ranges::mismatch(before, now).in1 - before.begin();
    open.resize(static_cast<size_t>(common) + 1);
    for (const FunctionId function : now.subspan(static_cast<size_t>(common))) {
      const auto id = static_cast<NodeId>(tree.size());
      tree.push_back({.function = function,
                      .parent = open.back(),
                      .next_sibling = tree[open.back()].first_child});
      tree[open.back()].first_child = id;
      open.push_back(id);
    }
    tree[open.back()].self_ns += ns;
    before = now;
  }
  for (size_t i = tree.size(); i-- > 0;) {
    tree[i].total_ns += tree[i].self_ns;
    if (i > 0) tree[tree[i].parent].total_ns += tree[i].total_ns;
  }
  return tree;
}

std::vector<NodeId> children_of(const Tree& tree, NodeId id) {
  std::vector<NodeId> children;
  for (NodeId child = tree[id].first_child; child != no_node; child = tree[child].next_sibling)
    children.push_back(child);
  std::ranges::reverse(children);  // they were linked in front
  std::ranges::stable_sort(children, std::greater(),
                           [&](NodeId child) { return tree[child].total_ns; });
  return children;
}

}  // namespace pkprof
