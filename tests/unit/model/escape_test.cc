// SPDX-License-Identifier: Apache-2.0
#include "model/escape.h"

#include <gtest/gtest.h>

#include <random>

namespace pkprof {
namespace {

using namespace std::literals;

TEST(Escape, LeavesOrdinaryNamesAlone) {
  for (const auto text : {"nginx"sv, "/usr/bin/a b"sv, "naïve 日本 🦀"sv, R"(C:\dir\x)"sv,
                          R"(\x4)"sv, R"(\\)"sv, ""sv})
    EXPECT_EQ(escape_text(text), text);
}

TEST(Escape, ControlsAndInvalidBytes) {
  EXPECT_EQ(escape_text("\x1b[2J"), R"(\x1b[2J)");
  EXPECT_EQ(escape_text("a\xff"), R"(a\xff)");
  EXPECT_EQ(escape_text("\0"sv), R"(\x00)");
  EXPECT_EQ(escape_text("\x7f"), R"(\x7f)");
  EXPECT_EQ(escape_text("\u009b"), R"(\xc2\x9b)");
  EXPECT_EQ(escape_text(R"(\x41)"), R"(\x5cx41)") << "or it would come back as A";
}

TEST(Escape, InvalidUtf8InAllItsForms) {
  for (const auto bad : {"\x80"sv, "\xc0\x80"sv, "\xc3"sv, "\xe0\x80\x80"sv, "\xed\xa0\x80"sv,
                         "\xf4\x90\x80\x80"sv, "\xf0\x9f\xa6"sv, "\xfe"sv}) {
    char32_t code = 0;
    EXPECT_EQ(utf8_decode(bad, &code), 0u);
    EXPECT_EQ(unescape_text(escape_text(bad)), bad);
  }
}

TEST(Escape, AnyBytesComeBack) {
  std::mt19937_64 random(1);
  constexpr std::string_view interesting = "\\x5c41ab\xc3\xa9\xe2\x82\xac\xff\0\x1b"sv;
  for (int i = 0; i < 20'000; ++i) {
    std::string raw;
    for (size_t n = random() % 16; n > 0; --n)
      raw += random() % 4 == 0 ? static_cast<char>(random())
                               : interesting[random() % interesting.size()];
    const std::string escaped = escape_text(raw);
    ASSERT_EQ(unescape_text(escaped), raw);
    for (const char c : escaped) ASSERT_TRUE(c < 0 || (c >= 0x20 && c != 0x7f));
  }
}

}  // namespace
}  // namespace pkprof
