// SPDX-License-Identifier: Apache-2.0
#include "args/quantities.h"

#include <gtest/gtest.h>

namespace pkprof {
namespace {

constexpr uint64_t second = 1'000'000'000;
constexpr uint64_t now = 1'796'008'387 * second;  // 2026-11-30T03:13:07Z

TEST(Quantities, Ages) {
  EXPECT_EQ(parse_age("90s"), 90 * second);
  EXPECT_EQ(parse_age("15m"), 900 * second);
  EXPECT_EQ(parse_age("1h"), 3600 * second);
  EXPECT_EQ(parse_age("2w"), 86400 * second * 14);
  for (const char* word : {"", "h", "1", "-1h", "1.5h", "1y", "1h1m", " 1h", "99999999999w"})
    EXPECT_FALSE(parse_age(word)) << word;
}

TEST(Quantities, Moments) {
  EXPECT_EQ(parse_moment("1h", now), now - 3600 * second);
  EXPECT_EQ(parse_moment("9999w", second), 0U) << "longer ago than 1970";
  EXPECT_EQ(parse_moment("2026-11-30T03:13:07Z", 0), now);
  EXPECT_EQ(parse_moment("2026-11-30 04:13:07.25+01:00", 0), now + second / 4);
  EXPECT_EQ(parse_moment("2026-11-29T21:43:07-05:30", 0), now);
  EXPECT_EQ(parse_moment("1970-01-02", 0), 86400 * second);
  for (const char* word :
       {"", "now", "2026-11-30T03:13:07", "2026-11-31", "2026-13-01", "2026-11-30T24:00:00Z",
        "2026-11-30T03:13:07.Z", "2026-11-30T03:13:07Zz", "1969-12-31", "2026-1-30", "9999-01-01",
        "2026-11-30T03:13:07+25:00", "2026-11-3a"})
    EXPECT_FALSE(parse_moment(word, now)) << word;
  EXPECT_EQ(moment_text(now + 5), "2026-11-30T03:13:07Z");
}

TEST(Quantities, Sizes) {
  EXPECT_EQ(parse_bytes("500"), 500U);
  EXPECT_EQ(parse_bytes("2G"), uint64_t{2} << 30);
  for (const char* word : {"", "G", "1P", "-5", "1.5G", "99999999999T", "1g"})
    EXPECT_FALSE(parse_bytes(word)) << word;
}

TEST(Quantities, Labels) {
  const auto labels = parse_labels({"env=prod", "note=a=b", "empty="});
  ASSERT_TRUE(labels);
  EXPECT_EQ(labels->at("note"), "a=b");
  EXPECT_EQ(labels->at("empty"), "");
  EXPECT_FALSE(parse_labels({"env"}));
  EXPECT_FALSE(parse_labels({"=prod"}));
  EXPECT_FALSE(parse_labels({"env=a", "env=b"}));
}

}  // namespace
}  // namespace pkprof
