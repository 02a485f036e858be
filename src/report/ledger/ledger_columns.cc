// SPDX-License-Identifier: Apache-2.0
#include "report/ledger/ledger_columns.h"

#include <numeric>

#include "report/clean.h"
#include "report/format.h"

namespace pkprof {
namespace {

struct Title {
  const char* upper;
  const char* lower;
};
constexpr std::array<Title, ledger_column_count> column_titles = {{{"", "SEEMS"},
                                                                   {"", "USER"},
                                                                   {"", "OWN"},
                                                                   {"", "ASYNC"},
                                                                   {"", "COSTS"},
                                                                   {"FOR", "OTHERS"},
                                                                   {"WITH", "SERVERS"},
                                                                   {"", "STOLEN"}}};

}  // namespace

LedgerNumbers numbers_of(const LedgerRow& row) {
  return {row.seems_ns,      row.user_ns,           row.own_ns,   row.async_ns, row.costs_ns(),
          row.for_others_ns, row.with_servers_ns(), row.stolen_ns};
}

void add(LedgerNumbers& to, const LedgerNumbers& numbers) {
  for (size_t i = 0; i < ledger_column_count; ++i) to[i] += numbers[i];
}

LedgerColumns::LedgerColumns(const Ledger& ledger, size_t id_width, size_t width) {
  // A number is "1234.5" at most on machines of less than 100 CPUs. "16 CPUs x 100%" is a name.
  constexpr size_t least_name = 14;
  constexpr Widths without = {8, 8, 8, 8, 8, 0, 0, 8};
  struct Layout {
    Widths widths;
    size_t name;  // what it leaves to the name
  };
  constexpr std::array<Layout, 3> layouts = {{{{8, 8, 8, 8, 8, 8, 8, 8}, max_name_width},
                                              {{7, 7, 7, 7, 7, 7, 8, 7}, least_name},
                                              {{7, 7, 7, 7, 7, 0, 8, 7}, least_name}}};
  widths_ = without;
  if (!ledger.has_clients) return;
  for (const Layout& layout : layouts) {
    widths_ = layout.widths;
    if (id_width + 1 + layout.name + this->width() <= width) return;
  }
  widths_ = without;
}

size_t LedgerColumns::width() const {
  return std::accumulate(widths_.begin(), widths_.end(), size_t{0});
}

std::string LedgerColumns::upper_titles() const {
  if (!shows(LedgerColumn::with_servers)) return "";
  std::string text;
  for (size_t i = 0; i < ledger_column_count; ++i)
    if (widths_[i]) text += pad_left(column_titles[i].upper, widths_[i]);
  while (text.ends_with(' ')) text.pop_back();
  return text;
}

std::string LedgerColumns::titles() const {
  std::string text;
  for (size_t i = 0; i < ledger_column_count; ++i)
    if (widths_[i]) text += pad_left(column_titles[i].lower, widths_[i]);
  return text;
}

std::string LedgerColumns::row(const LedgerNumbers& numbers, uint64_t duration_ns,
                               const Style& style) const {
  std::string text;
  for (size_t i = 0; i < ledger_column_count; ++i) {
    if (!widths_[i]) continue;
    const std::string number = pad_left(percent_or_dash(numbers[i], duration_ns), widths_[i]);
    text += i == index(LedgerColumn::costs) ? style.bold(number) : number;
  }
  return text;
}

std::vector<std::string> LedgerColumns::legend(By by) const {
  const std::string group = by == By::pid ? "" : by == By::thread ? " thread" : " group";
  std::vector<std::string> lines = {
      "% of one CPU. SEEMS: on the CPU. COSTS: served = USER + OWN kernel +",
      "ASYNC kernel. STOLEN: on the CPU while the kernel served another" + group + "."};
  if (!shows(LedgerColumn::with_servers)) return lines;
  const std::string clients = by == By::pid ? "its clients" : "clients of another" + group;
  if (shows(LedgerColumn::for_others))
    lines.push_back("FOR OTHERS: the part of COSTS that was for " + clients + ".");
  lines.emplace_back("WITH SERVERS: COSTS without what was for others, and what servers");
  lines.emplace_back("did for it.");
  return lines;
}

}  // namespace pkprof
