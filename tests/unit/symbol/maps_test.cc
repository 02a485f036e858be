// SPDX-License-Identifier: Apache-2.0
#include "symbol/maps.h"

#include <gtest/gtest.h>

#include <random>

#include "fixture.h"

namespace pkprof {
namespace {

UserMap anon(uint64_t start, uint64_t end, std::string name) {
  return {.start = start, .end = end, .offset = start, .file = std::move(name)};
}

TEST(Maps, ParsesTheKernelsFormat) {
  const auto maps = parse_maps(
      "00400000-00452000 r-xp 00001000 08:02 173521      /usr/bin/dbus daemon\n"
      "00651000-00652000 r--p 00051000 08:02 173521      /usr/bin/dbus daemon\n"
      "7f0000000000-7f0000001000 rwxp 00000000 00:00 0 \n"
      "7f0000002000-7f0000003000 r-xp 00000000 fe:00 7  /tmp/a\\012b (deleted)\n"
      "7ffd00000000-7ffd00002000 r-xp 00000000 00:00 0                          [vdso]\n");
  EXPECT_EQ(maps.malformed, 0U);
  ASSERT_EQ(maps.executable.size(), 4U);
  EXPECT_EQ(maps.executable[0].start, 0x400000U);
  EXPECT_EQ(maps.executable[0].offset, 0x1000U);
  EXPECT_EQ(maps.executable[0].device_major, 8U);
  EXPECT_EQ(maps.executable[0].inode, 173521U);
  EXPECT_EQ(maps.executable[0].file, "/usr/bin/dbus daemon");
  EXPECT_EQ(maps.executable[1].file, "");
  EXPECT_EQ(maps.executable[2].file, "/tmp/a\nb (deleted)");
  EXPECT_EQ(maps.executable[3].file, "[vdso]");
}

TEST(Maps, MalformedLinesAreCounted) {
  const auto maps = parse_maps(
      "x\n00400000-00452000\n00400000-00452000 r-xp\n2000-1000 r-xp 0 0:0 0 /back\n"
      "1000-2000 r-xp 0 0:0 0\n1000-2000 r-xp 0 100000000:0 0 /dev\n"
      "1000-2000 r-xp 0 0:0 1 /good");
  EXPECT_EQ(maps.malformed, 5U);
  ASSERT_EQ(maps.executable.size(), 2U);
}

UserMap numbered(uint64_t start, uint64_t end, uint64_t number) {
  UserMap map{.start = start, .end = end, .offset = start, .file = "/" + std::to_string(number)};
  map.file_number = number;
  return map;
}

TEST(Maps, OfAFileWithANumberAreFoundAfterOthersCame) {
  MapTable table;
  table.add(numbered(0x1000, 0x2000, 1));
  table.add(numbered(0x3000, 0x4000, 1));  // the same file's other segment
  table.add(numbered(0x0000, 0x5000, 2));
  const auto file_at = [&](uint64_t address, uint64_t number) {
    const MapPiece* piece = table.find(address, number);
    return piece ? piece->origin->map.file : "none";
  };
  EXPECT_EQ(file_at(0x1800, 1), "/1");
  EXPECT_EQ(file_at(0x3800, 1), "/1");
  EXPECT_EQ(file_at(0x1800, 0), "/2") << "as it is now";
  EXPECT_EQ(file_at(0x1800, 3), "none");
  table.add(numbered(0x1000, 0x2000, 1));  // told again; the other segment is not, being known
  EXPECT_EQ(file_at(0x1800, 1), "/1");
  EXPECT_EQ(file_at(0x1800, 2), "/2");
  EXPECT_EQ(file_at(0x3800, 1), "/1");
}

TEST(Maps, ForgetTheOldestThatWereReplaced) {
  MapTable table;
  bool all = true;
  for (uint64_t number = 1; number <= 257; ++number)
    all &= table.add(numbered(0x1000, 0x2000, number));
  EXPECT_TRUE(all);
  EXPECT_NE(table.find(0x1800, 1), nullptr);
  EXPECT_FALSE(table.add(numbered(0x1000, 0x2000, 258)));
  EXPECT_EQ(table.find(0x1800, 1), nullptr);
  EXPECT_NE(table.find(0x1800, 2), nullptr);
}

TEST(Maps, NewOnesReplaceWhatTheyOverlap) {
  MapTable table;
  table.add(anon(0x1000, 0x9000, "old"));
  table.add(anon(0x3000, 0x5000, "new"));
  EXPECT_EQ(table.find(0xfff), nullptr);
  EXPECT_EQ(table.find(0x2fff)->origin->map.file, "old");
  EXPECT_EQ(table.find(0x3000)->origin->map.file, "new");
  EXPECT_EQ(table.find(0x5000)->origin->map.file, "old");
  EXPECT_EQ(table.find(0x9000), nullptr);
  const UserMap rest = table.find(0x5000)->as_map();
  EXPECT_EQ(rest.start, 0x5000U);
  EXPECT_EQ(rest.offset, 0x5000U) << "offsets follow the cut";
  table.add(anon(0, 0x10000, "all"));
  EXPECT_EQ(table.pieces().size(), 1U);
  table.add(anon(5, 5, "empty"));
  EXPECT_EQ(table.pieces().size(), 1U);
}

TEST(Maps, AgainstAModel) {
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    MapTable table;
    std::vector<std::string> model(300);
    for (int i = 0; i < 60; ++i) {
      const unsigned start = random() % 250;
      const unsigned end = start + random() % 50;
      table.add(anon(start, end, std::to_string(i)));
      for (unsigned a = start; a < end; ++a) model[a] = std::to_string(i);
    }
    for (uint64_t a = 0; a < model.size(); ++a) {
      const MapPiece* piece = table.find(a);
      ASSERT_EQ(piece == nullptr ? "" : piece->origin->map.file, model[a]);
      if (piece == nullptr) continue;
      ASSERT_EQ(piece->file_offset(a), a);
    }
  }
}

TEST(Maps, SurvivesAnything) {
  std::mt19937 random(6);
  const std::string real = test::read_file("/proc/self/maps");
  for (int round = 0; round < 500; ++round) {
    std::string text = real;
    for (unsigned i = random() % 60; i > 0; --i) {
      text[random() % text.size()] = static_cast<char>(random());
    }
    MapTable table;
    for (const UserMap& map : parse_maps(text).executable) table.add(map);
    (void)table.find(uint64_t{random()} << 16);
  }
}

}  // namespace
}  // namespace pkprof
