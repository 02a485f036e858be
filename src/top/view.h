// SPDX-License-Identifier: Apache-2.0
// What `pkprof top` shows, and what keys do to it: a function of profiles and keys to screens, with
// no terminal.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "model/profile.h"
#include "report/groups.h"
#include "top/screen.h"
#include "top/table.h"

namespace pkprof::top {

struct ViewOptions {
  bool unicode = true;
  By by = By::pid;
  bool threads = false;                  // they are recorded
  bool clients = false;                  // servers' clients are recorded
  double interval = 1;                   // seconds between profiles
  std::vector<Resource> resources = {};  // that are recorded besides CPU time
};

class View {
 public:
  explicit View(const ViewOptions& options);

  // What was in the last interval. While it is frozen, what is on the screen stays.
  void show(Profile profile);
  // A word on the screen until the next key.
  void say(std::string message) { message_ = std::move(message); }
  // What is on the screen, as it was recorded, or null.
  [[nodiscard]] const Profile* shown() const { return recorded_.get(); }
  [[nodiscard]] bool wants_threads() const { return options_.threads; }

  // What a key asks of those who know more than the screen. `record`: it is to be recorded anew,
  // with threads as wants_threads() says.
  enum class Ask : uint8_t { nothing, quit, save, record };
  Ask press(const Key& key);

  // At least one line, and no line wider than `width` columns.
  [[nodiscard]] Screen draw(size_t width, size_t height);

 private:
  enum class Page : uint8_t { list, process, help, columns };

  Ask press_text(const std::string& text);
  bool type(const Key& key);
  void move(const Key& key);
  void sort_by_next(int step);
  void sort_by(Column column);
  // On the page of columns; false for what is no key of it.
  bool choose(char letter);
  void group_by(By by);
  Ask toggle_threads();
  void rebuild();
  [[nodiscard]] bool has_clients() const;
  // Servers' time is the servers', so that there is something to say of their clients.
  [[nodiscard]] bool shows_clients() const { return options_.clients && !by_client_; }
  [[nodiscard]] std::optional<size_t> row_named(const std::string& key) const;
  [[nodiscard]] std::optional<size_t> selected_row() const;

  [[nodiscard]] Line title_line(const std::string& facts, size_t width) const;
  [[nodiscard]] std::vector<Line> header(size_t width) const;
  [[nodiscard]] Line rates_line() const;
  void draw_list(Screen& screen, size_t width, size_t height);
  void draw_choice(Screen& screen, size_t width, size_t height);
  void draw_pages(Screen& screen, const std::vector<Line>& lines, size_t width, size_t height);
  [[nodiscard]] std::vector<Column> all_columns() const {
    return columns_of(shows_clients(), options_.resources);
  }
  [[nodiscard]] std::vector<Column> columns_to_choose() const;
  // Those of them that are shown where there is room, with what says which row it is.
  [[nodiscard]] std::vector<Column> shown_columns() const;
  // Columns of numbers that there is room for.
  [[nodiscard]] std::vector<Column> numbers(size_t width) const;
  [[nodiscard]] size_t room_for_name(size_t width) const;
  [[nodiscard]] Line row_line(const TableRow& row, size_t width) const;
  [[nodiscard]] std::vector<Line> headings(size_t width) const;
  [[nodiscard]] Line last_line(size_t width) const;

  ViewOptions options_;
  TableOptions table_options_;
  std::unique_ptr<const Profile> recorded_;
  // The same, of CPU time; or what servers did is charged to their clients.
  std::shared_ptr<const Profile> profile_;
  bool by_client_ = false;
  std::unique_ptr<const Table> table_;
  std::set<Column> hidden_;  // never the one that rows are sorted by
  size_t chosen_ = 0;        // of columns_to_choose(), on their page
  Page page_ = Page::list;
  bool frozen_ = false;
  bool typing_ = false;        // a filter
  std::string selected_;       // the key of a row; "" for the first
  std::string selected_name_;  // of the one whose page is shown
  size_t position_ = 0;        // of the selected row, for when it goes away
  size_t first_ = 0;           // the first row, or line of a page, that is seen
  size_t room_ = 1;            // rows that were seen last
  std::string message_;
};

}  // namespace pkprof::top
