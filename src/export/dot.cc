// SPDX-License-Identifier: Apache-2.0
// The call graph for GraphViz, from the parties down: what is worth a look.
#include <algorithm>
#include <map>
#include <ranges>
#include <vector>

#include "export/exported_stacks.h"
#include "export/format.h"
#include "report/clean.h"
#include "report/format.h"
#include "report/listing/call_graph.h"

namespace pkprof {
namespace {

constexpr double least_node = 0.005;  // of all that was busy
constexpr double least_arc = 0.002;

std::string quoted(const std::string& text) {
  std::string to = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') to += '\\';
    to += c;
  }
  return to + "\"";
}

class Dot {
 public:
  Dot(const Profile& profile, const ExportOptions& options)
      : profile_(profile), options_(options), table_(functions_of(profile)) {
    build();
  }

  [[nodiscard]] std::string text() const {
    std::string out =
        "digraph pkprof {\n  rankdir=TB;\n  node [shape=box, fontname=\"sans-serif\", "
        "fontsize=10];\n  edge [fontname=\"sans-serif\", fontsize=9];\n";
    std::vector<bool> shown(graph_.nodes.size());
    for (CallNodeId id = 0; id < graph_.nodes.size(); ++id) {
      shown[id] = is_worth(graph_.nodes[id].total_ns, least_node);
      if (shown[id]) out += node(id);
    }
    for (const CallArc& arc : graph_.arcs)
      if (shown[arc.caller] && shown[arc.callee] && is_worth(arc.total_ns, least_arc))
        out += "  n" + std::to_string(arc.caller) + " -> n" + std::to_string(arc.callee) +
               " [label=\"" + percent(arc.total_ns, whole_) +
               "%\", pkprof_ns=" + std::to_string(arc.total_ns) + "];\n";
    return out + "}\n";
  }

 private:
  void build() {
    ReportOptions selection;
    selection.pids = options_.pids;
    std::map<StackId, std::map<LabelId, uint64_t>> sums;
    for (const auto& [key, value] : profile_.samples()) {
      if (!value.ns || !is_busy(profile_, key, selection)) continue;
      sums[key.stack][options_.ran_on ? key.ran_on : key.served] += value.ns;
      whole_ += value.ns;
    }
    CallGraphBuilder builder(table_);
    std::map<LabelId, CallNodeId> roots;
    for (const auto& [stack, parties] : sums) {
      std::vector<FunctionId> path;
      for (const FrameId frame : profile_.frames_of(stack) | std::views::reverse)
        path.push_back(table_.of_frame[frame]);
      std::vector<CallGraphBuilder::Share> shares;
      for (const auto& [label, ns] : parties) {
        const auto [it, fresh] = roots.try_emplace(label, 0);
        if (fresh) it->second = builder.add_root(label);
        shares.push_back({.root = it->second, .ns = ns});
      }
      builder.add(0, path, shares);
    }
    graph_ = std::move(builder).finish();
  }

  [[nodiscard]] bool is_worth(uint64_t ns, double least) const {
    return ns && static_cast<double>(ns) >= least * static_cast<double>(whole_);
  }

  [[nodiscard]] std::string node(CallNodeId id) const {
    const CallNode& node = graph_.nodes[id];
    const bool root = node.function == no_function;
    const std::string title = root ? clean(profile_.labels()[node.scope].name())
                                   : function_title(table_.functions[node.function], true);
    const std::string where = root ? "" : clean(table_.functions[node.function].where);
    std::string label = quoted(title);
    label.pop_back();
    if (!where.empty()) {
      const std::string second = quoted(where);
      label += "\\n" + second.substr(1, second.size() - 2);
    }
    label += "\\n" + percent(node.total_ns, whole_) + "%";
    if (node.self_ns && !root) label += ", itself " + percent(node.self_ns, whole_) + "%";
    const bool kernel = !root && table_.functions[node.function].kind == FrameKind::kernel;
    const bool between = !root && table_.functions[node.function].kind == FrameKind::pseudo;
    const char* const look = root      ? ", style=\"filled,bold\", fillcolor=\"#d0d0d0\""
                             : kernel  ? ", style=filled, fillcolor=\"#f6c7a6\""
                             : between ? ", style=filled, fillcolor=\"#bcd9f5\""
                                       : ", style=filled, fillcolor=\"#d8efc6\"";
    return "  n" + std::to_string(id) + " [label=" + label + "\"" + look +
           ", pkprof_ns=" + std::to_string(node.total_ns) +
           ", pkprof_self_ns=" + std::to_string(node.self_ns) + "];\n";
  }

  const Profile& profile_;
  const ExportOptions& options_;
  const FunctionTable table_;
  CallGraph graph_;
  uint64_t whole_ = 0;
};

}  // namespace

static Result<std::string> export_dot(const Profile& profile, const ExportOptions& options) {
  return deliver(Dot(profile, options).text(), options);
}

extern const ExportFormat dot_format{"dot", "the call graph, for GraphViz", export_dot};

}  // namespace pkprof
