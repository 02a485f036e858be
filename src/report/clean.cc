// SPDX-License-Identifier: Apache-2.0
// The widths are our own table rather than wcwidth(3), whose answer depends on the locale: the
// same profile must give the same text everywhere. It is coarse; a wrong guess costs a ragged
// column, no more.
#include "report/clean.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "model/escape.h"

namespace pkprof {

namespace {

struct Range {
  char32_t first, last;
};

// Format controls, fillers and separators: nothing to see, but something happens.
constexpr Range deceptive[] = {
    {0x00ad, 0x00ad}, {0x061c, 0x061c}, {0x115f, 0x1160}, {0x180e, 0x180e},
    {0x200b, 0x200f}, {0x2028, 0x202e}, {0x2060, 0x206f}, {0x3164, 0x3164},
    {0xfeff, 0xfeff}, {0xffa0, 0xffa0}, {0xfff9, 0xfffb}, {0xe0000, 0xe007f},
};
constexpr Range combining[] = {
    {0x0300, 0x036f}, {0x0483, 0x0489}, {0x0591, 0x05bd},   {0x0610, 0x061a},
    {0x064b, 0x065f}, {0x1ab0, 0x1aff}, {0x1dc0, 0x1dff},   {0x20d0, 0x20ff},
    {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f}, {0xe0100, 0xe01ef},
};
constexpr Range wide[] = {
    {0x1100, 0x115e},   {0x2e80, 0x303e},   {0x3041, 0x4dbf},   {0x4e00, 0xa4cf},
    {0xac00, 0xd7a3},   {0xf900, 0xfaff},   {0xfe30, 0xfe6f},   {0xff00, 0xff60},
    {0xffe0, 0xffe6},   {0x1f300, 0x1f64f}, {0x1f680, 0x1f6ff}, {0x1f900, 0x1f9ff},
    {0x20000, 0x3fffd},
};
constexpr int max_combining = 3;  // marks on one character

template <size_t n>
bool contains(const Range (&ranges)[n], char32_t code) {
  const auto it = std::upper_bound(std::begin(ranges), std::end(ranges), code,
                                   [](char32_t c, const Range& range) { return c < range.first; });
  return it != std::begin(ranges) && code <= std::prev(it)->last;
}

size_t width_of(char32_t code) {
  if (code < 0x300) return 1;
  if (contains(combining, code)) return 0;
  return contains(wide, code) ? 2 : 1;
}

void append_hex(std::string& out, char32_t code, int digits) {
  constexpr std::string_view hex = "0123456789abcdef";
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4) out += hex[code >> shift & 15];
}

void append_code(std::string& out, char32_t code) {
  int digits = 1;
  while (code >> (4 * digits)) ++digits;
  out += "\\u{";
  append_hex(out, code, digits);
  out += '}';
}

// Cleaned text is valid UTF-8, so this always moves on.
size_t step(std::string_view text, char32_t* code) {
  return std::max<size_t>(1, utf8_decode(text, code));
}

std::string_view ellipsis(bool unicode) {
  return unicode ? "…" : "~";
}

}  // namespace

std::string clean(std::string_view raw, bool unicode) {
  std::string out;
  out.reserve(raw.size());
  int marks = 0;
  while (!raw.empty()) {
    char32_t code = 0;
    const size_t length = utf8_decode(raw, &code);
    const bool mark = length > 1 && contains(combining, code);
    marks = mark ? marks + 1 : 0;
    if (length == 0 || (length == 1 && (code < 0x20 || code == 0x7f))) {
      out += "\\x";
      append_hex(out, static_cast<unsigned char>(raw[0]), 2);
    } else if (length > 1 && (!unicode || code < 0xa0 || contains(deceptive, code) ||
                              marks > max_combining || (mark && out.empty()))) {
      append_code(out, code);
    } else {
      out += raw.substr(0, length);
    }
    raw.remove_prefix(std::max<size_t>(1, length));
  }
  return out;
}

size_t display_width(std::string_view cleaned) {
  size_t width = 0;
  while (!cleaned.empty()) {
    char32_t code = 0;
    cleaned.remove_prefix(step(cleaned, &code));
    width += width_of(code);
  }
  return width;
}

std::string fit(std::string_view cleaned, size_t width, bool unicode) {
  if (display_width(cleaned) <= width) return std::string(cleaned);
  if (width == 0) return {};
  size_t used = 0;
  size_t end = 0;
  while (end < cleaned.size()) {
    char32_t code = 0;
    const size_t length = step(cleaned.substr(end), &code);
    if (used + width_of(code) > width - 1) break;
    used += width_of(code);
    end += length;
  }
  return std::string(cleaned.substr(0, end)) + std::string(ellipsis(unicode));
}

std::string fit_tail(std::string_view cleaned, size_t width, bool unicode) {
  size_t left = display_width(cleaned);
  if (left <= width) return std::string(cleaned);
  if (width == 0) return {};
  while (!cleaned.empty()) {
    char32_t code = 0;
    const size_t length = step(cleaned, &code);
    // Stop at a character of its own, not at a mark whose base is gone.
    if (left <= width - 1 && width_of(code) > 0) break;
    left -= width_of(code);
    cleaned.remove_prefix(length);
  }
  return std::string(ellipsis(unicode)) + std::string(cleaned);
}

std::string pad_right(std::string_view cleaned, size_t width) {
  const size_t used = display_width(cleaned);
  return std::string(cleaned) + std::string(used < width ? width - used : 0, ' ');
}

std::string pad_left(std::string_view cleaned, size_t width) {
  const size_t used = display_width(cleaned);
  return std::string(used < width ? width - used : 0, ' ') + std::string(cleaned);
}

}  // namespace pkprof
