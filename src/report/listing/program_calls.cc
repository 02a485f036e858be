// SPDX-License-Identifier: Apache-2.0
// See program_calls.h.
#include "report/listing/program_calls.h"

#include <algorithm>
#include <map>

namespace pkprof {

namespace {

class Joiner {
 public:
  Joiner(ListingData& listing, const ListingData& program, const std::string& whose)
      : listing_(listing), program_(program), scope_(scope_of(whose)) {}

  ProgramCalls run() {
    find_functions();
    for (const CallNode& node : program_.graph.nodes) done_.self_ns += node.self_ns;
    done_.times_too = user_ns_ == 0 && done_.self_ns != 0;
    nodes_.assign(program_.graph.nodes.size(), no_call_node);
    for (CallNodeId id = 0; id < nodes_.size(); ++id) {
      if (done_.times_too) add_times(id);
    }
    for (const CallArc& arc : program_.graph.arcs) add_arc(arc);
    listing_.graph.complete();
    mark_counted();
    listing_.graph.complete();
    return done_;
  }

 private:
  uint32_t scope_of(const std::string& whose) {
    const auto it = std::ranges::find(listing_.whose, whose);
    if (it != listing_.whose.end()) return static_cast<uint32_t>(it - listing_.whose.begin());
    listing_.whose.push_back(whose);
    return static_cast<uint32_t>(listing_.whose.size() - 1);
  }

  // Of one name, the one with the most time: static functions may share it.
  void find_functions() {
    const std::vector<CallNode>& nodes = listing_.graph.nodes;
    for (CallNodeId id = 0; id < nodes.size(); ++id) {
      if (nodes[id].function == no_function || nodes[id].scope != scope_) continue;
      const Function& function = listing_.functions[nodes[id].function];
      if (function.kind != FrameKind::user || !function.named) continue;
      user_ns_ += nodes[id].self_ns;
      const auto [it, fresh] = by_name_.try_emplace(function.name, id);
      if (!fresh && nodes[id].total_ns > nodes[it->second].total_ns) it->second = id;
    }
    for (CallArcId id = 0; id < listing_.graph.arcs.size(); ++id) {
      const CallArc& arc = listing_.graph.arcs[id];
      arcs_.emplace(std::pair(arc.caller, arc.callee), id);
    }
  }

  CallNodeId node_of(CallNodeId program_id) {
    CallNodeId& id = nodes_[program_id];
    if (id != no_call_node) return id;
    const Function& function = program_.functions[program_.graph.nodes[program_id].function];
    const auto known = by_name_.find(function.name);
    if (known != by_name_.end()) return id = known->second;
    const auto function_id = static_cast<FunctionId>(listing_.functions.size());
    listing_.functions.push_back(function);
    id = static_cast<CallNodeId>(listing_.graph.nodes.size());
    listing_.graph.nodes.push_back({.scope = scope_, .function = function_id});
    by_name_.emplace(function.name, id);
    return id;
  }

  void add_times(CallNodeId program_id) {
    const CallNode& from = program_.graph.nodes[program_id];
    CallNode& to = listing_.graph.nodes[node_of(program_id)];
    to.self_ns += from.self_ns;
    to.total_ns += from.total_ns;
    listing_.busy.busy_ns += from.self_ns;
  }

  void add_arc(const CallArc& from) {
    if (from.calls == 0) return;
    const CallNodeId caller = node_of(from.caller);
    const CallNodeId callee = node_of(from.callee);
    const auto next = static_cast<CallArcId>(listing_.graph.arcs.size());
    const auto [it, fresh] = arcs_.try_emplace(std::pair(caller, callee), next);
    if (fresh) listing_.graph.arcs.push_back({.caller = caller, .callee = callee});
    CallArc& to = listing_.graph.arcs[it->second];
    to.calls += from.calls;
    done_.calls += from.calls;
    if (!done_.times_too) return;
    to.self_ns += from.self_ns;
    to.total_ns += from.total_ns;
  }

  void mark_counted() {
    CallGraph& graph = listing_.graph;
    for (const CallArc& counted : program_.graph.arcs) {
      if (counted.calls == 0) continue;
      CallNode& callee = graph.nodes[node_of(counted.callee)];
      const std::string& file = listing_.functions[callee.function].where;
      uint64_t elsewhere_ns = 0;
      for (const CallArcId id : graph.calls_to(node_of(counted.callee))) {
        const CallArc& arc = graph.arcs[id];
        const FunctionId caller = graph.nodes[arc.caller].function;
        if (arc.calls == 0 && caller != no_function && listing_.functions[caller].where != file)
          elsewhere_ns += arc.total_ns;
      }
      callee.counts_itself = elsewhere_ns == 0 || elsewhere_ns < callee.total_ns / 20;
    }
  }

  ListingData& listing_;
  const ListingData& program_;
  const uint32_t scope_;
  uint64_t user_ns_ = 0;
  std::map<std::string, CallNodeId> by_name_;
  std::map<std::pair<CallNodeId, CallNodeId>, CallArcId> arcs_;
  std::vector<CallNodeId> nodes_;  // by the program's
  ProgramCalls done_;
};

}  // namespace

ProgramCalls add_program_calls(ListingData& listing, const ListingData& program,
                               const std::string& whose) {
  return Joiner(listing, program, whose).run();
}

}  // namespace pkprof
