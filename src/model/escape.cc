// SPDX-License-Identifier: Apache-2.0
// See escape.h. Everything here works byte by byte and cannot fail.
#include "model/escape.h"

#include <cstddef>
#include <cstdint>

#include "model/hex.h"

namespace pkprof {

namespace {

// Whether `text` begins with what escape_text writes for a byte.
bool is_escape(std::string_view text) {
  return text.size() >= 4 && text[0] == '\\' && text[1] == 'x' && hex_value(text[2]) >= 0 &&
         hex_value(text[3]) >= 0;
}

void append_escaped(std::string& out, std::string_view bytes) {
  for (const char c : bytes) {
    const auto byte = static_cast<uint8_t>(c);
    out += "\\x";
    out += hex_digits[byte >> 4];
    out += hex_digits[byte & 15];
  }
}

bool is_plain(std::string_view raw) {
  for (const char c : raw) {
    if (c < 0x20 || c > 0x7e || c == '\\') return false;
  }
  return true;
}

}  // namespace

size_t utf8_decode(std::string_view text, char32_t* code) {
  if (text.empty()) return 0;
  const auto lead = static_cast<uint8_t>(text[0]);
  if (lead < 0x80) {
    *code = lead;
    return 1;
  }
  const size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < length) return 0;
  char32_t value = lead & (0xff >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    const auto next = static_cast<uint8_t>(text[i]);
    if ((next & 0xc0) != 0x80) return 0;
    value = value << 6 | (next & 0x3f);
  }
  constexpr char32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  if (value < least[length] || value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff)) return 0;
  *code = value;
  return length;
}

std::string escape_text(std::string_view raw) {
  if (is_plain(raw)) return std::string(raw);
  std::string out;
  out.reserve(raw.size() + 8);
  while (!raw.empty()) {
    char32_t code = 0;
    size_t length = utf8_decode(raw, &code);
    const bool control = code < 0x20 || (code >= 0x7f && code < 0xa0);
    const bool escape = length == 0 || control || is_escape(raw);
    if (length == 0) length = 1;
    if (escape)
      append_escaped(out, raw.substr(0, length));
    else
      out += raw.substr(0, length);
    raw.remove_prefix(length);
  }
  return out;
}

std::string unescape_text(std::string_view escaped) {
  std::string out;
  out.reserve(escaped.size());
  while (!escaped.empty()) {
    if (is_escape(escaped)) {
      out += static_cast<char>(hex_value(escaped[2]) << 4 | hex_value(escaped[3]));
      escaped.remove_prefix(4);
      continue;
    }
    out += escaped[0];
    escaped.remove_prefix(1);
  }
  return out;
}

}  // namespace pkprof
