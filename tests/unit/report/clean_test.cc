// SPDX-License-Identifier: Apache-2.0
#include "report/clean.h"

#include <gtest/gtest.h>

#include <random>

namespace pkprof {
namespace {

using namespace std::literals;

TEST(Clean, ShowsWhatWouldAct) {
  EXPECT_EQ(clean("\x1b[2Jroot"), R"(\x1b[2Jroot)");
  EXPECT_EQ(clean("a\nb\tc\rd\be\x7f\0"sv), R"(a\x0ab\x09c\x0dd\x08e\x7f\x00)");
  EXPECT_EQ(clean("\u009b31m"), R"(\u{9b}31m)") << "the eight-bit CSI";
  EXPECT_EQ(clean("\xff\xc3"), R"(\xff\xc3)");
}

TEST(Clean, ShowsWhatWouldDeceive) {
  EXPECT_EQ(clean("\u202egpj.exe"), R"(\u{202e}gpj.exe)") << "right to left";
  EXPECT_EQ(clean("a\u2066b\u200bc\ufeffd"), R"(a\u{2066}b\u{200b}c\u{feff}d)");
  EXPECT_EQ(clean("\U000e0041"), R"(\u{e0041})");
}

TEST(Clean, LeavesNamesInPeace) {
  for (const auto text : {"nginx: worker"sv, "café"sv, "日本語"sv, "🦀"sv, R"(C:\x)"sv})
    EXPECT_EQ(clean(text), text);
  EXPECT_EQ(clean("café", false), R"(caf\u{e9})");
}

TEST(Clean, MarksDoNotPileUp) {
  EXPECT_EQ(clean("e\u0301"), "e\u0301");
  std::string pile = "a";
  for (int i = 0; i < 100; ++i) pile += "\u0301";
  EXPECT_EQ(display_width(clean(pile)), 1u + 97 * 7);
  EXPECT_EQ(clean("\u0301a"), R"(\u{301}a)") << "nothing to sit on";
}

TEST(Width, WideAndNarrow) {
  EXPECT_EQ(display_width("abc"), 3u);
  EXPECT_EQ(display_width("café"), 4u);
  EXPECT_EQ(display_width("日本"), 4u);
  EXPECT_EQ(display_width("e\u0301"), 1u);
}

TEST(Fit, CutsAndMarks) {
  EXPECT_EQ(fit("nginx", 5), "nginx");
  EXPECT_EQ(fit("nginx", 4), "ngi…");
  EXPECT_EQ(fit("nginx", 4, false), "ngi~");
  EXPECT_EQ(fit_tail("/usr/bin/nginx", 6), "…nginx");
  EXPECT_EQ(fit("日本語", 4), "日…") << "a wide character is not cut in half";
  EXPECT_EQ(fit("x", 0), "");
  EXPECT_EQ(fit_tail("xy", 1), "…");
}

TEST(Fit, NeverWiderThanAsked) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 5000; ++i) {
    std::string raw;
    for (size_t n = random() % 30; n > 0; --n) {
      constexpr std::string_view pieces[] = {"a", "日", "e\u0301", "\u202e", "\xff", "\x1b", "🦀"};
      raw += pieces[random() % std::size(pieces)];
    }
    const std::string text = clean(raw);
    for (size_t width = 0; width < 40; width += 3) {
      ASSERT_LE(display_width(fit(text, width)), width);
      ASSERT_LE(display_width(fit_tail(text, width)), width);
      ASSERT_GE(display_width(pad_left(fit(text, width), width)), width);
    }
  }
}

}  // namespace
}  // namespace pkprof
