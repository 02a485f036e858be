// SPDX-License-Identifier: Apache-2.0
#include "top/table.h"

#include <algorithm>
#include <cctype>
#include <functional>
#include <ranges>

#include "model/source.h"
#include "report/clean.h"
#include "report/format.h"

namespace pkprof::top {
namespace {

constexpr size_t most_parts = 3;  // of a row's words for why

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) {
    return static_cast<char>(c < 0x80 ? std::tolower(c) : c);
  });
  return text;
}

uint64_t value_of(const LedgerRow& row, Column column) {
  switch (column) {
    case Column::seems:
      return row.seems_ns;
    case Column::user:
      return row.user_ns;
    case Column::own:
      return row.own_ns;
    case Column::async:
      return row.async_ns;
    case Column::stolen:
      return row.stolen_ns;
    default:
      return row.costs_ns();
  }
}

template <typename Id>
void add_to(std::vector<std::pair<Id, uint64_t>>& parts, Id id, uint64_t ns) {
  const auto it = std::ranges::find(parts, id, &std::pair<Id, uint64_t>::first);
  if (it == parts.end())
    parts.emplace_back(id, ns);
  else
    it->second += ns;
}

template <typename Id>
void most_first(std::vector<std::pair<Id, uint64_t>>& parts) {
  std::ranges::stable_sort(parts, std::greater(), &std::pair<Id, uint64_t>::second);
}

}  // namespace

std::string_view title_of(Column column, By by) {
  constexpr std::array<std::string_view, column_count> titles = {"PID", "COMM",  "SEEMS", "USER",
                                                                 "OWN", "ASYNC", "COSTS", "STOLEN"};
  if (column == Column::id && by == By::thread) return "PID/TID";
  if (column == Column::id && by != By::pid) return "PROCS";
  if (column == Column::name && by == By::cgroup) return "CGROUP";
  if (column == Column::name && by == By::container) return "CONTAINER";
  if (column == Column::name && by == By::unit) return "UNIT";
  if (column == Column::name && by == By::exe) return "EXE";
  return titles[static_cast<size_t>(column)];
}

std::string_view short_source(std::string_view source) {
  constexpr std::string_view softirq = "softirq:";
  return source.starts_with(softirq) ? source.substr(softirq.size()) : source;
}

Table::Table(const Profile& profile, const TableOptions& options)
    : profile_(profile), options_(options), ledger_(build_ledger(profile, {}, options.by)) {
  add_flows();
  for (size_t i = 0; i < ledger_.processes.size(); ++i)
    if (is_wanted(ledger_.processes[i])) rows_.push_back(row_of(i));
  std::ranges::stable_sort(
      rows_, [this](const TableRow& a, const TableRow& b) { return is_before(a, b); });
  if (options_.tree && (options_.by == By::pid || options_.by == By::thread)) make_tree();
}

void Table::add_flows() {
  for (const Flow& flow : ledger_.flows) {
    const bool process = ledger_.groups[flow.served].kind != GroupKind::special;
    if (process && (flow.ran_on != flow.served || is_asynchronous(profile_.text(flow.source))))
      add_to(async_[flow.served], flow.source, flow.ns);
    if (is_taken(profile_, ledger_, flow)) add_to(worked_for_[flow.ran_on], flow.served, flow.ns);
  }
  for (auto& [group, parts] : async_) most_first(parts);
  for (auto& [group, parts] : worked_for_) most_first(parts);
}

bool Table::is_wanted(const LedgerRow& row) const {
  if (options_.filter.empty()) return true;
  const std::string wanted = lower(options_.filter);
  const Group& group = ledger_.groups[row.group];
  const Label& label = profile_.labels()[row.label];
  const auto has = [&](const std::string& text) {
    return lower(text).find(wanted) != std::string::npos;
  };
  return has(party(row.group)) || has(clean(label.exe)) || has(clean(label.cgroup)) ||
         has(group.name);
}

TableRow Table::row_of(size_t number) const {
  const LedgerRow& row = ledger_.processes[number];
  const Group& group = ledger_.groups[row.group];
  const Label& label = profile_.labels()[row.label];
  TableRow to;
  to.row = number;
  if (options_.by == By::pid || options_.by == By::thread) {
    to.id = label.pid_text();
    to.key = to.id + "/" + std::to_string(label.start_ns);
    if (options_.by == By::thread) {
      const std::string thread = group.thread ? std::to_string(group.thread) : "-";
      to.id += "/" + thread;
      to.key += "/" + thread;
    }
    const std::string comm = group.name.empty() ? label.comm : group.name;
    to.name = clean(label.kthread ? "[" + comm + "]" : comm, options_.unicode);
  } else {
    to.id = std::to_string(group.processes.size());
    to.key = std::string(to_string(group.kind)) + "/" + group.name;
    to.name = party(row.group);
  }
  return to;
}

