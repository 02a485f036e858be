// SPDX-License-Identifier: Apache-2.0
// What keys do. How it looks is draw.cc.
#include "top/view.h"

#include <algorithm>

#include "model/merge.h"
#include "report/clients.h"

namespace pkprof::top {

View::View(const ViewOptions& options) : options_(options) {
  by_client_ = options.by == By::client;
  table_options_.by = by_client_ ? By::pid : options.by;
  table_options_.unicode = options.unicode;
  if (options_.by == By::thread) options_.threads = true;
}

void View::show(Profile profile) {
  if (frozen_) return;
  table_.reset();  // it refers to the old one
  recorded_ = std::make_unique<const Profile>(std::move(profile));
  rebuild();
}

bool View::has_clients() const {
  return recorded_ && recorded_->clients().size() > 1;
}

void View::rebuild() {
  if (!recorded_) return;
  table_.reset();
  Rates rates;
  if (options_.resources.empty()) {
    // Of what is owned elsewhere nothing is to be freed.
    profile_ = std::shared_ptr<const Profile>(std::shared_ptr<void>(), recorded_.get());
  } else {
    rates = Rates(*recorded_, table_options_.by);
    Profile cpu = of_resource(*recorded_, Resource::cpu);
    rates.add_rows(cpu);
    profile_ = std::make_shared<const Profile>(std::move(cpu));
  }
  if (by_client_) profile_ = std::make_shared<const Profile>(charged_to_clients(*profile_));
  table_ = std::make_unique<const Table>(*profile_, table_options_, std::move(rates));
}

std::optional<size_t> View::row_named(const std::string& key) const {
  const auto& rows = table_->rows();
  for (size_t i = 0; i < rows.size(); ++i)
    if (table_->key(rows[i]) == key) return i;
  return {};
}

// The selected one where it is; another in its place when it is gone.
std::optional<size_t> View::selected_row() const {
  if (!table_ || table_->rows().empty()) return {};
  if (!selected_.empty())
    if (const auto row = row_named(selected_)) return row;
  return std::min(position_, table_->rows().size() - 1);
}

View::Ask View::press(const Key& key) {
  if (key.kind == Key::Kind::resize) return Ask::nothing;
  message_.clear();
  if (typing_ && type(key)) return Ask::nothing;
  switch (key.kind) {
    case Key::Kind::text:
      return press_text(key.text);
    case Key::Kind::function: {
      constexpr const char* letters[] = {"?", "C", "/", "/", "t", ">", "", "", "", "q"};  // htop's
      if (key.number >= 1 && key.number <= 10) return press_text(letters[key.number - 1]);
      break;
    }
    case Key::Kind::enter:
      if (page_ == Page::columns)
        page_ = Page::list, first_ = 0;
      else if (const auto row = selected_row(); page_ == Page::list && row) {
        selected_ = table_->key(table_->rows()[*row]);
        selected_name_ = table_->name(table_->rows()[*row]);
        page_ = Page::process;
        first_ = 0;
      }
      break;
    case Key::Kind::back:
      if (page_ == Page::list)
        table_options_.filter.clear(), rebuild();
      else
        page_ = Page::list, first_ = 0;
      break;
    default:
      move(key);
  }
  return Ask::nothing;
}

View::Ask View::press_text(const std::string& text) {
  const char letter = text.size() == 1 ? text[0] : '\0';
  if (page_ == Page::columns && choose(letter)) return Ask::nothing;
  switch (letter) {
    case 'q':
      if (page_ == Page::list) return Ask::quit;
      page_ = Page::list;
      first_ = 0;
      break;
    case '?':
    case 'h':
      page_ = page_ == Page::help ? Page::list : Page::help;
      first_ = 0;
      break;
    case 'C':
      page_ = page_ == Page::columns ? Page::list : Page::columns;
      first_ = 0;
      break;
    case 'w':
      return Ask::save;
    case 'f':
    case ' ':
      frozen_ = !frozen_;
      break;
    case '/':
      if (page_ == Page::list) typing_ = true;
      break;
    case 't':
      table_options_.tree = !table_options_.tree;
      rebuild();
      break;
    case 'r':
      table_options_.reverse = !table_options_.reverse;
      rebuild();
      break;
    case '>':
    case 's':
      sort_by_next(1);
      break;
    case '<':
    case 'S':
      sort_by_next(-1);
      break;
    case 'H':
      return toggle_threads();
    case 'c':
      group_by(table_options_.by == By::cgroup ? By::pid : By::cgroup);
      break;
    case 'g': {
      // Threads have a key of their own, since they are to be recorded.
      auto next = static_cast<size_t>(by_client_ ? By::client : table_options_.by) + 1;
      if (next < every_by.size() && every_by[next] == By::thread && !options_.threads) ++next;
      if (next < every_by.size() && every_by[next] == By::host) ++next;  // it is this one
      if (next < every_by.size() && every_by[next] == By::client && !has_clients()) ++next;
      group_by(every_by[next % every_by.size()]);
      break;
    }
    case 'k':
      move({Key::Kind::up});
      break;
    case 'j':
      move({Key::Kind::down});
      break;
    default:
      break;
  }
  return Ask::nothing;
}

// A key of a filter that is typed. False for one that is none of it.
bool View::type(const Key& key) {
  std::string& filter = table_options_.filter;
  switch (key.kind) {
    case Key::Kind::text:
      filter += key.text;
      break;
    case Key::Kind::erase:
      // The last character, which may be several bytes.
      while (!filter.empty() && (filter.back() & 0xc0) == 0x80) filter.pop_back();
      if (!filter.empty()) filter.pop_back();
      break;
    case Key::Kind::back:
      filter.clear();
      typing_ = false;
      break;
    case Key::Kind::enter:
      typing_ = false;
      break;
    default:
      return false;
  }
  rebuild();
  return true;
}

void View::move(const Key& key) {
  const bool list = page_ == Page::list;
  const bool columns = page_ == Page::columns;
  size_t at = list ? selected_row().value_or(0) : columns ? chosen_ : first_;
  const size_t page = std::max<size_t>(room_, 2) - 1;
  switch (key.kind) {
    case Key::Kind::up:
      at -= std::min<size_t>(at, 1);
      break;
    case Key::Kind::down:
      ++at;
      break;
    case Key::Kind::page_up:
      at -= std::min(at, page);
      break;
    case Key::Kind::page_down:
      at += page;
      break;
    case Key::Kind::home:
      at = 0;
      break;
    case Key::Kind::end:
      at = SIZE_MAX / 2;
      break;
    default:
      return;
  }
  if (columns) {
    chosen_ = std::min(at, columns_to_choose().size() - 1);
    return;
  }
  if (!list) {
    first_ = at;  // drawing knows where the end is
    return;
  }
  if (!table_ || table_->rows().empty()) return;
  position_ = std::min(at, table_->rows().size() - 1);
  // At the top it is whoever is first, as in top(1).
  selected_ = position_ ? table_->key(table_->rows()[position_]) : "";
}

void View::sort_by_next(int step) {
  const std::vector<Column> columns = shown_columns();
  const auto at = std::ranges::find(columns, table_options_.sort) - columns.begin();
  const auto count = static_cast<ptrdiff_t>(columns.size());
  sort_by(columns[static_cast<size_t>((at + step + count) % count)]);
}

void View::group_by(By by) {
  by_client_ = by == By::client;
  table_options_.by = by_client_ ? By::pid : by;
  if (by_client_ && !upper_title_of(table_options_.sort).empty()) sort_by(Column::costs);
  selected_.clear();
  position_ = first_ = 0;
  page_ = Page::list;
  rebuild();
}

View::Ask View::toggle_threads() {
  const bool by_thread = table_options_.by == By::thread;
  group_by(by_thread ? By::pid : By::thread);
  if (by_thread || options_.threads) return Ask::nothing;
  options_.threads = true;
  say("threads are told apart from now on");
  return Ask::record;
}

}  // namespace pkprof::top
