// SPDX-License-Identifier: Apache-2.0
// See graph_text.h. Entries are sorted by time and numbered first, since lines name the numbers of
// others; then those worth it are printed.
#include "report/listing/graph_text.h"

#include <algorithm>
#include <functional>
#include <ranges>
#include <tuple>

#include "report/clean.h"
#include "report/format.h"
#include "report/listing/listing_json.h"
#include "report/view.h"

namespace pkprof {

namespace {

// What a line says of times and calls.
struct Numbers {
  uint64_t self_ns = 0;
  uint64_t total_ns = 0;
  std::string called;  // to the left of a line through the column
  std::string of;      // to the right of it: "/12", "+3"
};

class GraphText {
 public:
  GraphText(const Listing& listing, const ReportOptions& options)
      : options_(options),
        listing_(listing),
        graph_(listing_.graph()),
        whole_(listing_.busy().busy_ns),
        digits_(digits_of_seconds(whole_)) {
    number_entries();
    set_widths();
  }

  std::string run() {
    head();
    for (size_t i = 0; i < shown_; ++i) {
      const Entry& entry = entries_[i];
      if (entry.cycle != no_cycle)
        cycle_entry(entry.cycle, i);
      else
        node_entry(entry.node, i);
      rule();
    }
    // How many is not known, as those of small processes were not looked for.
    if (shown_ < entries_.size())
      out_ += options_.style.dim("(more entries, none of more time than these)") + "\n";
    rest_entries();
    index();
    return out_ + busy_line(listing_.busy(), options_);
  }

 private:
  // One of the two.
  struct Entry {
    uint64_t total_ns = 0;
    CycleId cycle = no_cycle;
    CallNodeId node = no_call_node;
  };

  void number_entries();
  void set_widths();
  void head();
  void rule() { out_ += std::string(47, '-') + "\n"; }
  void node_entry(CallNodeId id, size_t place);
  void cycle_entry(CycleId id, size_t place);
  void rest_entries();
  void index();
  void callers(CallNodeId id);
  void callees(CallNodeId id);
  // What is left of a name: of a caller or callee, and of the function itself.
  [[nodiscard]] std::string below(const Numbers& numbers) const;
  [[nodiscard]] std::string beside(size_t place, const Numbers& numbers) const;
  [[nodiscard]] size_t room(const std::string& numbers, const std::string& suffix) const;
  void line(const std::string& numbers, const std::string& name, const std::string& suffix);
  void line_of(const Numbers& numbers, CallNodeId id);
  // An entry that is no function's.
  void titled(size_t place, const Numbers& numbers, const std::string& title);
  // Lines too small to print.
  struct Hidden {
    size_t lines = 0;
    uint64_t self_ns = 0;
    uint64_t total_ns = 0;
  };
  void add(Hidden& hidden, const CallArc& arc) const;
  void more(const Hidden& hidden);

  [[nodiscard]] std::string columns(const Numbers& numbers) const;
  [[nodiscard]] Numbers numbers_of(const CallArc& arc) const;
  [[nodiscard]] std::string suffix_of(CallNodeId id) const;
  // In the order of a list of callees: calls out of the function, largest first, then those within
  // its cycle, then to itself.
  [[nodiscard]] std::vector<CallArcId> sorted(std::span<const CallArcId> ids) const;

  [[nodiscard]] bool is_small(uint64_t ns) const {
    return static_cast<double>(ns) * 100 < options_.threshold * static_cast<double>(whole_);
  }
  [[nodiscard]] std::string number(size_t place) const {
    const std::string n = std::to_string(place + 1);
    return place < shown_ || place >= entries_.size() ? "[" + n + "]" : "(" + n + ")";
  }