// Most first, names and numbers in their order; what is equal as the ledger has it.
bool Table::is_before(const TableRow& a, const TableRow& b) const {
  const TableRow& first = options_.reverse ? b : a;
  const TableRow& second = options_.reverse ? a : b;
  if (options_.sort == Column::name) return first.name < second.name;
  if (options_.sort == Column::id) {
    const auto order = [this](const TableRow& row) {
      const LedgerRow& of = ledger_row(row);
      const Group& group = ledger_.groups[of.group];
      return std::pair<uint64_t, uint64_t>(options_.by == By::pid || options_.by == By::thread
                                               ? profile_.labels()[of.label].pid
                                               : UINT64_MAX - group.processes.size(),
                                           group.thread);
    };
    return order(first) < order(second);
  }
  return value_of(ledger_row(first), options_.sort) > value_of(ledger_row(second), options_.sort);
}

// Rows whose parent is not among them are at the top. Threads are below their process's parent.
void Table::make_tree() {
  const auto label_of = [this](size_t i) -> const Label& {
    return profile_.labels()[ledger_row(rows_[i]).label];
  };
  std::map<uint32_t, bool> is_here;
  for (size_t i = 0; i < rows_.size(); ++i) is_here[label_of(i).pid] = true;
  std::map<uint32_t, std::vector<size_t>> children;
  std::vector<size_t> next;  // a stack: the last comes next
  for (size_t i = rows_.size(); i-- > 0;) {
    const Label& label = label_of(i);
    const bool below = label.parent_pid && label.parent_pid != label.pid && label.pid &&
                       is_here.contains(label.parent_pid);
    (below ? children[label.parent_pid] : next).push_back(i);
  }
  std::vector<TableRow> tree;
  std::vector<bool> done(rows_.size());
  std::map<uint32_t, bool> open;  // pids whose children are placed: of threads, with the first
  const auto place = [&] {
    while (!next.empty()) {
      const size_t i = next.back();
      next.pop_back();
      if (done[i]) continue;
      done[i] = true;
      tree.push_back(rows_[i]);
      const uint32_t pid = label_of(i).pid;
      if (!std::exchange(open[pid], true))
        for (const size_t child : children[pid]) {
          rows_[child].depth = rows_[i].depth + 1;
          next.push_back(child);
        }
    }
  };
  place();
  // Pids that were used again can make a circle.
  for (size_t i = 0; i < rows_.size(); ++i) {
    if (done[i]) continue;
    next.push_back(i);
    place();
  }
  rows_ = std::move(tree);
}

std::string Table::party(GroupId id) const {
  return party_name(profile_, options_.by, ledger_.groups[id], options_.unicode);
}

std::string Table::source(StringId id) const {
  return clean(short_source(profile_.text(id)), options_.unicode);
}

std::string Table::why(const TableRow& row) const {
  const LedgerRow& of = ledger_row(row);
  const uint64_t whole = profile_.meta.duration_ns;
  std::vector<std::pair<uint64_t, std::string>> parts;
  if (const auto it = async_.find(of.group); it != async_.end())
    for (const auto& [id, ns] : it->second | std::views::take(most_parts))
      parts.emplace_back(ns, source(id) + " " + percent(ns, whole));
  if (const auto it = worked_for_.find(of.group); it != worked_for_.end())
    for (const auto& [id, ns] : it->second | std::views::take(most_parts))
      parts.emplace_back(ns, "for " + party(id) + " " + percent(ns, whole));
  std::ranges::stable_sort(parts, std::greater(), &std::pair<uint64_t, std::string>::first);
  std::string text;
  for (const auto& [ns, part] : parts) {
    if (reads_zero(ns, whole)) break;
    text += (text.empty() ? "" : ", ") + part;
  }
  return text;
}

std::vector<Table::Part> Table::async_by_source() const {
  std::vector<std::pair<StringId, uint64_t>> sums;
  for (const auto& [group, parts] : async_)
    for (const auto& [id, ns] : parts) add_to(sums, id, ns);
  most_first(sums);
  std::vector<Part> out;
  out.reserve(sums.size());
  for (const auto& [id, ns] : sums) out.emplace_back(source(id), ns);
  return out;
}

std::vector<Table::Part> Table::async_by_party() const {
  std::vector<std::pair<GroupId, uint64_t>> sums;
  for (const auto& [group, parts] : async_)
    for (const auto& [id, ns] : parts) add_to(sums, group, ns);
  most_first(sums);
  std::vector<Part> out;
  out.reserve(sums.size());
  for (const auto& [id, ns] : sums) out.emplace_back(party(id), ns);
  return out;
}

}  // namespace pkprof::top
