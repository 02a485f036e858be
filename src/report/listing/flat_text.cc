// SPDX-License-Identifier: Apache-2.0
// See flat_text.h. What the width is short of goes first: the file, the total, and the columns of
// calls where none were counted.
#include "report/listing/flat_text.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <tuple>

#include "report/clean.h"
#include "report/format.h"
#include "report/listing/listing_json.h"
#include "report/view.h"

namespace pkprof {

namespace {

constexpr size_t where_width = 18;

// Of times a call: the largest of these units in which the longest is not below one.
struct Unit {
  const char* name;
  uint64_t ns;
};
constexpr std::array<Unit, 4> units = {
    {{"s", 1'000'000'000}, {"ms", 1'000'000}, {"us", 1'000}, {"ns", 1}}};

class FlatText {
 public:
  FlatText(const Listing& listing, const ReportOptions& options)
      : options_(options),
        listing_(listing),
        nodes_(listing_.graph().nodes),
        whole_(listing_.busy().busy_ns),
        digits_(digits_of_seconds(whole_)) {
    choose_rows();
    choose_columns();
  }

  std::string run() {
    head();
    for (const CallNodeId id : rows_) row(id);
    if (hidden_ > 0) {
      cumulative_ += hidden_ns_;
      numbers(hidden_ns_, nullptr, true);
      out_ += "(" + std::to_string(hidden_) + " more functions)\n";
    }
    for (const auto& [name, ns] : listing_.rest()) {
      cumulative_ += ns;
      numbers(ns, nullptr, false);
      out_ += fit(clean(name, options_.unicode), name_width_, options_.unicode) + "\n";
    }
    return out_ + "\n" + busy_line(listing_.busy(), options_);
  }

 private:
  void choose_rows();
  void choose_columns();
  void head();
  void row(CallNodeId id);
  // All columns but the name. Of what is not shown there is no share.
  void numbers(uint64_t self_ns, const CallNode* node, bool share);

  [[nodiscard]] std::string time(uint64_t ns) const {
    return pad_left(seconds(ns, digits_), time_width_);
  }
  // Too little of its own to be read, and not on the way to much. Roots are no functions: what
  // they have themselves is time without a stack.
  [[nodiscard]] bool is_small(const CallNode& node) const {
    const double percent = 100.0 / static_cast<double>(std::max<uint64_t>(1, whole_));
    return static_cast<double>(node.self_ns) * percent < std::min(options_.threshold, 0.05) &&
           static_cast<double>(node.total_ns) * percent < 1;
  }
  [[nodiscard]] static bool is_listed(const CallNode& node) {
    return node.function != no_function || node.self_ns != 0;
  }

