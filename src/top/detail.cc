// SPDX-License-Identifier: Apache-2.0
#include "top/detail.h"

#include <algorithm>
#include <functional>
#include <map>
#include <ranges>

#include "report/clean.h"
#include "report/format.h"
#include "report/functions.h"

namespace pkprof::top {
namespace {

constexpr size_t most_flows = 8;
constexpr size_t most_stacks = 12;

class Detail {
 public:
  Detail(const Profile& profile, const Table& table, const TableRow& row, By by, size_t width,
         bool unicode, std::span<const Resource> resources)
      : profile_(profile),
        table_(table),
        place_(row),
        row_(table.ledger_row(row)),
        group_(table.ledger().groups[row_.group]),
        by_(by),
        width_(width),
        unicode_(unicode),
        resources_(resources) {}

  std::vector<Line> run() {
    who();
    sources();
    flows("Who worked for it, unasked", &Flow::served, &Flow::ran_on);
    flows("For whom it worked, unasked", &Flow::ran_on, &Flow::served);
    stacks();
    return std::move(lines_);
  }

 private:
  void title(const std::string& text) {
    lines_.emplace_back();
    lines_.push_back({{text, Tone::strong}});
  }
  [[nodiscard]] std::string share(uint64_t ns) const {
    return pad_left(percent(ns, profile_.meta.duration_ns), number_width);
  }

  void who() {
    const Label& label = profile_.labels()[row_.label];
    lines_.push_back({{party_name(profile_, by_, group_, unicode_), Tone::strong}});
    const auto say = [&](const char* what, const std::string& text) {
      if (!text.empty()) lines_.push_back({{what, Tone::dim}, {clean(text, unicode_)}});
    };
    if (by_ == By::pid || by_ == By::thread) {
      say("  program  ", label.exe);
      say("  cgroup   ", label.cgroup);
      if (label.parent_pid) say("  parent   ", std::to_string(label.parent_pid));
    }
    Line numbers;
    for (const auto& [name, ns, tone] : {std::tuple{"seems", row_.seems_ns, Tone::plain},
                                         {"user", row_.user_ns, Tone::user},
                                         {"own", row_.own_ns, Tone::own},
                                         {"async", row_.async_ns, Tone::async},
                                         {"costs", row_.costs_ns(), Tone::strong},
                                         {"stolen", row_.stolen_ns, Tone::plain}}) {
      numbers.push_back({std::string("  ") + name + " ", Tone::dim});
      numbers.push_back({percent(ns, profile_.meta.duration_ns), tone});
    }
    lines_.push_back(std::move(numbers));
    if (!resources_.empty()) rates();
    if (!table_.ledger().has_clients) return;
    lines_.push_back({{"  for others ", Tone::dim},
                      {percent(row_.for_others_ns, profile_.meta.duration_ns)},
                      {"  with servers ", Tone::dim},
                      {percent(row_.with_servers_ns(), profile_.meta.duration_ns)}});
  }

  void rates() {
    Line line;
    for (const Column column : columns_of(false, resources_)) {
      if (resource_of(column) == Resource::cpu) continue;
      line.push_back({"  " + std::string(title_of(column, by_)) + " ", Tone::dim});
      line.push_back({rate_text(column, table_.value(place_, column), profile_.meta.duration_ns)});
    }
    lines_.push_back(std::move(line));
  }

  void sources() {
    title("What it was for, % of one CPU");
    std::vector<std::pair<uint64_t, std::string>> sources;
    sources.reserve(row_.sources.size());
    for (const auto& [source, ns] : row_.sources)
      if (ns) sources.emplace_back(ns, source);
    std::ranges::stable_sort(sources, std::greater(), &decltype(sources)::value_type::first);
    for (const auto& [ns, source] : sources)
      lines_.push_back({{share(ns) + "  "}, {clean(source, unicode_)}});
    std::string basis;
    for (int i = 0; i < basis_count; ++i)
      if (row_.basis[i])
        basis += (basis.empty() ? "" : ", ") + std::string(to_string(static_cast<Basis>(i))) + " " +
                 percent(row_.basis[i], profile_.meta.duration_ns);
    lines_.push_back({{"  because: " + basis, Tone::dim}});
  }

