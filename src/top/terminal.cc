// SPDX-License-Identifier: Apache-2.0
#include "top/terminal.h"

// The header makes macros of names that are ours.
#define NCURSES_NOMACROS
#define NCURSES_WIDECHAR 1
#include <curses.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cwchar>
#include <string>

namespace pkprof::top {

struct Terminal::Curses {
  SCREEN* screen = nullptr;
  bool colour = false;

  ~Curses() {
    endwin();
    delscreen(screen);
  }
};

namespace {

constexpr int escape_delay_ms = 25;  // a lone Esc is one after that

attr_t attributes_of(Tone tone, bool colour) {
  const auto pair = [colour](short number) -> attr_t { return colour ? COLOR_PAIR(number) : 0; };
  switch (tone) {
    case Tone::plain:
      return A_NORMAL;
    case Tone::dim:
      return A_DIM;
    case Tone::strong:
      return A_BOLD;
    case Tone::heading:
      return A_UNDERLINE;
    case Tone::warning:
      return pair(COLOR_RED) | A_BOLD;
    case Tone::user:
      return pair(COLOR_GREEN);
    case Tone::own:
      return pair(COLOR_YELLOW);
    case Tone::async:
      return pair(COLOR_CYAN);
    case Tone::kernel:
      return pair(COLOR_MAGENTA);
    case Tone::unclaimed:
      return pair(COLOR_RED);
  }
  return A_NORMAL;
}

std::string utf8(wint_t character) {
  std::array<char, MB_LEN_MAX + 1> bytes{};
  std::mbstate_t state{};
  const size_t n = std::wcrtomb(bytes.data(), static_cast<wchar_t>(character), &state);
  return n == static_cast<size_t>(-1) ? "" : std::string(bytes.data(), n);
}

std::optional<Key> special_key(wint_t code) {
  switch (code) {
    case KEY_UP:
      return Key{Key::Kind::up};
    case KEY_DOWN:
      return Key{Key::Kind::down};
    case KEY_PPAGE:
      return Key{Key::Kind::page_up};
    case KEY_NPAGE:
      return Key{Key::Kind::page_down};
    case KEY_HOME:
      return Key{Key::Kind::home};
    case KEY_END:
      return Key{Key::Kind::end};
    case KEY_ENTER:
    case KEY_RIGHT:
      return Key{Key::Kind::enter};
    case KEY_LEFT:
      return Key{Key::Kind::back};
    case KEY_BACKSPACE:
      return Key{Key::Kind::erase};
    case KEY_RESIZE:
      return Key{Key::Kind::resize};
    default:
      if (code > KEY_F0 && code <= KEY_F(12))
        return Key{Key::Kind::function, "", static_cast<int>(code) - KEY_F0};
      return {};
  }
}

std::optional<Key> character_key(wint_t character) {
  switch (character) {
    case L'\r':
    case L'\n':
      return Key{Key::Kind::enter};
    case 27:
      return Key{Key::Kind::back};
    case 8:
    case 127:
      return Key{Key::Kind::erase};
    case 12:  // Ctrl-L: what another wrote on the screen goes
      clearok(curscr, TRUE);
      return Key{Key::Kind::resize};
    default:
      if (character < 32) return {};
      return Key{Key::Kind::text, utf8(character)};
  }
}

}  // namespace

Result<Terminal> Terminal::open(bool colour) {
  SCREEN* screen = newterm(nullptr, stdout, stdin);
  if (!screen) {
    const char* name = std::getenv("TERM");
    return fail(std::string("the terminal's kind is not known (TERM=") + (name ? name : "") +
                "): set TERM, to vt100 for example");
  }
  auto curses = std::make_unique<Curses>();
  curses->screen = screen;
  set_term(screen);
  cbreak();
  noecho();
  nonl();
  keypad(stdscr, TRUE);
  nodelay(stdscr, TRUE);
  set_escdelay(escape_delay_ms);
  curs_set(0);
  if (colour && has_colors()) {
    start_color();
    use_default_colors();
    for (short c = COLOR_RED; c <= COLOR_WHITE; ++c) init_pair(c, c, -1);
    curses->colour = true;
  }
  return Terminal(std::move(curses));
}

Terminal::Terminal(std::unique_ptr<Curses> curses) : curses_(std::move(curses)) {}
Terminal::Terminal(Terminal&&) noexcept = default;
Terminal& Terminal::operator=(Terminal&&) noexcept = default;
Terminal::~Terminal() = default;

size_t Terminal::width() const {
  return static_cast<size_t>(std::max(getmaxx(stdscr), 1));
}

size_t Terminal::height() const {
  return static_cast<size_t>(std::max(getmaxy(stdscr), 1));
}

void Terminal::draw(const Screen& screen) {
  erase();
  for (size_t i = 0; i < screen.lines.size() && i < height(); ++i) {
    move(static_cast<int>(i), 0);
    const attr_t base = screen.selected == i ? A_REVERSE : A_NORMAL;
    for (const Span& span : screen.lines[i]) {
      attrset(static_cast<int>(attributes_of(span.tone, curses_->colour) | base));
      addstr(span.text.c_str());
    }
    if (screen.selected == i) {
      attrset(A_REVERSE);
      for (int x = getcurx(stdscr);
           x > 0 && x < getmaxx(stdscr) && getcury(stdscr) == static_cast<int>(i); ++x)
        addch(' ');
    }
    attrset(A_NORMAL);
  }
  refresh();
}

std::optional<Key> Terminal::key() {
  for (;;) {
    wint_t character = 0;
    const int kind = get_wch(&character);
    if (kind == ERR) return {};
    const auto key = kind == KEY_CODE_YES ? special_key(character) : character_key(character);
    if (key) return key;  // others mean nothing
  }
}

}  // namespace pkprof::top
