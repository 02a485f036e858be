// SPDX-License-Identifier: Apache-2.0
// See tree_text.h. The tree is a vector of nodes found by (parent, function); children are linked
// only when it is complete, sorted by time.
#include "report/tree_text.h"

#include <algorithm>
#include <ranges>

#include "model/hash.h"
#include "report/clean.h"
#include "report/format.h"
#include "report/functions.h"

namespace pkprof {

namespace {

using NodeId = uint32_t;
constexpr NodeId root = 0;

struct Node {
  NodeId parent = root;
  uint32_t name = 0;  // a LabelId below the root, a FunctionId further down
  uint64_t self_ns = 0;
  uint64_t total_ns = 0;
  std::vector<NodeId> children;  // largest first
};

class Tree {
 public:
  Tree(const Profile& profile, const FunctionTable& table, const ReportOptions& options) {
    nodes_.emplace_back();
    for (const auto& [key, value] : profile.samples()) {
      if (!is_busy(profile, key, options)) continue;
      NodeId node = child(root, key.served);
      for (const FrameId frame : profile.frames_of(key.stack) | std::views::reverse)
        node = child(node, table.of_frame[frame]);
      nodes_[node].self_ns += value.ns;
    }
    // Parents come before their children, so one pass from the end sums everything up.
    for (NodeId i = static_cast<NodeId>(nodes_.size()); i-- > 1;) {
      nodes_[i].total_ns += nodes_[i].self_ns;
      nodes_[nodes_[i].parent].total_ns += nodes_[i].total_ns;
    }
    for (NodeId i = 1; i < nodes_.size(); ++i) nodes_[nodes_[i].parent].children.push_back(i);
    for (Node& node : nodes_)
      std::ranges::stable_sort(node.children, std::greater(),
                               [&](NodeId id) { return nodes_[id].total_ns; });
  }

  [[nodiscard]] const Node& node(NodeId id) const { return nodes_[id]; }

 private:
  NodeId child(NodeId parent, uint32_t name) {
    const uint64_t hash = hash_words(hash_seed(), {static_cast<uint64_t>(parent) << 32 | name});
    const uint32_t found = index_.find(
        hash, [&](uint32_t i) { return nodes_[i].parent == parent && nodes_[i].name == name; });
    if (found != IndexTable::none) return found;
    const auto id = static_cast<NodeId>(nodes_.size());
    nodes_.push_back({.parent = parent, .name = name});
    index_.insert(hash, id);
    return id;
  }

  std::vector<Node> nodes_;
  IndexTable index_;
};

class TreeText {
 public:
  TreeText(const Profile& profile, const ReportOptions& options)
      : profile_(profile),
        options_(options),
        table_(functions_of(profile)),
        tree_(profile, table_, options),
        whole_(tree_.node(root).total_ns) {}

  std::string run() {
    const size_t limit = options_.limit == 0 ? SIZE_MAX : options_.limit;
    size_t shown = 0;
    size_t hidden = 0;
    uint64_t rest = 0;
    for (const NodeId id : tree_.node(root).children) {
      const Node& node = tree_.node(id);
      if (shown == limit || is_small(node.total_ns)) {
        ++hidden;
        rest += node.total_ns;
        continue;
      }
      ++shown;
      line("", options_.style.bold(top_title(node.name)) + "  " + percent(node.total_ns, whole_) +
                   "%  " + duration_text(node.total_ns));
      branches(node, "");
      out_ += "\n";
    }
    if (hidden > 0)
      line("", "(" + std::to_string(hidden) + " more)  " + percent(rest, whole_) + "%\n");
    return out_ + busy_line(profile_, busy_time(profile_, options_), options_);
  }

 private:
  [[nodiscard]] bool is_small(uint64_t ns) const {
    return static_cast<double>(ns) * 100 < options_.threshold * static_cast<double>(whole_);
  }

  [[nodiscard]] std::string top_title(LabelId id) const {
    const Label& label = profile_.labels()[id];
    if (label.kind == LabelKind::unclaimed) return clean(label.name(), options_.unicode);
    return party_name(profile_, id, options_.unicode);
  }

  void line(const std::string& prefix, const std::string& text) { out_ += prefix + text + "\n"; }

  // What there is to show below a node: the branches worth it (the first `shown` children), the
  // node's own time, and the rest.
  struct Below {
    size_t shown = 0;
    size_t hidden = 0;
    uint64_t rest_ns = 0;
    bool show_self = false;
    bool show_rest = false;
    [[nodiscard]] bool is_chain() const { return shown == 1 && !show_self && !show_rest; }
  };
  [[nodiscard]] Below below(const Node& parent) const;

  void function_line(const std::string& prefix, const std::string& number, FunctionId id);
  void branches(const Node& parent, const std::string& prefix);
  void branch(NodeId id, const std::string& prefix, bool last);
  void note(const std::string& prefix, bool last, uint64_t ns, const std::string& text);

  [[nodiscard]] const char* tee(bool last) const {
    if (!options_.unicode) return last ? "`- " : "|- ";
    return last ? "└─ " : "├─ ";
  }
  [[nodiscard]] const char* bar(bool last) const {
    if (last) return "   ";
    return options_.unicode ? "│  " : "|  ";
  }

  const Profile& profile_;
  const ReportOptions& options_;
  const FunctionTable table_;
  const Tree tree_;
  const uint64_t whole_;
  std::string out_;
};

void TreeText::function_line(const std::string& prefix, const std::string& number, FunctionId id) {
  const Function& function = table_.functions[id];
  const size_t used = display_width(prefix) + display_width(number);
  const size_t left = std::max<size_t>(24, options_.width > used ? options_.width - used : 0);
  const std::string title = fit(function_title(function, options_.unicode), left, options_.unicode);
  line(prefix + number, function.kind == FrameKind::pseudo ? options_.style.source(title) : title);
}

void TreeText::note(const std::string& prefix, bool last, uint64_t ns, const std::string& text) {
  line(prefix + tee(last), pad_left(percent(ns, whole_), 5) + "% " + options_.style.dim(text));
}

TreeText::Below TreeText::below(const Node& parent) const {
  Below below;
  for (const NodeId id : parent.children) {
    if (is_small(tree_.node(id).total_ns))
      below.rest_ns += tree_.node(id).total_ns;
    else
      ++below.shown;
  }
  below.hidden = parent.children.size() - below.shown;
  below.show_rest = !reads_zero(below.rest_ns, whole_);
  below.show_self = !parent.children.empty() && !reads_zero(parent.self_ns, whole_);
  return below;
}

void TreeText::branches(const Node& parent, const std::string& prefix) {
  const Below what = below(parent);
  for (size_t i = 0; i < what.shown; ++i)
    branch(parent.children[i], prefix, i + 1 == what.shown && !what.show_rest && !what.show_self);
  if (what.show_self) note(prefix, !what.show_rest, parent.self_ns, "(itself)");
  if (what.show_rest)
    note(prefix, true, what.rest_ns, "(" + std::to_string(what.hidden) + " more)");
}

void TreeText::branch(NodeId id, const std::string& prefix, bool last) {
  const Node* node = &tree_.node(id);
  function_line(prefix + tee(last), pad_left(percent(node->total_ns, whole_), 5) + "% ",
                node->name);
  const std::string indent = prefix + bar(last);
  while (below(*node).is_chain()) {
    node = &tree_.node(node->children[0]);
    function_line(indent, "       ", node->name);
  }
  branches(*node, indent);
}

}  // namespace

std::string tree_text(const Profile& profile, const ReportOptions& options) {
  return TreeText(profile, options).run();
}

}  // namespace pkprof