  const ReportOptions& options_;
  const Listing& listing_;
  const std::vector<CallNode>& nodes_;
  const uint64_t whole_;
  const int digits_;
  std::vector<CallNodeId> rows_;
  size_t hidden_ = 0;
  uint64_t hidden_ns_ = 0;
  size_t time_width_ = 9;
  size_t name_width_ = 0;
  bool show_calls_ = false;
  size_t calls_width_ = 8;
  bool show_total_ = false;
  bool show_where_ = false;
  Unit unit_ = units[1];
  uint64_t cumulative_ = 0;
  std::string out_;
};

void FlatText::choose_rows() {
  std::vector<CallNodeId> order(nodes_.size());
  std::iota(order.begin(), order.end(), 0);
  std::erase_if(order, [&](CallNodeId id) { return !is_listed(nodes_[id]); });
  std::ranges::stable_sort(order, [&](CallNodeId a, CallNodeId b) {
    return std::tuple(nodes_[b].self_ns, nodes_[b].total_ns) <
           std::tuple(nodes_[a].self_ns, nodes_[a].total_ns);
  });
  const size_t limit = options_.limit == 0 ? SIZE_MAX : options_.limit;
  for (const CallNodeId id : order) {
    if (rows_.size() < limit && !is_small(nodes_[id])) {
      rows_.push_back(id);
    } else {
      ++hidden_;
      hidden_ns_ += nodes_[id].self_ns;
    }
  }
}

void FlatText::choose_columns() {
  bool counted = false;
  uint64_t longest = 0;
  for (const CallNodeId id : rows_) {
    if (!nodes_[id].all_calls_counted) continue;
    counted = true;
    const uint64_t calls = nodes_[id].calls + nodes_[id].recursive_calls;
    calls_width_ = std::max(calls_width_, std::to_string(calls).size() + 1);
    longest = std::max(longest, nodes_[id].total_ns / nodes_[id].calls);
  }
  if (counted) {
    const auto fits = [&](const Unit& unit) { return longest >= unit.ns; };
    const auto it = std::ranges::find_if(units, fits);
    unit_ = it == units.end() ? units.back() : *it;
  }
  uint64_t last = whole_;
  for (const auto& [name, ns] : listing_.rest()) last += ns;
  time_width_ = std::max(time_width_, seconds(last, digits_).size() + 1);

  size_t left = std::max<size_t>(options_.width, 60) - (6 + 2 * time_width_ + 2 + 2);
  const auto take = [&](bool wanted, size_t columns, size_t keep) {
    if (!wanted || left < columns + keep) return false;
    left -= columns;
    return true;
  };
  show_calls_ =
      take(counted, calls_width_ + 18, 0) || take(options_.width >= 100, calls_width_ + 18, 30);
  show_total_ = take(true, time_width_, 30);
  show_where_ = take(true, where_width + 2, 40);
  name_width_ = left;
}

void FlatText::head() {
  const std::string per_call = std::string(unit_.name) + "/call";
  const auto both = [&](const char* above, const char* below, size_t width) {
    return std::pair(pad_left(above, width), pad_left(below, width));
  };
  const char* const unit = is_in_bytes(listing_.busy().of) ? "GB" : "seconds";
  std::string above;
  std::string below;
  const auto add = [&](const std::pair<std::string, std::string>& column) {
    above += column.first;
    below += column.second;
  };
  add(both("%  ", "time", 6));
  add(both("cumulative", unit, time_width_ + 2));
  add(both("self", unit, time_width_));
  if (show_total_) add(both("total", unit, time_width_));
  if (show_calls_) {
    add(both("", "calls", calls_width_));
    add(both("self", per_call.c_str(), 9));
    add(both("total", per_call.c_str(), 9));
  }
  below += "  " + (show_where_ ? pad_right("name", name_width_) + "  where" : "name");
  while (above.ends_with(' ')) above.pop_back();
  out_ += "Flat profile: % time is of the " + amount_text(listing_.busy().of, whole_) +
          " shown\n\n" + options_.style.bold(above) + "\n" + options_.style.bold(below) + "\n";
}

void FlatText::numbers(uint64_t self_ns, const CallNode* node, bool share) {
  const std::string of_whole =
      share && whole_ != 0
          ? decimal(100.0 * static_cast<double>(self_ns) / static_cast<double>(whole_), 2)
          : "";
  out_ += pad_left(of_whole, 6) + "  " + time(cumulative_) + time(self_ns);
  if (show_total_) out_ += node != nullptr ? time(node->total_ns) : std::string(time_width_, ' ');
  if (show_calls_) {
    const bool counted = node != nullptr && node->all_calls_counted;
    const auto per_call = [&](uint64_t ns) {
      if (!counted) return std::string(9, ' ');
      const double one = static_cast<double>(node->calls) * static_cast<double>(unit_.ns);
      return pad_left(decimal(static_cast<double>(ns) / one, 2), 9);
    };
    const uint64_t calls = counted ? node->calls + node->recursive_calls : 0;
    out_ += pad_left(counted ? std::to_string(calls) : "", calls_width_) + per_call(self_ns) +
            per_call(counted ? node->total_ns : 0);
  }
  out_ += "  ";
}

void FlatText::row(CallNodeId id) {
  const CallNode& node = nodes_[id];
  cumulative_ += node.self_ns;
  numbers(node.self_ns, &node, true);
  std::string name = pad_right(listing_.name(id, name_width_), name_width_);
  if (listing_.is_pseudo(id)) name = options_.style.source(name);
  const Function* const function = listing_.function(id);
  if (show_where_ && function != nullptr)
    name += "  " + fit(clean(function->where, options_.unicode), where_width, options_.unicode);
  out_ += name;
  while (out_.ends_with(' ')) out_.pop_back();
  out_ += "\n";
}

}  // namespace

std::string flat_text_of(const Listing& listing, const ReportOptions& options) {
  return FlatText(listing, options).run();
}

std::string flat_text(const Profile& profile, const ReportOptions& options) {
  return flat_text_of(listing_of(profile, options, ListingKind::flat), options);
}

extern const ReportView flat_view{"flat", flat_text, flat_json};

}  // namespace pkprof