  const ReportOptions& options_;
  const Listing& listing_;
  const CallGraph& graph_;
  const uint64_t whole_;
  const int digits_;
  std::vector<Entry> entries_;
  std::vector<size_t> place_of_node_, place_of_cycle_;
  size_t shown_ = 0;
  size_t time_width_ = 8;
  size_t calls_width_ = 0;  // digits; 0 when none were counted
  std::string out_;
};

void GraphText::number_entries() {
  for (CycleId id = 0; id < graph_.cycles.size(); ++id)
    entries_.push_back({.total_ns = graph_.cycles[id].total_ns, .cycle = id});
  for (CallNodeId id = 0; id < graph_.nodes.size(); ++id)
    entries_.push_back({.total_ns = graph_.nodes[id].total_ns, .node = id});
  // Stable: a cycle before its members, and what a root called behind it.
  std::ranges::stable_sort(entries_, std::greater(), &Entry::total_ns);
  place_of_node_.resize(graph_.nodes.size());
  place_of_cycle_.resize(graph_.cycles.size());
  for (size_t i = 0; i < entries_.size(); ++i) {
    const Entry& entry = entries_[i];
    if (entry.cycle != no_cycle)
      place_of_cycle_[entry.cycle] = i;
    else
      place_of_node_[entry.node] = i;
  }
  const size_t limit = options_.limit == 0 ? SIZE_MAX : options_.limit;
  while (shown_ < std::min(limit, entries_.size()) && !is_small(entries_[shown_].total_ns))
    ++shown_;
}

void GraphText::set_widths() {
  uint64_t longest = whole_;
  for (const auto& [name, ns] : listing_.rest()) longest = std::max(longest, ns);
  time_width_ = std::max(time_width_, seconds(longest, digits_).size() + 1);
  uint64_t most = 0;
  for (size_t i = 0; i < shown_; ++i) {
    if (entries_[i].cycle != no_cycle) continue;
    const auto of_these = [&](std::span<const CallArcId> ids) {
      for (const CallArcId id : ids) {
        if (!is_small(graph_.arcs[id].total_ns)) most = std::max(most, graph_.arcs[id].calls);
      }
    };
    most = std::max(most, graph_.nodes[entries_[i].node].calls);
    of_these(graph_.calls_to(entries_[i].node));
    of_these(graph_.calls_from(entries_[i].node));
  }
  if (most != 0) calls_width_ = std::max<size_t>(3, std::to_string(most).size());
}

void GraphText::head() {
  out_ += "Call graph: % time is of the " + amount_text(listing_.busy().of, whole_) + " shown\n\n";
  const std::string called = pad_left("called", calls_width_ == 0 ? 8 : calls_width_ + 5);
  const size_t times = 2 * time_width_ + 2;
  out_ += options_.style.bold("index % time" + pad_left("self", time_width_) +
                              pad_left("children", time_width_ + 2) +
                              pad_right(called, columns({}).size() - times) + "  name") +
          "\n";
}

std::string GraphText::columns(const Numbers& numbers) const {
  const bool timed = numbers.total_ns != 0 || numbers.self_ns != 0;
  std::string text = pad_left(timed ? seconds(numbers.self_ns, digits_) : "", time_width_);
  text +=
      pad_left(timed ? seconds(numbers.total_ns - numbers.self_ns, digits_) : "", time_width_ + 2);
  if (calls_width_ == 0) return text + std::string(8, ' ');
  return text + pad_left(numbers.called, calls_width_ + 2) +
         pad_right(numbers.of, calls_width_ + 1);
}

size_t GraphText::room(const std::string& numbers, const std::string& suffix) const {
  const size_t used = display_width(numbers) + display_width(suffix);
  return std::max<size_t>(8, options_.width > used ? options_.width - used : 0);
}

void GraphText::line(const std::string& numbers, const std::string& name,
                     const std::string& suffix) {
  std::string text = numbers + name + suffix;
  while (text.ends_with(' ')) text.pop_back();
  out_ += text + "\n";
}

void GraphText::line_of(const Numbers& numbers, CallNodeId id) {
  const std::string left = below(numbers);
  const std::string suffix = suffix_of(id);
  const std::string name = listing_.name(id, room(left, suffix));
  line(left, listing_.is_pseudo(id) ? options_.style.source(name) : name, suffix);
}

std::string GraphText::below(const Numbers& numbers) const {
  return std::string(12, ' ') + columns(numbers) + std::string(6, ' ');
}

std::string GraphText::beside(size_t place, const Numbers& numbers) const {
  // Of the rest there is no share: percentages are of what is shown.
  const std::string share =
      place < entries_.size() ? percent(numbers.total_ns, whole_) : std::string();
  return pad_right(number(place), 6) + " " + pad_left(share, 5) + columns(numbers) + "  ";
}

void GraphText::titled(size_t place, const Numbers& numbers, const std::string& title) {
  const std::string left = beside(place, numbers);
  const std::string suffix = " " + number(place);
  line(left, options_.style.bold(fit(title, room(left, suffix), options_.unicode)), suffix);
}

std::string GraphText::suffix_of(CallNodeId id) const {
  const CycleId cycle = graph_.nodes[id].cycle;
  const std::string of_cycle =
      cycle == no_cycle ? "" : " <cycle " + std::to_string(cycle + 1) + ">";
  return of_cycle + " " + number(place_of_node_[id]);
}

// As gprof does: within a cycle, and of what calls itself, the calls of all are not those that
// matter.
Numbers GraphText::numbers_of(const CallArc& arc) const {
  Numbers numbers{.self_ns = arc.self_ns, .total_ns = arc.total_ns};
  if (arc.calls == 0) return numbers;
  numbers.called = std::to_string(arc.calls);
  const CallNode& callee = graph_.nodes[arc.callee];
  const uint64_t all = callee.cycle == no_cycle ? callee.calls : graph_.cycles[callee.cycle].calls;
  if (!graph_.is_recursive(arc) && callee.all_calls_counted) numbers.of = "/" + std::to_string(all);
  return numbers;
}

std::vector<CallArcId> GraphText::sorted(std::span<const CallArcId> ids) const {
  std::vector<CallArcId> order(ids.begin(), ids.end());
  std::ranges::stable_sort(order, [&](CallArcId a, CallArcId b) {
    const auto key = [&](CallArcId id) {
      const CallArc& arc = graph_.arcs[id];
      const int nearness = arc.caller == arc.callee ? 2 : graph_.is_recursive(arc) ? 1 : 0;
      return std::tuple(nearness, UINT64_MAX - arc.total_ns, UINT64_MAX - arc.calls);
    };
    return key(a) < key(b);
  });
  return order;
}

// Times of recursive calls overlap with others, and make no sum.
void GraphText::add(Hidden& hidden, const CallArc& arc) const {
  ++hidden.lines;
  if (graph_.is_recursive(arc)) return;
  hidden.self_ns += arc.self_ns;
  hidden.total_ns += arc.total_ns;
}

void GraphText::more(const Hidden& hidden) {
  if (hidden.lines == 0) return;
  line(below({.self_ns = hidden.self_ns, .total_ns = hidden.total_ns}),
       "(" + std::to_string(hidden.lines) + " more)", "");
}

void GraphText::callers(CallNodeId id) {
  if (graph_.calls_to(id).empty()) line(below({}), "<spontaneous>", "");
  std::vector<CallArcId> shown;
  Hidden hidden;
  for (const CallArcId arc : sorted(graph_.calls_to(id))) {
    if (is_small(graph_.arcs[arc].total_ns))
      add(hidden, graph_.arcs[arc]);
    else
      shown.push_back(arc);
  }
  more(hidden);
  for (const CallArcId arc : shown | std::views::reverse)
    line_of(numbers_of(graph_.arcs[arc]), graph_.arcs[arc].caller);
}

void GraphText::callees(CallNodeId id) {
  Hidden hidden;
  for (const CallArcId arc : sorted(graph_.calls_from(id))) {
    if (is_small(graph_.arcs[arc].total_ns))
      add(hidden, graph_.arcs[arc]);
    else
      line_of(numbers_of(graph_.arcs[arc]), graph_.arcs[arc].callee);
  }
  more(hidden);
}

void GraphText::node_entry(CallNodeId id, size_t place) {
  const CallNode& node = graph_.nodes[id];
  callers(id);
  Numbers numbers{.self_ns = node.self_ns, .total_ns = node.total_ns};
  if (node.all_calls_counted) {
    numbers.called = std::to_string(node.calls);
    if (node.recursive_calls != 0) numbers.of = "+" + std::to_string(node.recursive_calls);
  }
  const std::string left = beside(place, numbers);
  const std::string suffix = suffix_of(id);
  line(left, options_.style.bold(listing_.name(id, room(left, suffix))), suffix);
  callees(id);
}

void GraphText::cycle_entry(CycleId id, size_t place) {
  const Cycle& cycle = graph_.cycles[id];
  Numbers numbers{.self_ns = cycle.self_ns, .total_ns = cycle.total_ns};
  if (cycle.calls != 0) {
    numbers.called = std::to_string(cycle.calls);
    numbers.of = "+" + std::to_string(cycle.recursive_calls);
  }
  titled(place, numbers, "<cycle " + std::to_string(id + 1) + " as a whole>");
  std::vector<std::pair<uint64_t, CallNodeId>> members;
  members.reserve(cycle.members.size());
  for (const CallNodeId member : cycle.members)
    members.emplace_back(graph_.share_of_cycle_ns(member), member);
  std::ranges::stable_sort(members, std::greater(), &std::pair<uint64_t, CallNodeId>::first);
  Hidden hidden;
  for (const auto& [ns, member] : members) {
    const uint64_t self_ns = graph_.nodes[member].self_ns;
    if (!is_small(ns)) {
      line_of({.self_ns = self_ns, .total_ns = ns}, member);
      continue;
    }
    ++hidden.lines;
    hidden.self_ns += self_ns;
    hidden.total_ns += ns;
  }
  more(hidden);
}

void GraphText::rest_entries() {
  for (size_t i = 0; i < listing_.rest().size(); ++i) {
    const auto& [name, ns] = listing_.rest()[i];
    titled(entries_.size() + i, {.self_ns = ns, .total_ns = ns}, clean(name, options_.unicode));
    rule();
  }
}

// Down the columns, then across; cycles at the end.
void GraphText::index() {
  struct Row {
    std::string by;  // without the process
    std::string name;
    size_t place;
  };
  const size_t across = std::max<size_t>(1, options_.width / 40);
  const size_t width = std::max<size_t>(30, options_.width / across);
  std::vector<Row> rows;
  for (size_t i = 0; i < shown_; ++i) {
    if (entries_[i].node != no_call_node)
      rows.push_back(
          {listing_.name_alone(entries_[i].node), listing_.name(entries_[i].node, width - 9), i});
  }
  std::ranges::sort(rows, {}, [](const Row& row) { return std::tie(row.by, row.place); });
  for (CycleId id = 0; id < graph_.cycles.size(); ++id) {
    if (place_of_cycle_[id] < shown_)
      rows.push_back({"", "<cycle " + std::to_string(id + 1) + ">", place_of_cycle_[id]});
  }
  out_ += "\n" + options_.style.bold("Index by function name") + "\n\n";
  const size_t down = (rows.size() + across - 1) / across;
  for (size_t i = 0; i < down; ++i) {
    std::string text;
    for (size_t at = i; at < rows.size(); at += down) {
      text += pad_left(number(rows[at].place), 7) + " ";
      text += pad_right(rows[at].name, width - 8);
    }
    while (text.ends_with(' ')) text.pop_back();
    out_ += text + "\n";
  }
  out_ += "\n";
}

}  // namespace

std::string graph_text_of(const Listing& listing, const ReportOptions& options) {
  return GraphText(listing, options).run();
}

std::string graph_text(const Profile& profile, const ReportOptions& options) {
  return graph_text_of(listing_of(profile, options, ListingKind::graph), options);
}

extern const ReportView graph_view{"graph", graph_text, graph_json};

}  // namespace pkprof
