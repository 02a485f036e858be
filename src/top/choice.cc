// SPDX-License-Identifier: Apache-2.0
// The page on which columns are chosen: what its keys do, and how it looks. Each column keeps its
// place, shown or not.
#include <algorithm>
#include <string>
#include <utility>

#include "report/clean.h"
#include "top/view.h"

namespace pkprof::top {

// What says which row it is stays.
std::vector<Column> View::columns_to_choose() const {
  std::vector<Column> columns = all_columns();
  std::erase_if(columns, [](Column c) { return c == Column::id || c == Column::name; });
  return columns;
}

std::vector<Column> View::shown_columns() const {
  std::vector<Column> columns = all_columns();
  std::erase_if(columns, [this](Column c) { return hidden_.contains(c); });
  return columns;
}

// The column that rows are sorted by is shown: else nobody would know.
void View::sort_by(Column column) {
  table_options_.sort = column;
  hidden_.erase(column);
  rebuild();
}

bool View::choose(char letter) {
  const std::vector<Column> columns = columns_to_choose();
  const Column column = columns[std::min(chosen_, columns.size() - 1)];
  switch (letter) {
    case ' ':
      if (column == table_options_.sort)
        say("rows are sorted by it: sort by another one first (s)");
      else if (!hidden_.erase(column))
        hidden_.insert(column);
      return true;
    case 's':
      sort_by(column);
      return true;
    default:
      return false;
  }
}

void View::draw_choice(Screen& screen, size_t width, size_t height) {
  const std::vector<Column> columns = columns_to_choose();
  const std::vector<Column> fit = table_ ? numbers(width) : columns;
  chosen_ = std::min(chosen_, columns.size() - 1);
  if (height > columns.size())
    screen.lines.push_back({{"Which columns?", Tone::strong}, {"  From left to right", Tone::dim}});
  room_ = height - screen.lines.size();
  first_ = std::clamp(first_, chosen_ + 1 - std::min(chosen_ + 1, room_), chosen_);
  for (size_t i = first_; i < columns.size() && i < first_ + room_; ++i) {
    const Column column = columns[i];
    const bool shown = !hidden_.contains(column);
    const bool sorts = column == table_options_.sort;
    const std::string mark = sorts ? table_options_.reverse ? "^" : "v" : " ";
    Line line = {{shown ? "[x] " : "[ ] "},
                 {mark + pad_right(full_title_of(column), 13), sorts ? Tone::strong : Tone::plain}};
    if (shown && std::ranges::find(fit, column) == fit.end())
      line.push_back({"there is no room for it; ", Tone::warning});
    line.push_back({meaning_of(column), Tone::dim});
    if (i == chosen_) screen.selected = screen.lines.size();
    screen.lines.push_back(std::move(line));
  }
}

}  // namespace pkprof::top