  void flows(const std::string& name, GroupId Flow::* mine, GroupId Flow::* others) {
    size_t shown = 0;
    for (const Flow& flow : table_.ledger().flows) {
      if (flow.*mine != row_.group || !is_taken(profile_, table_.ledger(), flow)) continue;
      if (shown == most_flows || reads_zero(flow.ns, profile_.meta.duration_ns)) break;
      if (!shown++) title(name);
      lines_.push_back(
          {{share(flow.ns) + "  "},
           {pad_right(party_name(profile_, by_, table_.ledger().groups[flow.*others], unicode_),
                      24) +
            "  "},
           {clean(profile_.text(flow.source), unicode_), Tone::async}});
    }
  }

  [[nodiscard]] bool is_mine(const SampleKey& key) const {
    return std::ranges::find(group_.processes, key.served) != group_.processes.end() &&
           (by_ != By::thread || key.served_thread == group_.thread);
  }

  [[nodiscard]] std::string name_of(const Function& function) const {
    if (function.named || function.where.empty()) return function_title(function, unicode_);
    return "[" + clean(function.where, unicode_) + "]";
  }

  // The callee first, as one reads what is on the CPU.
  void stacks() {
    const FunctionTable table = functions_of(profile_);
    std::map<std::vector<FunctionId>, uint64_t> sums;
    for (const auto& [key, value] : profile_.samples()) {
      if (!value.ns || !is_mine(key)) continue;
      std::vector<FunctionId> path;
      for (const FrameId frame : profile_.frames_of(key.stack))
        path.push_back(table.of_frame[frame]);
      sums[path] += value.ns;
    }
    std::vector<std::pair<uint64_t, const std::vector<FunctionId>*>> most;
    most.reserve(sums.size());
    for (const auto& [path, ns] : sums) most.emplace_back(ns, &path);
    std::ranges::stable_sort(most, std::greater(), &decltype(most)::value_type::first);
    if (!most.empty()) title("Hot stacks, the innermost function first");
    for (const auto& [ns, path] : most | std::views::take(most_stacks)) put_stack(ns, *path, table);
  }

  void put_stack(uint64_t ns, const std::vector<FunctionId>& path, const FunctionTable& table) {
    const std::string indent(number_width + 2, ' ');
    const std::string between = unicode_ ? " ← " : " < ";
    Line line = {{share(ns) + "  "}};
    size_t column = indent.size();
    bool first = true;
    for (const FunctionId id : path) {
      const Function& function = table.functions[id];
      const std::string name = fit(name_of(function), width_ - indent.size(), unicode_);
      const size_t needs = display_width(name) + (first ? 0 : display_width(between));
      if (!first && column + needs > width_) {
        lines_.push_back(std::exchange(line, {{indent}}));
        column = indent.size();
      }
      if (!first) line.push_back({between, Tone::dim});
      const Tone tone = function.kind == FrameKind::user     ? Tone::user
                        : function.kind == FrameKind::kernel ? Tone::own
                                                             : Tone::async;
      line.push_back({name, tone});
      column += needs;
      first = false;
    }
    if (first) line.push_back({"[no stack]", Tone::dim});
    lines_.push_back(std::move(line));
  }

  const Profile& profile_;
  const Table& table_;
  const TableRow& place_;
  const LedgerRow& row_;
  const Group& group_;
  const By by_;
  const size_t width_;
  const bool unicode_;
  const std::span<const Resource> resources_;
  std::vector<Line> lines_;
};

}  // namespace

std::vector<Line> detail_lines(const Profile& profile, const Table& table, const TableRow& row,
                               By by, size_t width, bool unicode,
                               std::span<const Resource> resources) {
  return Detail(profile, table, row, by, std::max<size_t>(width, 24), unicode, resources).run();
}

}  // namespace pkprof::top
