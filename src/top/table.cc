// SPDX-License-Identifier: Apache-2.0
#include "top/table.h"

#include <algorithm>
#include <cctype>
#include <functional>
#include <map>
#include <ranges>
#include <tuple>

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

// The numbers with the largest sums, the most first.
std::vector<std::pair<uint32_t, uint64_t>> largest(std::vector<uint64_t> sums, size_t most) {
  std::vector<std::pair<uint32_t, uint64_t>> parts;
  for (uint32_t what = 0; what < sums.size(); ++what)
    if (sums[what]) parts.emplace_back(what, sums[what]);
  const size_t kept = std::min(most, parts.size());
  std::ranges::partial_sort(
      parts, parts.begin() + static_cast<ptrdiff_t>(kept), {},
      [](const auto& part) { return std::pair(UINT64_MAX - part.second, part.first); });
  parts.resize(kept);
  return parts;
}

}  // namespace

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
    case Column::for_others:
      return row.for_others_ns;
    case Column::with_servers:
      return row.with_servers_ns();
    case Column::stolen:
      return row.stolen_ns;
    default:
      return row.costs_ns();
  }
}

std::string_view short_source(std::string_view source) {
  constexpr std::string_view softirq = "softirq:";
  return source.starts_with(softirq) ? source.substr(softirq.size()) : source;
}

void Shares::settle() {
  std::ranges::sort(all_, {}, [](const Share& s) { return std::pair(s.group, s.what); });
  size_t kept = 0;
  for (const Share& share : all_) {
    if (kept && all_[kept - 1].group == share.group && all_[kept - 1].what == share.what)
      all_[kept - 1].ns += share.ns;
    else
      all_[kept++] = share;
  }
  all_.resize(kept);
  std::ranges::sort(all_, {},
                    [](const Share& s) { return std::tuple(s.group, UINT64_MAX - s.ns, s.what); });
}

std::span<const Shares::Share> Shares::of(GroupId group) const {
  const auto [begin, end] = std::ranges::equal_range(all_, group, {}, &Share::group);
  return {begin, end};
}

Table::Table(const Profile& profile, const TableOptions& options, Rates rates)
    : profile_(profile),
      options_(options),
      ledger_(build_ledger(profile, {}, options.by)),
      rates_(std::move(rates)),
      id_width_(options.by == By::thread ? 15 : 7) {
  add_flows();
  for (size_t i = 0; i < ledger_.processes.size(); ++i)
    if (is_wanted(ledger_.processes[i])) rows_.push_back({i});
  sort();
  if (options_.tree && is_by_process()) make_tree();
  for (const TableRow& row : rows_) id_width_ = std::max(id_width_, id(row).size());
}

void Table::add_flows() {
  for (const Flow& flow : ledger_.flows) {
    const bool process = ledger_.groups[flow.served].kind != GroupKind::special;
    if (process && (flow.ran_on != flow.served || is_asynchronous(profile_.text(flow.source))))
      async_.add(flow.served, flow.source, flow.ns);
    if (is_taken(profile_, ledger_, flow)) worked_for_.add(flow.ran_on, flow.served, flow.ns);
  }
  async_.settle();
  worked_for_.settle();
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

std::string Table::id(const TableRow& row) const {
  const LedgerRow& of = ledger_row(row);
  const Group& group = ledger_.groups[of.group];
  if (!is_by_process()) return std::to_string(group.processes.size());
  return id_text(profile_, options_.by, group);
}

std::string Table::name(const TableRow& row) const {
  const LedgerRow& of = ledger_row(row);
  if (!is_by_process()) return party(of.group);
  const Group& group = ledger_.groups[of.group];
  const Label& label = profile_.labels()[of.label];
  const std::string& comm = group.name.empty() ? label.comm : group.name;
  return clean(label.kthread ? "[" + comm + "]" : comm, options_.unicode);
}

std::string Table::key(const TableRow& row) const {
  return key_of(profile_, options_.by, ledger_.groups[ledger_row(row).group]);
}

uint64_t Table::value(const TableRow& row, Column column) const {
  return resource_of(column) == Resource::cpu ? value_of(ledger_row(row), column)
                                              : rates_.amount(key(row), column);
}

// Most first, names and numbers in their order; what is equal as the ledger has it.
void Table::sort() {
  const auto order = [this](const auto& value) {
    const bool most_first = options_.sort != Column::id && options_.sort != Column::name;
    std::vector<std::pair<decltype(value(rows_[0])), TableRow>> keyed;
    keyed.reserve(rows_.size());
    for (const TableRow& row : rows_) keyed.emplace_back(value(row), row);
    std::ranges::stable_sort(keyed, [&](const auto& a, const auto& b) {
      return most_first != options_.reverse ? b.first < a.first : a.first < b.first;
    });
    std::ranges::transform(keyed, rows_.begin(), [](const auto& pair) { return pair.second; });
  };
  if (options_.sort == Column::name)
    order([this](const TableRow& row) { return name(row); });
  else if (options_.sort == Column::id)
    order([this](const TableRow& row) {
      const LedgerRow& of = ledger_row(row);
      const Group& group = ledger_.groups[of.group];
      return std::pair<uint64_t, uint64_t>(
          is_by_process() ? profile_.labels()[of.label].pid : UINT64_MAX - group.processes.size(),
          group.thread);
    });
  else
    order([this](const TableRow& row) { return value(row, options_.sort); });
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
  for (const auto& [group, id, ns] : async_.of(of.group) | std::views::take(most_parts))
    parts.emplace_back(ns, source(id) + " " + percent(ns, whole));
  for (const auto& [group, id, ns] : worked_for_.of(of.group) | std::views::take(most_parts))
    parts.emplace_back(ns, "for " + party(id) + " " + percent(ns, whole));
  std::ranges::stable_sort(parts, std::greater(), &std::pair<uint64_t, std::string>::first);
  std::string text;
  for (const auto& [ns, part] : parts) {
    if (reads_zero(ns, whole)) break;
    text += (text.empty() ? "" : ", ") + part;
  }
  return text;
}

std::vector<Table::Part> Table::async_by_source(size_t most) const {
  std::vector<uint64_t> sums;
  for (const auto& [group, id, ns] : async_.all()) {
    if (id >= sums.size()) sums.resize(id + 1);
    sums[id] += ns;
  }
  std::vector<Part> out;
  for (const auto& [id, ns] : largest(std::move(sums), most)) out.emplace_back(source(id), ns);
  return out;
}

std::vector<Table::Part> Table::async_by_party(size_t most) const {
  std::vector<uint64_t> sums(ledger_.groups.size());
  for (const auto& [group, id, ns] : async_.all()) sums[group] += ns;
  std::vector<Part> out;
  for (const auto& [id, ns] : largest(std::move(sums), most)) out.emplace_back(party(id), ns);
  return out;
}

}  // namespace pkprof::top
