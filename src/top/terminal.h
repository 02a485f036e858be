// SPDX-License-Identifier: Apache-2.0
// The terminal that a view is on, by ncurses. What it was before is there again at the end.
#pragma once

#include <memory>
#include <optional>

#include "base/result.h"
#include "top/screen.h"

namespace pkprof::top {

class Terminal {
 public:
  // `colour`: if it has any.
  [[nodiscard]] static Result<Terminal> open(bool colour);
  Terminal(Terminal&&) noexcept;
  Terminal& operator=(Terminal&&) noexcept;
  ~Terminal();

  [[nodiscard]] size_t width() const;
  [[nodiscard]] size_t height() const;
  void draw(const Screen& screen);
  // The next key that was pressed, if any; does not wait.
  [[nodiscard]] std::optional<Key> key();

 private:
  struct Curses;
  explicit Terminal(std::unique_ptr<Curses> curses);
  std::unique_ptr<Curses> curses_;
};

}  // namespace pkprof::top
