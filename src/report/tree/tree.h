// SPDX-License-Identifier: Apache-2.0
// Call trees of functions, root first, for reports and exports that show them.
//
// Stacks are sorted once, as sequences of functions from the root. A tree is then a walk over some
// of them in that order: what a stack has in common with the one before it is there already, the
// rest is new. No lookups, and memory for one tree at a time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/profile.h"
#include "report/functions.h"

namespace pkprof {

using NodeId = uint32_t;
inline constexpr NodeId no_node = UINT32_MAX;

struct TreeNode {
  FunctionId function = 0;
  NodeId parent = no_node;
  NodeId first_child = no_node;
  NodeId next_sibling = no_node;
  uint64_t self_ns = 0;
  uint64_t total_ns = 0;
};

// Node 0 is the root, which has no function. Parents come before their children.
using Tree = std::vector<TreeNode>;

// Time that was spent in a stack.
struct StackTime {
  StackId stack = 0;
  uint64_t ns = 0;
};

class TreeBuilder {
 public:
  // Both must outlive the builder.
  TreeBuilder(const Profile& profile, const FunctionTable& table);

  // Sorts `times` on the way. A stack may occur more than once.
  [[nodiscard]] Tree build(std::vector<StackTime>& times) const;

 private:
  [[nodiscard]] std::span<const FunctionId> path(StackId id) const;  // root first

  std::vector<FunctionId> functions_;  // the paths, one after the other
  std::vector<uint64_t> bounds_;       // path i is functions_[bounds[i] .. bounds[i+1])
  std::vector<uint32_t> rank_;         // by StackId: its place in the order of the paths
};

// The children of a node, largest first; of the same size, in the order they were found.
[[nodiscard]] std::vector<NodeId> children_of(const Tree& tree, NodeId id);

}  // namespace pkprof
