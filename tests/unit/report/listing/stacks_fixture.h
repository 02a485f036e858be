// SPDX-License-Identifier: Apache-2.0
// Call graphs of stacks that one can read: each function is a letter.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "model/profile.h"
#include "report/listing/call_graph.h"
#include "report/listing/listing.h"

namespace pkprof::test {

using Names = std::set<std::string>;

// Stacks of functions called "a", "b", ... of one process: "abc" is a, which calls b, which calls
// c. "." is a frame without a name, "!" a pseudo frame.
class Stacks {
 public:
  Stacks() {
    profile_.meta = {.cpus = 1, .duration_ns = 1'000'000};
    process_ =
        profile_.label({.kind = LabelKind::process, .pid = 7, .start_ns = 1, .comm = "seven"});
    binary_ = profile_.mapping({0x1000, 0x100000, 0, "/bin/seven", ""});
  }

  Stacks& add(const std::string& path, uint64_t ns, uint64_t calls = 0,
              std::optional<LabelId> served = {}) {
    profile_.add({.ran_on = process_,
                  .served = served.value_or(process_),
                  .source = profile_.string("user"),
                  .stack = stack(path)},
                 {.ns = ns, .calls = calls});
    return *this;
  }

  // Calls that were counted, and no time.
  Stacks& count(const std::string& path, uint64_t calls) {
    profile_.add({.ran_on = process_,
                  .served = process_,
                  .source = profile_.string("calls"),
                  .stack = stack(path)},
                 {.calls = calls});
    return *this;
  }

  FrameId frame(char c) {
    if (c == '!')
      return profile_.frame({FrameKind::pseudo, no_mapping, 0, profile_.string("!"), 0, 0});
    const auto address = 0x1000 + static_cast<uint64_t>(c);
    const StringId name = c == '.' ? 0 : profile_.string(std::string(1, c));
    return profile_.frame({FrameKind::user, binary_, address, name, 0, 0});
  }

  Profile& profile() { return profile_; }
  [[nodiscard]] LabelId process() const { return process_; }

 private:
  StackId stack(const std::string& path) {
    std::vector<FrameId> frames;
    for (const char c : path) frames.push_back(frame(c));
    std::ranges::reverse(frames);
    return profile_.stack(frames);
  }

  Profile profile_;
  LabelId process_ = 0;
  MappingId binary_ = 0;
};

// A graph by the names of its nodes.
class Named {
 public:
  explicit Named(const Profile& profile, const ReportOptions& options = {})
      : listing_(listing_of(profile, options, ListingKind::graph)), graph_(listing_.graph()) {
    for (CallNodeId id = 0; id < graph_.nodes.size(); ++id)
      ids_.emplace(listing_.name_alone(id), id);
  }

  [[nodiscard]] const CallGraph& graph() const { return graph_; }
  [[nodiscard]] const Listing& listing() const { return listing_; }
  [[nodiscard]] CallNodeId id(const std::string& name) const { return ids_.at(name); }
  [[nodiscard]] const CallNode& node(const std::string& name) const {
    return graph_.nodes[id(name)];
  }
  // Nothing when there is no such call.
  [[nodiscard]] CallArc arc(const std::string& caller, const std::string& callee) const {
    for (const CallArcId arc : graph_.calls_from(id(caller))) {
      if (graph_.arcs[arc].callee == id(callee)) return graph_.arcs[arc];
    }
    return {};
  }
  [[nodiscard]] Names members(CycleId cycle) const {
    Names names;
    for (const CallNodeId id : graph_.cycles.at(cycle).members)
      names.insert(listing_.name_alone(id));
    return names;
  }

 private:
  Listing listing_;
  const CallGraph& graph_;
  std::map<std::string, CallNodeId> ids_;
};

}  // namespace pkprof::test
