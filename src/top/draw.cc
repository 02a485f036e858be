// SPDX-License-Identifier: Apache-2.0
// How a view looks. 80 columns by 24 lines have room for all of it; where there is less, words for
// why go first, then the totals above the list.
#include <algorithm>
#include <array>
#include <cmath>
#include <ranges>
#include <utility>

#include "report/clean.h"
#include "report/degraded.h"
#include "report/format.h"
#include "top/detail.h"
#include "top/help.h"
#include "top/view.h"

namespace pkprof::top {
namespace {

constexpr size_t name_width = 16;
constexpr size_t least_name_width = 12;
constexpr size_t group_width = 30;
constexpr size_t most_totals = 6;  // of one line
constexpr size_t least_rows = 4;   // before the totals go

// What goes first where there is not enough room. Other columns of CPU time go only where those of
// other resources are asked for.
constexpr std::array least_of_clients = {Column::for_others, Column::with_servers};
constexpr std::array least_wanted = {Column::stolen, Column::seems,    Column::async, Column::own,
                                     Column::user,   Column::memory,   Column::lock,  Column::wait,
                                     Column::sent,   Column::received, Column::write, Column::read};

// One more for a title that is as wide as a number.
size_t width_of(Column column) {
  return title_of(column, By::pid).size() < number_width ? number_width : number_width + 1;
}

size_t width_of(const std::vector<Column>& columns) {
  size_t width = 0;
  for (const Column column : columns) width += width_of(column);
  return width;
}

size_t width_of(const Line& line) {
  size_t width = 0;
  for (const Span& span : line) width += display_width(span.text);
  return width;
}

// Cut to a width.
Line fitted(Line line, size_t width, bool unicode) {
  size_t left = width;
  for (auto it = line.begin(); it != line.end(); ++it) {
    const size_t needs = display_width(it->text);
    if (needs > left) {
      it->text = fit(it->text, left, unicode);
      line.erase(std::next(it), line.end());
      break;
    }
    left -= needs;
  }
  return line;
}

// What kinds of time are called, and the letter that stands for them in the bar.
struct Kind {
  const char* name;
  char letter;
  Tone tone;
  uint64_t ns;
};

std::vector<Kind> kinds_of(const Ledger& ledger) {
  uint64_t user = 0;
  uint64_t own = 0;
  uint64_t async = 0;
  for (const LedgerRow& row : ledger.processes) {
    user += row.user_ns;
    own += row.own_ns;
    async += row.async_ns;
  }
  return {{"user", 'u', Tone::user, user},
          {"own", 'o', Tone::own, own},
          {"async", 'a', Tone::async, async},
          {"kernel", 'k', Tone::kernel, ledger.kernel_ns},
          {"other", 'x', Tone::dim, ledger.other_ns},
          {"unclaimed", '?', Tone::unclaimed, ledger.unclaimed_ns()},
          {"steal", 's', Tone::dim, ledger.steal_ns},
          {"idle", '.', Tone::dim, ledger.idle_ns}};
}

// Whole letters, so that they add up to the width.
Line bar(const std::vector<Kind>& kinds, uint64_t whole, size_t width) {
  Line line = {{"["}};
  uint64_t so_far = 0;
  size_t column = 0;
  for (const Kind& kind : kinds) {
    so_far += kind.ns;
    const double part = whole ? static_cast<double>(so_far) / static_cast<double>(whole) *
                                    static_cast<double>(width)
                              : 0;
    const size_t end = std::min(width, static_cast<size_t>(std::lround(part)));
    if (end > column) line.push_back({std::string(end - column, kind.letter), kind.tone});
    column = std::max(column, end);
  }
  line.push_back({std::string(width - column, ' ') + "]"});
  return line;
}

Line parts_line(const char* title, const std::vector<Table::Part>& parts, uint64_t whole) {
  Line line = {{title, Tone::dim}};
  for (const auto& [name, ns] : parts) {
    if (reads_zero(ns, whole)) break;
    line.push_back({name + " "});
    line.push_back({percent(ns, whole) + "  ", Tone::async});
  }
  return line;
}

}  // namespace

// What affects the figures comes before the host's name where there is not room for both.
Line View::title_line(const std::string& facts, size_t width) const {
  const std::string name = "pkprof top";
  Line warnings;
  if (frozen_) warnings.push_back({"  FROZEN", Tone::warning});
  if (const uint64_t lost = profile_->meta.samples_lost)
    warnings.push_back({"  " + std::to_string(lost) + " samples lost", Tone::warning});
  else if (!degraded_sentences(*profile_, table_options_.by).empty())
    warnings.push_back({"  incomplete: ?", Tone::warning});
  const size_t used = name.size() + 4 + facts.size() + width_of(warnings);
  const size_t room = std::min<size_t>(width - std::min(width, used), 20);
  std::string host;
  if (room >= 4)
    host = fit(clean(profile_->meta.host, options_.unicode), room, options_.unicode) + ", ";
  Line line = {{name, Tone::strong}, {"  " + host + facts}};
  line.insert(line.end(), warnings.begin(), warnings.end());
  return line;
}

std::vector<Line> View::header(size_t width) const {
  std::vector<Line> lines;
  const Meta& meta = profile_->meta;
  const uint64_t whole = meta.duration_ns;
  const Ledger& ledger = table_->ledger();
  const double cost = whole ? 100.0 * static_cast<double>(meta.cost_kernel_ns + meta.cost_user_ns) /
                                  static_cast<double>(whole)
                            : 0;
  std::string facts = std::to_string(meta.cpus) + (meta.cpus == 1 ? " CPU" : " CPUs") + ", " +
                      duration_text(whole) + " at " + std::to_string(meta.frequency_hz) +
                      " Hz, itself " + decimal(cost, 1) + "%";
  if (const double watched = watched_share(meta); watched < 1)
    facts += ", watched " + share_text(watched);
  lines.push_back(title_line(facts, width));
  const std::vector<Kind> kinds = kinds_of(ledger);
  lines.push_back(bar(kinds, ledger.sum_ns(), width > 2 ? width - 2 : 0));
  Line legend = {{"%1CPU ", Tone::dim}};
  for (const Kind& kind : kinds) {
    if (reads_zero(kind.ns, whole)) continue;
    legend.push_back({kind.name + std::string(" "), kind.tone});
    legend.push_back({percent(kind.ns, whole) + "  "});
  }
  lines.push_back(std::move(legend));
  lines.push_back(parts_line("async: ", table_->async_by_source(most_totals), whole));
  lines.push_back(parts_line("for:   ", table_->async_by_party(most_totals), whole));
  if (!options_.resources.empty()) lines.push_back(rates_line());
  for (Line& line : lines) line = fitted(std::move(line), width, options_.unicode);
  return lines;
}

// Of all, so that what is in no row is somewhere.
Line View::rates_line() const {
  Line line = {{"all:   ", Tone::dim}};
  for (const Column column : columns_of(false, options_.resources)) {
    if (resource_of(column) == Resource::cpu) continue;
    const uint64_t total = table_->rates().total(column);
    if (!total) continue;
    line.push_back({std::string(title_of(column, By::pid)) + " ", Tone::dim});
    line.push_back({rate_text(column, total, profile_->meta.duration_ns) + "  "});
  }
  return line;
}

std::vector<Column> View::numbers(size_t width) const {
  std::vector<Column> columns = columns_to_choose();
  std::erase_if(columns, [this](Column c) { return hidden_.contains(c); });
  const auto make_room = [&](Column least) {
    if (table_->id_width() + 1 + least_name_width + width_of(columns) > width)
      std::erase(columns, least);
  };
  for (const Column least : least_of_clients) make_room(least);
  if (options_.resources.empty()) return columns;
  for (const Column least : least_wanted)
    if (least != table_options_.sort) make_room(least);
  return columns;
}

// Names give way to columns for clients and other resources, and to no others.
size_t View::room_for_name(size_t width) const {
  const bool grouped = table_options_.by != By::pid && table_options_.by != By::thread;
  const size_t wanted = grouped ? group_width : name_width;
  const std::vector<Column> columns = numbers(width);
  if (options_.resources.empty() &&
      std::ranges::find(columns, Column::with_servers) == columns.end())
    return wanted;
  const size_t used = table_->id_width() + 1 + width_of(columns);
  return std::clamp(width - std::min(width, used), least_name_width, wanted);
}

std::vector<Line> View::headings(size_t width) const {
  const By by = table_options_.by;
  const std::vector<Column> columns = numbers(width);
  const size_t room = room_for_name(width);
  std::vector<Line> lines;
  const auto add = [&](Line line) {
    const size_t used = width_of(line);
    if (used < width) line.push_back({std::string(width - used, ' '), Tone::heading});
    lines.push_back(fitted(std::move(line), width, options_.unicode));
  };
  std::string upper(table_->id_width() + 1 + room, ' ');
  for (const Column column : columns)
    upper += pad_left(std::string(upper_title_of(column)), width_of(column));
  if (upper.find_first_not_of(' ') != std::string::npos) add({{upper, Tone::heading}});
  Line line;
  const auto put = [&](Column column, const std::string& text) {
    line.push_back({text, column == table_options_.sort ? Tone::strong : Tone::heading});
  };
  const auto title = [&](Column column) {
    std::string text(title_of(column, by));
    if (column == table_options_.sort) text = (table_options_.reverse ? "^" : "v") + text;
    return text;
  };
  put(Column::id, pad_left(title(Column::id), table_->id_width()) + " ");
  put(Column::name, pad_right(title(Column::name), room));
  for (const Column column : columns) put(column, pad_left(title(column), width_of(column)));
  line.push_back({"  WHY", Tone::heading});
  add(std::move(line));
  return lines;
}

Line View::row_line(const TableRow& row, size_t width) const {
  const bool path = table_options_.by == By::cgroup || table_options_.by == By::exe;
  const size_t room = room_for_name(width);
  const size_t indent = std::min(2 * row.depth, room / 2);
  const std::string whole_name = table_->name(row);
  const std::string name = path ? fit_tail(whole_name, room, options_.unicode)
                                : fit(whole_name, room - indent, options_.unicode);
  const uint64_t whole = profile_->meta.duration_ns;
  Line line = {{pad_left(table_->id(row), table_->id_width()) + " "},
               {pad_right(std::string(indent, ' ') + name, room)}};
  for (const Column column : numbers(width))
    line.push_back(
        {pad_left(rate_text(column, table_->value(row, column), whole), width_of(column)),
         tone_of(column)});
  line.push_back({"  " + table_->why(row), Tone::dim});
  return fitted(std::move(line), width, options_.unicode);
}

Line View::last_line(size_t width) const {
  Line line;
  if (typing_)
    line = {{"Filter: ", Tone::strong}, {clean(table_options_.filter, options_.unicode) + "_"}};
  else if (!message_.empty())
    line = {{clean(message_, options_.unicode), Tone::warning}};
  else if (page_ == Page::columns)
    line = {{"q back  up, down select  Space show or hide  s sort by it", Tone::dim}};
  else if (page_ != Page::list)
    line = {{"q back  up, down, PgUp, PgDn scroll  f freeze  w save", Tone::dim}};
  else if (!table_options_.filter.empty())
    line = {{"only: " + clean(table_options_.filter, options_.unicode), Tone::warning},
            {"  Esc shows all", Tone::dim}};
  else
    line = {
        {"? help  Enter why  / filter  < > sort  C columns  t tree  H threads  c cgroups  "
         "f freeze  w save  q quit",
         Tone::dim}};
  return fitted(std::move(line), width, options_.unicode);
}

void View::draw_list(Screen& screen, size_t width, size_t height) {
  const std::vector<Line> above = header(width);
  const size_t totals = height >= above.size() + least_rows + 1 ? above.size() : 1;
  for (size_t i = 0; i < totals; ++i) screen.lines.push_back(above[i]);
  for (Line& line : headings(width))
    if (screen.lines.size() < height) screen.lines.push_back(std::move(line));
  room_ = height - screen.lines.size();
  const std::vector<TableRow>& rows = table_->rows();
  const std::optional<size_t> selected = selected_row();
  if (selected) {
    position_ = *selected;
    if (*selected < first_) first_ = *selected;
    if (room_ && *selected >= first_ + room_) first_ = *selected + 1 - room_;
  }
  first_ = std::min(first_, rows.size() > room_ ? rows.size() - room_ : 0);
  for (size_t i = first_; i < rows.size() && i < first_ + room_; ++i) {
    if (selected == i) screen.selected = screen.lines.size();
    screen.lines.push_back(row_line(rows[i], width));
  }
  if (rows.empty() && room_)
    screen.lines.push_back(
        fitted({{table_options_.filter.empty() ? "nothing ran" : "no such row", Tone::dim}}, width,
               options_.unicode));
}

void View::draw_pages(Screen& screen, const std::vector<Line>& lines, size_t width, size_t height) {
  room_ = height;
  first_ = std::min(first_, lines.size() > room_ ? lines.size() - room_ : 0);
  for (size_t i = first_; i < lines.size() && i < first_ + room_; ++i)
    screen.lines.push_back(fitted(lines[i], width, options_.unicode));
}

Screen View::draw(size_t width, size_t height) {
  Screen screen;
  const bool has_last_line = height > 1;
  const size_t room = has_last_line ? height - 1 : 1;
  if (page_ == Page::help) {
    std::vector<Line> lines = help_lines(options_.resources);
    if (profile_)
      for (const std::string& sentence : degraded_sentences(*profile_, table_options_.by))
        lines.push_back({{"incomplete: ", Tone::warning}, {clean(sentence, options_.unicode)}});
    draw_pages(screen, lines, width, room);
  } else if (page_ == Page::columns) {
    draw_choice(screen, width, room);
    for (Line& line : screen.lines) line = fitted(std::move(line), width, options_.unicode);
  } else if (!profile_) {
    screen.lines.push_back(
        fitted({{"pkprof top: the first figures come in a moment"}}, width, options_.unicode));
  } else if (page_ == Page::process) {
    const auto row = row_named(selected_);
    const std::vector<Line> lines =
        !row ? std::vector<Line>{{{selected_name_, Tone::strong}},
                                 {{"took no time just now", Tone::dim}}}
             : detail_lines(*profile_, *table_, table_->rows()[*row], table_options_.by, width,
                            options_.unicode, options_.resources);
    draw_pages(screen, lines, width, room);
  } else {
    draw_list(screen, width, room);
  }
  if (has_last_line) {
    screen.lines.resize(room);
    screen.lines.push_back(last_line(width));
  }
  return screen;
}

}  // namespace pkprof::top
