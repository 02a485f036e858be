// SPDX-License-Identifier: Apache-2.0
// The call graph: functions and who called whom, with times from whole stacks.
//
// gprof knows how often a function was called from where, and divides its time among the callers as
// if every call cost the same. A stack says for whom its time was spent, so nothing is divided
// here: the time of a function is that of all stacks it is in, the time of a call that of all
// stacks in which the one called the other. Recursion does not count twice: a stack counts once for
// each function and once for each pair.
//
// Functions that call each other around are a cycle (a strongly connected component of more than
// one). A stack enters a cycle once at most and leaves it once, as what called into it again would
// be part of it: so the calls into a cycle add up to its time, and so do its members' own times
// with the calls out of it. The times of calls within a cycle overlap.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "model/index_table.h"
#include "report/functions.h"
#include "report/listing/components.h"

namespace pkprof {

using CallNodeId = uint32_t;
using CallArcId = uint32_t;
using CycleId = uint32_t;
inline constexpr CallNodeId no_call_node = UINT32_MAX;
inline constexpr CallArcId no_call_arc = UINT32_MAX;
inline constexpr FunctionId no_function = UINT32_MAX;
inline constexpr CycleId no_cycle = UINT32_MAX;

// A function, or a root: what stacks are of, and nothing calls.
struct CallNode {
  uint32_t scope = 0;  // whose functions these are; of a root, its number
  FunctionId function = no_function;
  uint64_t self_ns = 0;
  uint64_t total_ns = 0;          // of all stacks it is in
  uint64_t calls = 0;             // by others, where counted
  uint64_t other_calls = 0;       // of `calls`, those that are of no arc
  uint64_t recursive_calls = 0;   // by itself
  bool all_calls_counted = true;  // however it was called; never of a root
  bool counts_itself = false;     // so calls that no arc has were none
  CycleId cycle = no_cycle;
};

struct CallArc {
  CallNodeId caller = 0;
  CallNodeId callee = 0;
  uint64_t self_ns = 0;   // in the callee itself, called by the caller
  uint64_t total_ns = 0;  // of all stacks in which the one calls the other
  uint64_t calls = 0;     // where counted
};

struct Cycle {
  std::vector<CallNodeId> members;  // largest total first
  uint64_t self_ns = 0;
  uint64_t total_ns = 0;
  uint64_t calls = 0;            // from outside, where counted
  uint64_t recursive_calls = 0;  // among the members
};

class CallGraph {
 public:
  std::vector<CallNode> nodes;  // in order of appearance
  std::vector<CallArc> arcs;
  std::vector<Cycle> cycles;  // largest total first

  // By number, which is by appearance.
  [[nodiscard]] std::span<const CallArcId> calls_to(CallNodeId id) const {
    return of(into_, into_bounds_, id);
  }
  [[nodiscard]] std::span<const CallArcId> calls_from(CallNodeId id) const {
    return of(out_, out_bounds_, id);
  }
  // Both ends are in one cycle, or are one.
  [[nodiscard]] bool is_recursive(const CallArc& arc) const;
  // Of a cycle's time, what was spent in this member and in what it called outside.
  [[nodiscard]] uint64_t share_of_cycle_ns(CallNodeId member) const;

  // Of functions that call each other around, each behind all that it calls; of a complete graph.
  [[nodiscard]] Components components() const;

  // All that follows from nodes and arcs, which were filled or changed: who calls whom, sums of
  // calls, and, unless left out, cycles.
  void complete(bool with_cycles = true);

 private:
  using Ids = std::vector<CallArcId>;
  using Bounds = std::vector<uint32_t>;  // of node i, ids [bounds[i] .. bounds[i+1])

  static std::span<const CallArcId> of(const Ids& ids, const Bounds& bounds, CallNodeId id) {
    return {ids.data() + bounds[id], ids.data() + bounds[id + 1]};
  }
  void link();
  void add_calls();
  void find_cycles();
  void measure_cycles();

  Ids into_, out_;
  Bounds into_bounds_, out_bounds_;
};

class CallGraphBuilder {
 public:
  // Functions that have no name are one in the table, as far as they are in one file, and would
  // make cycles that nobody called: here they are told apart by what called them. `table` must
  // outlive this.
  explicit CallGraphBuilder(const FunctionTable& table);
  // Of functions alone, for a flat profile, which takes less time: all without a name are one,
  // there are no cycles, and no calls but those of the functions marked here.
  CallGraphBuilder(const FunctionTable& table, std::vector<bool> calls_of);

  // A new one with every call.
  [[nodiscard]] CallNodeId add_root(uint32_t number);

  struct Share {
    CallNodeId root = 0;
    uint64_t ns = 0;
    uint64_t calls = 0;  // of the leaf, where counted
  };
  // A stack of the functions of `scope`, with the shares of all roots it is of; all stacks of one
  // scope before those of the next. Calls count for the leaf, and also for a pseudo frame right
  // above it: as many interrupts as calls of their handler. A pseudo leaf is the interrupt itself.
  void add(uint32_t scope, std::span<const FunctionId> root_first, std::span<const Share> shares);

  // Calls that were counted, of the last function of `root_first`, by the one before it if that is
  // known; without any time. After the stacks of the same scope.
  void add_calls(uint32_t scope, std::span<const FunctionId> root_first, uint64_t calls);

  [[nodiscard]] CallGraph finish() &&;

 private:
  CallNodeId node_of(FunctionId function, CallNodeId caller);
  CallNodeId nameless(FunctionId function, CallNodeId caller);
  CallNodeId add_node(FunctionId function);
  CallArcId arc_of(CallNodeId caller, CallNodeId callee);
  CallArcId find_or_add(CallNodeId caller, CallNodeId callee);
  [[nodiscard]] bool has_calls(CallNodeId callee) const {
    return !flat_ || calls_of_[graph_.nodes[callee].function];
  }
  void begin(uint32_t scope);
  void walk(std::span<const FunctionId> root_first, uint64_t ns);
  void add_leaf(const Share& sum);
  void add_call_by_root(const Share& share);
  [[nodiscard]] bool is_leaf_below_pseudo() const;

  const FunctionTable& table_;
  const bool flat_ = false;
  const std::vector<bool> calls_of_;
  CallGraph graph_;
  uint32_t scope_ = 0;
  bool any_scope_ = false;
  std::vector<CallNodeId> node_of_function_;  // of this scope
  std::vector<FunctionId> used_functions_;    // of this scope
  IndexTable nameless_index_;                 // nodes, by function and caller
  std::vector<CallNodeId> called_by_;         // of nodes in it
  IndexTable arc_index_;
  std::vector<CallArcId> last_arc_;             // into each node; most have one caller
  std::vector<uint32_t> node_seen_, arc_seen_;  // the last stack
  uint32_t stack_ = 0;
  // Of the stack at hand.
  std::vector<CallNodeId> path_;
  std::vector<CallArcId> path_arcs_;  // into each node of it but the first, or no_call_arc
};

}  // namespace pkprof
