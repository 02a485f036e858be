// SPDX-License-Identifier: Apache-2.0
// See call_graph.h. Stacks may be as deep as a file says, so nothing here recurses.
#include "report/listing/call_graph.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "model/hash.h"

namespace pkprof {

bool CallGraph::is_recursive(const CallArc& arc) const {
  if (arc.caller == arc.callee) return true;
  return nodes[arc.caller].cycle != no_cycle && nodes[arc.caller].cycle == nodes[arc.callee].cycle;
}

uint64_t CallGraph::share_of_cycle_ns(CallNodeId member) const {
  uint64_t ns = nodes[member].self_ns;
  for (const CallArcId id : calls_from(member)) {
    if (!is_recursive(arcs[id])) ns += arcs[id].total_ns;
  }
  return ns;
}

Components CallGraph::components() const {
  std::vector<CallNodeId> callees(out_.size());
  std::ranges::transform(out_, callees.begin(), [&](CallArcId id) { return arcs[id].callee; });
  return components_of(out_bounds_, callees);
}

void CallGraph::link() {
  const auto sort = [&](auto end_of, Ids& ids, Bounds& bounds) {
    bounds.assign(nodes.size() + 1, 0);
    for (const CallArc& arc : arcs) ++bounds[end_of(arc) + 1];
    std::partial_sum(bounds.begin(), bounds.end(), bounds.begin());
    ids.resize(arcs.size());
    Bounds next = bounds;
    for (CallArcId id = 0; id < arcs.size(); ++id) ids[next[end_of(arcs[id])]++] = id;
  };
  sort([](const CallArc& arc) { return arc.callee; }, into_, into_bounds_);
  sort([](const CallArc& arc) { return arc.caller; }, out_, out_bounds_);
}

void CallGraph::complete(bool with_cycles) {
  link();
  add_calls();
  cycles.clear();
  for (CallNode& node : nodes) node.cycle = no_cycle;
  if (with_cycles) find_cycles();
}

void CallGraph::add_calls() {
  for (CallNode& node : nodes) {
    node.calls = node.other_calls;
    node.recursive_calls = 0;
    node.all_calls_counted = true;
  }
  for (const CallArc& arc : arcs) {
    CallNode& callee = nodes[arc.callee];
    (arc.caller == arc.callee ? callee.recursive_calls : callee.calls) += arc.calls;
    if (arc.calls == 0 && !callee.counts_itself) callee.all_calls_counted = false;
  }
  for (CallNode& node : nodes) {
    if (node.calls == 0) node.all_calls_counted = false;
  }
}

void CallGraph::find_cycles() {
  const Components components = this->components();
  for (size_t i = 0; i < components.size(); ++i) {
    const auto members = components.of(i);
    if (members.size() == 1) continue;
    for (const CallNodeId id : members) nodes[id].cycle = static_cast<CycleId>(cycles.size());
    cycles.push_back({.members = {members.begin(), members.end()}});
  }
  measure_cycles();
  for (Cycle& cycle : cycles) {
    std::ranges::sort(cycle.members);
    std::ranges::stable_sort(cycle.members, std::greater(),
                             [&](CallNodeId id) { return nodes[id].total_ns; });
  }
  std::ranges::sort(cycles, [](const Cycle& a, const Cycle& b) {
    return std::pair(b.total_ns, a.members[0]) < std::pair(a.total_ns, b.members[0]);
  });
  for (CycleId i = 0; i < cycles.size(); ++i) {
    for (const CallNodeId id : cycles[i].members) nodes[id].cycle = i;
  }
}

void CallGraph::measure_cycles() {
  for (Cycle& cycle : cycles) {
    for (const CallNodeId id : cycle.members) cycle.self_ns += nodes[id].self_ns;
  }
  for (const CallArc& arc : arcs) {
    const CycleId id = nodes[arc.callee].cycle;
    if (id == no_cycle) continue;
    if (is_recursive(arc)) {
      cycles[id].recursive_calls += arc.calls;
    } else {
      cycles[id].total_ns += arc.total_ns;
      cycles[id].calls += arc.calls;
    }
  }
}

CallGraphBuilder::CallGraphBuilder(const FunctionTable& table)
    : table_(table), node_of_function_(table.functions.size(), no_call_node) {}

CallGraphBuilder::CallGraphBuilder(const FunctionTable& table, std::vector<bool> calls_of)
    : table_(table),
      flat_(true),
      calls_of_(std::move(calls_of)),
      node_of_function_(table.functions.size(), no_call_node) {}

CallNodeId CallGraphBuilder::add_root(uint32_t number) {
  const CallNodeId id = add_node(no_function);
  graph_.nodes[id].scope = number;
  return id;
}

CallNodeId CallGraphBuilder::add_node(FunctionId function) {
  graph_.nodes.push_back({.scope = scope_, .function = function});
  node_seen_.push_back(0);
  called_by_.push_back(no_call_node);
  last_arc_.push_back(no_call_arc);
  return static_cast<CallNodeId>(graph_.nodes.size() - 1);
}

CallNodeId CallGraphBuilder::node_of(FunctionId function, CallNodeId caller) {
  if (!flat_ && !table_.functions[function].named) return nameless(function, caller);
  CallNodeId& id = node_of_function_[function];
  if (id == no_call_node) {
    id = add_node(function);
    used_functions_.push_back(function);
  }
  return id;
}

CallNodeId CallGraphBuilder::nameless(FunctionId function, CallNodeId caller) {
  // One after the other: how many they are is not known.
  if (caller != no_call_node && graph_.nodes[caller].function == function) return caller;
  const uint64_t hash = hash_words(
      hash_seed(), {static_cast<uint64_t>(function) << 32 | caller, static_cast<uint64_t>(scope_)});
  const uint32_t found = nameless_index_.find(hash, [&](uint32_t i) {
    const CallNode& node = graph_.nodes[i];
    return node.function == function && node.scope == scope_ && called_by_[i] == caller;
  });
  if (found != IndexTable::none) return found;
  const CallNodeId id = add_node(function);
  called_by_[id] = caller;
  nameless_index_.insert(hash, id);
  return id;
}

CallArcId CallGraphBuilder::find_or_add(CallNodeId caller, CallNodeId callee) {
  const uint64_t hash = hash_words(hash_seed(), {static_cast<uint64_t>(caller) << 32 | callee});
  const uint32_t found = arc_index_.find(hash, [&](uint32_t i) {
    return graph_.arcs[i].caller == caller && graph_.arcs[i].callee == callee;
  });
  if (found != IndexTable::none) return found;
  graph_.arcs.push_back({.caller = caller, .callee = callee});
  arc_seen_.push_back(0);
  const auto id = static_cast<CallArcId>(graph_.arcs.size() - 1);
  arc_index_.insert(hash, id);
  return id;
}

CallArcId CallGraphBuilder::arc_of(CallNodeId caller, CallNodeId callee) {
  CallArcId& last = last_arc_[callee];
  if (last == no_call_arc || graph_.arcs[last].caller != caller) last = find_or_add(caller, callee);
  return last;
}

void CallGraphBuilder::begin(uint32_t scope) {
  if (any_scope_ && scope == scope_) return;
  for (const FunctionId function : used_functions_) node_of_function_[function] = no_call_node;
  used_functions_.clear();
  scope_ = scope;
  any_scope_ = true;
}

void CallGraphBuilder::walk(std::span<const FunctionId> root_first, uint64_t ns) {
  path_.clear();
  path_arcs_.clear();
  ++stack_;
  for (const FunctionId function : root_first) {
    const CallNodeId caller = path_.empty() ? no_call_node : path_.back();
    const CallNodeId id = node_of(function, caller);
    if (id == caller && !flat_ && !table_.functions[function].named) continue;
    path_.push_back(id);
    if (std::exchange(node_seen_[id], stack_) != stack_) graph_.nodes[id].total_ns += ns;
    if (caller == no_call_node) continue;
    const CallArcId arc = has_calls(id) ? arc_of(caller, id) : no_call_arc;
    path_arcs_.push_back(arc);
    if (arc == no_call_arc) continue;
    if (std::exchange(arc_seen_[arc], stack_) != stack_) graph_.arcs[arc].total_ns += ns;
  }
}

bool CallGraphBuilder::is_leaf_below_pseudo() const {
  if (path_.size() < 2) return false;
  const auto is_pseudo = [&](CallNodeId id) {
    return table_.functions[graph_.nodes[id].function].kind == FrameKind::pseudo;
  };
  return is_pseudo(path_[path_.size() - 2]) && !is_pseudo(path_.back());
}

void CallGraphBuilder::add_leaf(const Share& sum) {
  graph_.nodes[path_.back()].self_ns += sum.ns;
  const size_t arcs = path_arcs_.size();
  if (arcs > 0 && path_arcs_[arcs - 1] != no_call_arc) {
    CallArc& last = graph_.arcs[path_arcs_[arcs - 1]];
    last.self_ns += sum.ns;
    last.calls += sum.calls;
  }
  if (arcs > 1 && path_arcs_[arcs - 2] != no_call_arc && is_leaf_below_pseudo())
    graph_.arcs[path_arcs_[arcs - 2]].calls += sum.calls;
}

void CallGraphBuilder::add_call_by_root(const Share& share) {
  if (!has_calls(path_.front())) return;
  CallArc& arc = graph_.arcs[arc_of(share.root, path_.front())];
  arc.total_ns += share.ns;
  if (path_.size() == 1) arc.self_ns += share.ns;
  if (path_.size() == 1 || (path_.size() == 2 && is_leaf_below_pseudo())) arc.calls += share.calls;
}

void CallGraphBuilder::add(uint32_t scope, std::span<const FunctionId> root_first,
                           std::span<const Share> shares) {
  Share sum;
  for (const Share& share : shares) {
    CallNode& root = graph_.nodes[share.root];
    root.total_ns += share.ns;
    if (root_first.empty()) root.self_ns += share.ns;
    sum.ns += share.ns;
    sum.calls += share.calls;
  }
  if (root_first.empty()) return;
  begin(scope);
  walk(root_first, sum.ns);
  add_leaf(sum);
  for (const Share& share : shares) add_call_by_root(share);
}

// A flat profile has no use for callers without time.
void CallGraphBuilder::add_calls(uint32_t scope, std::span<const FunctionId> root_first,
                                 uint64_t calls) {
  if (root_first.empty()) return;
  begin(scope);
  const bool known = root_first.size() > 1;
  const bool wanted = known && (!flat_ || node_of_function_[root_first[0]] != no_call_node);
  const CallNodeId caller = wanted ? node_of(root_first[0], no_call_node) : no_call_node;
  const CallNodeId callee = node_of(root_first.back(), caller);
  if (caller == no_call_node || !has_calls(callee))
    graph_.nodes[callee].other_calls += calls;
  else
    graph_.arcs[arc_of(caller, callee)].calls += calls;
}

CallGraph CallGraphBuilder::finish() && {
  graph_.complete(!flat_);
  return std::move(graph_);
}

}  // namespace pkprof
