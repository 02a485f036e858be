// SPDX-License-Identifier: Apache-2.0
// See tree_text.h. One tree a process (or thread, or group), built (tree.h) only when the process
// is worth a line.
#include "report/tree/tree_text.h"

#include <algorithm>
#include <functional>

#include "report/clean.h"
#include "report/format.h"
#include "report/functions.h"
#include "report/report_json.h"
#include "report/tree/tree.h"
#include "report/view.h"

namespace pkprof {

namespace {

class TreeText {
 public:
  TreeText(const Profile& profile, const ReportOptions& options)
      : profile_(profile),
        options_(options),
        table_(functions_of(profile)),
        builder_(profile, table_),
        busy_(busy_time(profile, options)),
        whole_(busy_.busy_ns) {}

  std::string run() {
    std::vector<Top> tops = served();
    const size_t limit = options_.limit == 0 ? SIZE_MAX : options_.limit;
    const auto first_hidden = std::ranges::find_if(tops, [&](const Top& top) {
      return static_cast<size_t>(&top - tops.data()) == limit || is_small(top.ns);
    });
    for (auto top = tops.begin(); top != first_hidden; ++top) print(*top);
    uint64_t rest = 0;
    for (auto top = first_hidden; top != tops.end(); ++top) rest += top->ns;
    if (first_hidden != tops.end())
      line("", "(" + std::to_string(tops.end() - first_hidden) + " more)  " +
                   percent(rest, whole_) + "%\n");
    return out_ + busy_line(busy_, options_);
  }

 private:
  // All that was served to one process, group or special label.
  struct Top {
    std::string title;
    uint64_t ns = 0;
    std::vector<StackTime> times;
  };

  // Largest first. Special labels stay apart: of UNCLAIMED the reason is of interest here.
  [[nodiscard]] std::vector<Top> served() const {
    const size_t labels = profile_.labels().size();
    Groups groups(profile_, options_.by, options_.pids);
    std::vector<Top> tops(labels);
    for (const auto& [key, value] : profile_.samples()) {
      if (!is_busy(profile_, key, options_)) continue;
      const Label& label = profile_.labels()[key.served];
      size_t at = key.served;
      if (label.kind == LabelKind::process) at = labels + groups.of(key.served, key.served_thread);
      if (at >= tops.size()) tops.resize(at + 1);
      if (tops[at].title.empty()) {
        tops[at].title = at < labels ? clean(label.name(), options_.unicode)
                                     : party_name(profile_, options_.by, groups.all()[at - labels],
                                                  options_.unicode);
      }
      tops[at].ns += value.ns;
      tops[at].times.push_back({key.stack, value.ns});
    }
    std::erase_if(tops, [](const Top& top) { return top.ns == 0; });
    std::ranges::stable_sort(tops, std::greater(), &Top::ns);
    return tops;
  }

  void print(Top& top) {
    line("", options_.style.bold(top.title) + "  " + percent(top.ns, whole_) + "%  " +
                 amount_text(busy_.of, top.ns));
    tree_ = builder_.build(top.times);
    branches(0, "");
    out_ += "\n";
  }

  [[nodiscard]] bool is_small(uint64_t ns) const {
    return static_cast<double>(ns) * 100 < options_.threshold * static_cast<double>(whole_);
  }

  void line(const std::string& prefix, const std::string& text) { out_ += prefix + text + "\n"; }

  // What there is to show below a node: the branches worth it (the first `shown` children), the
  // node's own time, and the rest.
  struct Below {
    std::vector<NodeId> children;  // largest first
    size_t shown = 0;
    uint64_t rest_ns = 0;
    bool show_self = false;
    bool show_rest = false;
    [[nodiscard]] bool is_chain() const { return shown == 1 && !show_self && !show_rest; }
  };
  [[nodiscard]] Below below(NodeId parent) const;

  void function_line(const std::string& prefix, const std::string& number, FunctionId id);
  void branches(NodeId parent, const std::string& prefix);
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
  const TreeBuilder builder_;
  const Busy busy_;
  const uint64_t whole_;
  Tree tree_;  // of the process at hand
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

TreeText::Below TreeText::below(NodeId parent) const {
  Below below{.children = children_of(tree_, parent)};
  for (const NodeId id : below.children) {
    if (is_small(tree_[id].total_ns))
      below.rest_ns += tree_[id].total_ns;
    else
      ++below.shown;
  }
  below.show_rest = !reads_zero(below.rest_ns, whole_);
  below.show_self = !below.children.empty() && !reads_zero(tree_[parent].self_ns, whole_);
  return below;
}

void TreeText::branches(NodeId parent, const std::string& prefix) {
  const Below what = below(parent);
  for (size_t i = 0; i < what.shown; ++i)
    branch(what.children[i], prefix, i + 1 == what.shown && !what.show_rest && !what.show_self);
  if (what.show_self) note(prefix, !what.show_rest, tree_[parent].self_ns, "(itself)");
  if (what.show_rest)
    note(prefix, true, what.rest_ns,
         "(" + std::to_string(what.children.size() - what.shown) + " more)");
}

void TreeText::branch(NodeId id, const std::string& prefix, bool last) {
  function_line(prefix + tee(last), pad_left(percent(tree_[id].total_ns, whole_), 5) + "% ",
                tree_[id].function);
  const std::string indent = prefix + bar(last);
  for (Below what = below(id); what.is_chain(); what = below(id)) {
    id = what.children[0];
    function_line(indent, "       ", tree_[id].function);
  }
  branches(id, indent);
}

}  // namespace

std::string tree_text(const Profile& profile, const ReportOptions& options) {
  return TreeText(profile, options).run();
}

extern const ReportView tree_view{"tree", tree_text, report_json};

}  // namespace pkprof
