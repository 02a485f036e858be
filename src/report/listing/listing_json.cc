// SPDX-License-Identifier: Apache-2.0
#include "report/listing/listing_json.h"

#include "report/json_header.h"
#include "report/listing/listing.h"

namespace pkprof {

namespace {

std::string_view kind_of(const Function* function) {
  return function == nullptr ? "served" : to_string(function->kind);
}

Json function_to_json(const Listing& listing, CallNodeId id) {
  const CallNode& node = listing.graph().nodes[id];
  const Function* const function = listing.function(id);
  Json to = {{"name", listing.raw_name(id)},
             {"kind", kind_of(function)},
             {"self_ns", node.self_ns},
             {"total_ns", node.total_ns}};
  if (function != nullptr && !function->where.empty()) to["file"] = function->where;
  if (node.all_calls_counted) to["calls"] = node.calls + node.recursive_calls;
  if (node.cycle != no_cycle) to["cycle"] = node.cycle + 1;
  return to;
}

Json listing_to_json(const Profile& profile, std::string_view schema, const ReportOptions& options,
                     const Listing& listing) {
  Json report = json_header(profile, schema, options.by);
  report["shown_ns"] = listing.busy().busy_ns;
  Json& functions = report["functions"] = Json::array();
  for (CallNodeId id = 0; id < listing.graph().nodes.size(); ++id)
    functions.push_back(function_to_json(listing, id));
  Json& rest = report["rest"] = Json::object();
  for (const auto& [name, ns] : listing.rest()) rest[name] = ns;
  return report;
}

Json arc_to_json(const CallArc& arc) {
  Json to = {{"caller", arc.caller},
             {"callee", arc.callee},
             {"self_ns", arc.self_ns},
             {"total_ns", arc.total_ns}};
  if (arc.calls != 0) to["calls"] = arc.calls;
  return to;
}

}  // namespace

std::string flat_json(const Profile& profile, const ReportOptions& options) {
  const Listing listing = listing_of(profile, options, ListingKind::flat);
  return json_line(listing_to_json(profile, "pkprof.flat/1", options, listing));
}

std::string graph_json(const Profile& profile, const ReportOptions& options) {
  ReportOptions complete = options;
  complete.threshold = 0;
  const Listing listing = listing_of(profile, complete, ListingKind::graph);
  Json report = listing_to_json(profile, "pkprof.graph/1", options, listing);
  Json& arcs = report["arcs"] = Json::array();
  for (const CallArc& arc : listing.graph().arcs) arcs.push_back(arc_to_json(arc));
  Json& cycles = report["cycles"] = Json::array();
  for (const Cycle& cycle : listing.graph().cycles) {
    cycles.push_back(
        {{"self_ns", cycle.self_ns}, {"total_ns", cycle.total_ns}, {"members", cycle.members}});
  }
  return json_line(report);
}

}  // namespace pkprof
