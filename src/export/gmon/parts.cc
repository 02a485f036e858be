// SPDX-License-Identifier: Apache-2.0
// See parts.h. The call graph is the listing's; its scopes are the parts here.
#include "export/gmon/parts.h"

#include <algorithm>
#include <map>
#include <optional>
#include <ranges>
#include <set>
#include <tuple>

#include "model/source.h"
#include "report/clean.h"
#include "report/clients/served_by.h"
#include "report/functions.h"
#include "report/groups.h"
#include "report/listing/call_graph.h"

namespace pkprof {

namespace {

// Behind the processes, by label, are servers, each for each client: their code is part of the
// client's.
enum Scope : uint32_t { kernel_scope = 0, unclaimed_scope, other_scope, first_process };
constexpr uint32_t no_scope = UINT32_MAX;

class PartsMaker {
 public:
  PartsMaker(const Profile& profile, const std::vector<uint32_t>& pids)
      : profile_(profile), pids_(pids), served_by_(profile), table_(functions_of(profile)) {
    stackless_user_ = add_function("[no stack]", FrameKind::user);
    stackless_kernel_ = add_function("[no stack]", FrameKind::kernel);
    others_code_ = add_function("[code of other processes]", FrameKind::user);
  }

  std::vector<GmonPart> run() {
    add_samples();
    const CallGraph graph = std::move(*builder_).finish();
    parts_.resize(first_server());
    for (FrameId frame = 0; frame < profile_.frames().size(); ++frame)
      if (served_by_.is_mark(frame)) marks_.insert(table_.of_frame[frame]);
    place_of_node_.resize(graph.nodes.size());
    for (CallNodeId id = 0; id < graph.nodes.size(); ++id) add_node(graph.nodes[id], id);
    for (const CallArc& arc : graph.arcs) {
      if (arc.total_ns == 0 && arc.calls == 0) continue;
      part_of_node(graph.nodes[arc.callee])
          .calls.push_back({.caller = place_of_node_[arc.caller],
                            .callee = place_of_node_[arc.callee],
                            .ns = arc.total_ns,
                            .calls = arc.calls});
    }
    std::erase_if(parts_,
                  [](const GmonPart& part) { return part.user_ns() + part.kernel_ns() == 0; });
    return std::move(parts_);
  }

 private:
  FunctionId add_function(const char* name, FrameKind kind) {
    table_.functions.push_back({.name = name, .where = "", .kind = kind, .named = true});
    return static_cast<FunctionId>(table_.functions.size() - 1);
  }

  [[nodiscard]] uint32_t scope_of(LabelId id) const {
    const Label& label = profile_.labels()[id];
    switch (label.kind) {
      case LabelKind::process:
      case LabelKind::remote:
        return is_selected(label, pids_) ? first_process + id : uint32_t{other_scope};
      case LabelKind::kernel:
        return kernel_scope;
      case LabelKind::unclaimed:
        return unclaimed_scope;
      case LabelKind::other:
        return other_scope;
      case LabelKind::idle:
      case LabelKind::steal:
        break;
    }
    return no_scope;
  }

  [[nodiscard]] uint32_t first_server() const {
    return first_process + static_cast<uint32_t>(profile_.labels().size());
  }
  // Of a sample: a server's, where it worked for the process that is charged.
  uint32_t scope_of(const SampleKey& key) {
    const uint32_t client = scope_of(key.served);
    const auto server = served_by_.server_of(key.stack);
    if (client == no_scope || client < first_process || !server) return client;
    const auto [it, fresh] = scope_of_server_.try_emplace(
        {client, *server}, first_server() + static_cast<uint32_t>(servers_.size()));
    if (fresh) servers_.push_back({client, *server});
    return it->second;
  }
  // Of the part that functions of this scope are in.
  [[nodiscard]] uint32_t part_of(uint32_t scope) const {
    return scope < first_server() ? scope : servers_[scope - first_server()].first;
  }

  // Those who were not selected are one.
  [[nodiscard]] LabelId root_label(uint32_t scope, LabelId served) const {
    return scope == other_scope ? static_cast<LabelId>(profile_.labels().size()) : served;
  }

  void add_samples();
  void path_of(const SampleKey& key, uint32_t scope);
  void add_node(const CallNode& node, CallNodeId id);
  [[nodiscard]] GmonPart& part_of_node(const CallNode& node);
  [[nodiscard]] GmonFunction function_of(const CallNode& node) const;
  [[nodiscard]] std::string whose_of(uint32_t scope) const;

