// SPDX-License-Identifier: Apache-2.0
// What is to be seen, and what was typed, as the view knows them: lines of text in tones, and keys.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace pkprof::top {

inline constexpr size_t number_width = 7;  // of a column: a space and "1234.5"

// What a piece of text is, from which a terminal makes a colour, or something else where it has
// none.
enum class Tone : uint8_t {
  plain,
  dim,
  strong,
  heading,
  warning,
  user,
  own,
  async,
  kernel,
  unclaimed
};

struct Span {
  std::string text;  // cleaned
  Tone tone = Tone::plain;
};
using Line = std::vector<Span>;

struct Screen {
  std::vector<Line> lines;  // as many as there is room for; no wider than the terminal
  std::optional<size_t> selected;
};

struct Key {
  enum class Kind : uint8_t {
    text,
    up,
    down,
    page_up,
    page_down,
    home,
    end,
    enter,
    back,  // Esc, left
    erase,
    resize,
    function
  };
  Kind kind = Kind::text;
  std::string text;  // of Kind::text: one character, UTF-8
  int number = 0;    // of Kind::function: F1 is 1
};

}  // namespace pkprof::top
