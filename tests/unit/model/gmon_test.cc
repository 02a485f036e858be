// SPDX-License-Identifier: Apache-2.0
// gmon.out files: written and read again, what is damaged, and those of the machine's own programs.
#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <span>

#include "model/gmon.h"
#include "model/gmon_about.h"

namespace pkprof {
namespace {

Gmon sample() {
  return {.histograms = {{.low = 0x1000, .high = 0x1020, .rate = 100, .counts = {1, 0, 65535, 7}},
                         {.low = 0x4000, .high = 0x4010, .rate = 100, .counts = {9, 9}}},
          .arcs = {{0x1004, 0x4000, 3}, {0, 0x1000, UINT32_MAX}}};
}

Result<Gmon> gmon_of(std::string_view bytes) {
  return decode_gmon(std::as_bytes(std::span(bytes)));
}

void put(std::string& to, auto value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// As a 32-bit program of this machine writes it.
std::string narrow_file() {
  std::string bytes = "gmon";
  put(bytes, uint32_t{1});
  bytes.append(12, '\0');
  put(bytes, uint8_t{0});
  for (const uint32_t number : {0x8048000U, 0x8048010U, 4U, 100U}) put(bytes, number);
  bytes += std::string("seconds\0\0\0\0\0\0\0\0s", 16);
  for (const uint16_t count : {1, 2, 3, 4}) put(bytes, count);
  put(bytes, uint8_t{1});
  for (const uint32_t number : {0x8048004U, 0x8048008U, 12U}) put(bytes, number);
  put(bytes, uint8_t{2});
  for (const uint32_t number : {1U, 0x8048000U, 5U}) put(bytes, number);
  return bytes;
}

TEST(GmonFile, ComesBackAsItWas) {
  const Gmon gmon = sample();
  const Result<Gmon> again = gmon_of(encode_gmon(gmon));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(*again, gmon);
  ASSERT_TRUE(gmon_of(encode_gmon({})));
}

TEST(GmonFile, OfAProgramOf32Bits) {
  const Result<Gmon> gmon = gmon_of(narrow_file());
  ASSERT_TRUE(gmon) << gmon.error().message;
  ASSERT_EQ(gmon->histograms.size(), 1U);
  EXPECT_EQ(gmon->histograms[0].high, 0x8048010U);
  EXPECT_EQ(gmon->histograms[0].counts, (std::vector<uint16_t>{1, 2, 3, 4}));
  EXPECT_EQ(gmon->histograms[0].dimension, "seconds");
  ASSERT_EQ(gmon->arcs.size(), 1U);
  EXPECT_EQ(gmon->arcs[0], (GmonArc{0x8048004, 0x8048008, 12}));
  EXPECT_EQ(gmon->blocks, 1U);
}

TEST(GmonFile, CutAnywhereIsAnErrorOrAWholeNumberOfRecords) {
  const std::string whole = encode_gmon(sample());
  size_t read = 0;
  for (size_t size = 0; size < whole.size(); ++size) {
    const Result<Gmon> gmon = gmon_of(whole.substr(0, size));
    if (!gmon) {
      EXPECT_FALSE(gmon.error().message.empty());
      continue;
    }
    ++read;
    EXPECT_LT(gmon->histograms.size() + gmon->arcs.size(), 4U) << size;
  }
  EXPECT_EQ(read, 4U);  // behind the header, and behind each record but the last
}

TEST(GmonFile, SaysWhatIsWrong) {
  const std::string whole = encode_gmon(sample());
  const auto why = [](const std::string& bytes) {
    const Result<Gmon> gmon = gmon_of(bytes);
    return gmon ? "" : gmon.error().message;
  };
  EXPECT_EQ(why("\x7f"
                "ELF"),
            "not a gmon.out file of GNU's format");
  EXPECT_EQ(why(""), "not a gmon.out file of GNU's format");
  EXPECT_EQ(why("gmon"), "gmon.out: cut off");

  std::string other = whole;
  std::reverse(other.begin() + 4, other.begin() + 8);
  EXPECT_EQ(why(other), "gmon.out: of a machine of another byte order");
  other[7] = 2;
  other[4] = 0;
  std::reverse(other.begin() + 4, other.begin() + 8);
  EXPECT_EQ(why(other), "gmon.out: of version 2, not 1");

  std::string bad_tag = whole;
  bad_tag[20] = 9;
  EXPECT_EQ(why(bad_tag), "gmon.out: a record of an unknown kind: 9");

  Gmon still = sample();
  still.histograms[0].rate = 0;
  EXPECT_EQ(why(encode_gmon(still)), "gmon.out: a histogram has a clock that does not tick");
  Gmon dense = sample();
  dense.histograms[0].high = dense.histograms[0].low + 3;
  EXPECT_EQ(why(encode_gmon(dense)), "gmon.out: a histogram has more counters than addresses");
}

// Counters that the file does not have must not be made room for.
TEST(GmonFile, ClaimsOfManyCountersTakeNoMemory) {
  std::string bytes = encode_gmon({.histograms = {{.low = 0, .high = UINT64_MAX, .rate = 1}}});
  const size_t bins = 20 + 1 + 16;
  const uint32_t many = UINT32_MAX;
  std::memcpy(bytes.data() + bins, &many, sizeof many);
  const Result<Gmon> gmon = gmon_of(bytes);
  ASSERT_FALSE(gmon);
  EXPECT_EQ(gmon.error().message, "gmon.out: a histogram is cut off");
}

TEST(GmonAbout, ComesBackAsItWas) {
  const GmonAbout about = {
      .kernel = "6.18",
      .host = "\x1b[2J\xff",
      .cpus = 2,
      .start_unix_ns = 1,
      .duration_ns = 2,
      .unwatched_ns = 5,
      .idle_ns = 3,
      .steal_ns = 6,
      .unsampled_ns = 4,
      .parts = {{.pid = 137, .comm = "a\n\"b\xff", .exe = "/bin/cat"}, {.kind = LabelKind::kernel}},
      .files = {"kernel", "libc.so.6"},
      .functions = {{.file = 1, .counted = true}, {.kind = FrameKind::pseudo}, {.root = true}}};
  const std::string text = encode_gmon_about(about);
  const Result<GmonAbout> again = decode_gmon_about(text);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(*again, about);
  for (size_t size = 0; size + 2 < text.size(); ++size)
    EXPECT_FALSE(decode_gmon_about(text.substr(0, size))) << size;
  for (const char* const wrong : {"[]", "{}", "3", "[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]"})
    EXPECT_FALSE(decode_gmon_about(wrong)) << wrong;
}

TEST(GmonAbout, OlderVersionsSaidNothingOfStealAndWatching) {
  GmonAbout about = {.duration_ns = 2, .unwatched_ns = 5, .steal_ns = 6};
  std::string text = encode_gmon_about(about);
  for (const std::string key : {R"("unwatched_ns":5,)", R"("steal_ns":6,)"}) {
    ASSERT_NE(text.find(key), std::string::npos) << text;
    text.erase(text.find(key), key.size());
  }
  const Result<GmonAbout> again = decode_gmon_about(text);
  ASSERT_TRUE(again) << again.error().message;
  about.unwatched_ns = about.steal_ns = 0;
  EXPECT_EQ(*again, about);
}

}  // namespace
}  // namespace pkprof