  const Profile& profile_;
  const std::vector<uint32_t>& pids_;
  const ServedBy served_by_;
  std::map<std::pair<uint32_t, LabelId>, uint32_t> scope_of_server_;  // by the client's scope
  std::vector<std::pair<uint32_t, LabelId>> servers_;
  std::set<FunctionId> marks_;  // "served by ..."
  FunctionTable table_;
  FunctionId stackless_user_ = 0, stackless_kernel_ = 0, others_code_ = 0;
  std::optional<CallGraphBuilder> builder_;
  std::vector<FunctionId> path_;
  std::vector<GmonPart> parts_;
  std::vector<uint32_t> place_of_node_;
};

void PartsMaker::add_samples() {
  builder_.emplace(table_);
  // The builder wants a scope at a time, and calls that were counted behind its stacks.
  std::vector<std::tuple<uint32_t, bool, size_t>> order;
  for (size_t i = 0; i < profile_.samples().size(); ++i) {
    const SampleKey& key = profile_.samples()[i].key;
    const uint32_t scope = scope_of(key);
    if (scope != no_scope) order.emplace_back(scope, profile_.text(key.source) == counted_calls, i);
  }
  std::ranges::sort(order);
  std::vector<CallNodeId> root_of(profile_.labels().size() + 1, no_call_node);
  for (const auto& [scope, counted, i] : order) {
    const auto& [key, value] = profile_.samples()[i];
    const LabelId label = root_label(scope, key.served);
    if (root_of[label] == no_call_node) root_of[label] = builder_->add_root(label);
    path_of(key, scope);
    if (counted) {
      if (!profile_.frames_of(key.stack).empty()) builder_->add_calls(scope, path_, value.calls);
      continue;
    }
    const CallGraphBuilder::Share share{
        .root = root_of[label], .ns = value.ns, .calls = value.calls};
    builder_->add(scope, path_, {&share, 1});
  }
}

// Outermost first, never empty: time is some function's.
void PartsMaker::path_of(const SampleKey& key, uint32_t scope) {
  path_.clear();
  const auto frames = served_by_.code_of(key.stack);
  // The source of a server's work is the server.
  const bool user = profile_.text(key.source) == "user" ||
                    (served_by_.marks_of(key.stack) != 0 &&
                     profile_.frames()[frames.front()].kind == FrameKind::user);
  if (scope == other_scope && user) {
    path_.push_back(others_code_);
    return;
  }
  for (const FrameId frame : frames | std::views::reverse) {
    if (scope != other_scope || profile_.frames()[frame].kind != FrameKind::user)
      path_.push_back(table_.of_frame[frame]);
  }
  if (path_.empty()) path_.push_back(user ? stackless_user_ : stackless_kernel_);
}

// A root's scope is its number, which is its label.
GmonPart& PartsMaker::part_of_node(const CallNode& node) {
  if (node.function != no_function) return parts_[part_of(node.scope)];
  return parts_[node.scope == profile_.labels().size() ? uint32_t{other_scope}
                                                       : scope_of(node.scope)];
}

void PartsMaker::add_node(const CallNode& node, CallNodeId id) {
  GmonPart& part = part_of_node(node);
  if (node.function == no_function) {
    const bool other = node.scope == profile_.labels().size();
    part.kind = other ? LabelKind::other : profile_.labels()[node.scope].kind;
    part.label = other ? 0 : node.scope;
  }
  place_of_node_[id] = static_cast<uint32_t>(part.functions.size());
  part.functions.push_back(function_of(node));
}

GmonFunction PartsMaker::function_of(const CallNode& node) const {
  if (node.function == no_function) {
    const bool other = node.scope == profile_.labels().size();
    const Group group{.kind = GroupKind::member, .label = other ? 0 : node.scope};
    const bool process = !other && profile_.labels()[node.scope].kind == LabelKind::process;
    const std::string title = other     ? "OTHER"
                              : process ? group_title(profile_, By::pid, group)
                                        : profile_.labels()[node.scope].name();
    return {.name = clean(title), .where = "", .root = true, .self_ns = node.self_ns};
  }
  const Function& function = table_.functions[node.function];
  const std::string where = clean(function.where);
  // That somebody was served is said of the client.
  const bool mark = marks_.contains(node.function);
  const std::string whose = whose_of(mark ? part_of(node.scope) : node.scope);
  const bool nameless = !function.named && !where.empty();
  return {.name = whose + (function.kind == FrameKind::user ? "u:" : "k:") +
                  (nameless ? "[unknown in " + where + "]" : clean(function.name)),
          .where = where,
          .kind = function.kind,
          .counted = node.all_calls_counted,
          .self_ns = node.self_ns};
}

// As the listing has it: of ended processes of a program together there is no number.
std::string PartsMaker::whose_of(uint32_t scope) const {
  if (scope < first_process) return "-";
  if (scope >= first_server()) {
    std::string client = whose_of(part_of(scope));
    while (client.ends_with(' ')) client.pop_back();
    return client + ">" + whose_of(first_process + servers_[scope - first_server()].second);
  }
  const Group group{.kind = GroupKind::member, .label = scope - first_process};
  const Label& label = profile_.labels()[group.label];
  if (label.pid != 0) return clean(label.host_prefix()) + label.pid_text();
  return clean(group_title(profile_, By::pid, group)) + " ";
}

uint64_t sum_of(const GmonPart& part, bool user) {
  uint64_t ns = 0;
  for (const GmonFunction& function : part.functions) {
    if (function.is_user() == user) ns += function.self_ns;
  }
  return ns;
}

}  // namespace

uint64_t GmonPart::user_ns() const {
  return sum_of(*this, true);
}

uint64_t GmonPart::kernel_ns() const {
  return sum_of(*this, false);
}

std::vector<GmonPart> gmon_parts(const Profile& profile, const std::vector<uint32_t>& pids) {
  return PartsMaker(profile, pids).run();
}

}  // namespace pkprof
