// SPDX-License-Identifier: Apache-2.0
// What `pkprof top --resource` shows besides CPU time.
#include <gtest/gtest.h>

#include "golden.h"
#include "report/clean.h"
#include "top/rates.h"
#include "top/view.h"

namespace pkprof::top {
namespace {

constexpr uint64_t mebi = 1 << 20;
constexpr uint64_t one_second = 1'000'000'000;

// Two seconds: a writer with CPU time, a sleeper with none, and what is no process's.
class Machine {
 public:
  Machine() {
    profile_.meta = {.cpus = 2, .duration_ns = 2 * one_second, .frequency_hz = 99};
    writer_ = process(10, "writer");
    sleeper_ = process(20, "sleeper");
    idler_ = process(30, "idler");
    const LabelId nobody = profile_.label({.kind = LabelKind::unclaimed, .reason = "untracked"});
    add(Resource::cpu, writer_, "user", one_second / 2);
    add(Resource::disk, writer_, "disk:write", 64 * mebi);
    add(Resource::disk, writer_, "disk:queued", 0);
    add(Resource::disk, writer_, "disk:discard", mebi);
    add(Resource::disk, sleeper_, "disk:read", 3 * mebi);
    add(Resource::disk, nobody, "disk:write", 2 * mebi);
    add(Resource::net, writer_, "net:sent", 2048);
    add(Resource::net, sleeper_, "net:received", 2'000);
    add(Resource::net, sleeper_, "net:dropped", 2'000'000);
    add(Resource::memory, writer_, "memory:page cache", 300 * mebi);
    add(Resource::memory, writer_, "memory:reclaimed", 300 * mebi);
    add(Resource::lock, sleeper_, "lock:futex", one_second / 2);
    add(Resource::wait, sleeper_, "wait:disk", 3 * one_second);
    add(Resource::wait, sleeper_, "wait:idle", 3 * one_second);
    add(Resource::wait, idler_, "wait:idle", one_second);
  }
  [[nodiscard]] const Profile& profile() const { return profile_; }

 private:
  LabelId process(uint32_t pid, const char* comm) {
    return profile_.label({.kind = LabelKind::process, .pid = pid, .start_ns = pid, .comm = comm});
  }
  void add(Resource resource, LabelId who, const char* source, uint64_t amount) {
    profile_.add({.ran_on = who,
                  .served = who,
                  .source = profile_.string(source),
                  .thread = 7,
                  .served_thread = 7,
                  .resource = resource},
                 {.count = 1, .ns = amount});
  }

  Profile profile_;
  LabelId writer_ = 0;
  LabelId sleeper_ = 0;
  LabelId idler_ = 0;
};

class TopResourcesTest : public testing::Test {
 protected:
  TopResourcesTest() { show({.resources = {every_resource.begin() + 1, every_resource.end()}}); }

  void show(const ViewOptions& options) {
    view_ = View(options);
    view_.show(machine_.profile());
  }
  void type(const std::string& keys) {
    for (const char c : keys) view_.press({Key::Kind::text, std::string(1, c)});
  }
  std::vector<std::string> lines(size_t width, size_t height = 24) {
    std::vector<std::string> texts;
    for (const Line& line : view_.draw(width, height).lines) {
      std::string& text = texts.emplace_back();
      for (const Span& span : line) text += span.text;
      while (text.ends_with(' ')) text.pop_back();
    }
    return texts;
  }
  std::string all(size_t width = 140) {
    std::string text;
    for (const std::string& line : lines(width)) text += line + "\n";
    return text;
  }
  bool has(const std::string& text) { return all().find(text) != std::string::npos; }
  std::string row_of(const std::string& name, size_t width = 140) {
    for (const std::string& line : lines(width))
      if (line.find(name) != std::string::npos) return line;
    return "";
  }

  const Machine machine_;
  View view_{{}};
};

TEST_F(TopResourcesTest, RowsHaveWhatTheyUsedASecond) {
  test::expect_golden("top-resources.txt", all());
  EXPECT_NE(row_of("writer").find(" 25.0      -      -   32.0M      -   1.0K   150M      -      -"),
            std::string::npos)
      << all();
  EXPECT_NE(row_of("sleeper").find("1.5M       -   1000      -      -   25.0  150.0"),
            std::string::npos)
      << all();
}

// It is no row for being idle, and its rows take no CPU time.
TEST_F(TopResourcesTest, WhoUsedSomethingIsARowAlsoWithoutCpuTime) {
  EXPECT_TRUE(has("sleeper"));
  EXPECT_FALSE(has("idler"));
  EXPECT_TRUE(has("%1CPU user 25.0")) << all();
  EXPECT_EQ(view_.shown()->samples().size(), machine_.profile().samples().size())
      << "what is saved is what was recorded";
}

TEST_F(TopResourcesTest, WhatIsNoProcesssIsInTheSumOfAll) {
  EXPECT_TRUE(has("WRITE/s 33.0M")) << all();
  EXPECT_FALSE(has("untracked"));
}

TEST_F(TopResourcesTest, OnlyWhatIsAskedForHasColumns) {
  show({.resources = {Resource::disk}});
  EXPECT_TRUE(has("READ/s WRITE/s"));
  for (const char* other : {"RECV/s", "MEM/s", "LOCK", "WAIT"}) EXPECT_FALSE(has(other)) << other;
  show({});
  EXPECT_FALSE(has("READ/s"));
  EXPECT_FALSE(has("all:"));
}

TEST_F(TopResourcesTest, TheyAreSortedBy) {
  const auto is_first = [&](const std::string& one, const std::string& other) {
    const std::string text = all();
    return text.find(one) < text.find(other);
  };
  EXPECT_TRUE(is_first("writer", "sleeper"));
  type(">>");  // STOLEN, READ/s
  EXPECT_TRUE(has("vREAD/s")) << all();
  EXPECT_TRUE(is_first("sleeper", "writer"));
  type(">");
  EXPECT_TRUE(has("vWRITE/s")) << all();
  EXPECT_TRUE(is_first("writer", "sleeper"));
  type("r");
  EXPECT_TRUE(has("^WRITE/s")) << all();
  EXPECT_TRUE(is_first("sleeper", "writer"));
}

TEST_F(TopResourcesTest, WhatIsLeastWantedGoesFirst) {
  EXPECT_NE(all(124).find("STOLEN"), std::string::npos);
  const std::string narrow = all(80);
  EXPECT_EQ(narrow.find("STOLEN"), std::string::npos) << narrow;
  for (const char* kept : {"COSTS", "READ/s", "WRITE/s", "RECV/s", "SENT/s", "WAIT"})
    EXPECT_NE(narrow.find(kept), std::string::npos) << kept << "\n" << narrow;
  EXPECT_NE(all(45).find("READ/s"), std::string::npos);
  type(">");
  EXPECT_NE(all(80).find("vSTOLEN"), std::string::npos) << "it is sorted by";
  for (const size_t width : {1, 10, 20, 40, 60, 79, 80, 81, 120, 140, 200})
    for (const std::string& line : lines(width)) EXPECT_LE(display_width(line), width) << line;
}

TEST_F(TopResourcesTest, TheyAreChosenAndSayWhereThereIsNoRoom) {
  type("C");
  const auto line_of = [&](const std::string& title, size_t width) { return row_of(title, width); };
  EXPECT_NE(line_of("READ/s", 140).find("[x]  READ/s       bytes that disks read"),
            std::string::npos)
      << all();
  EXPECT_NE(line_of("STOLEN", 80).find("there is no room for it"), std::string::npos) << all(80);
  EXPECT_EQ(line_of("STOLEN", 140).find("there is no room for it"), std::string::npos);
  view_.press({Key::Kind::end});
  type(" k k k ");  // WAIT, LOCK, MEM/s, SENT/s: STOLEN has room
  EXPECT_EQ(line_of("STOLEN", 100).find("there is no room for it"), std::string::npos) << all(100);
  for (const size_t height : {1, 2, 3, 5, 12}) {
    const auto selected = view_.draw(40, height).selected;
    ASSERT_NE(selected, std::nullopt);
    EXPECT_NE(lines(40, height)[*selected].find("SENT/s"), std::string::npos) << height;
  }
  type("q");
  EXPECT_TRUE(has("READ/s WRITE/s RECV/s  WHY")) << all();
  EXPECT_TRUE(has("MEM/s 150M")) << "the machine's sums stay";
}

TEST_F(TopResourcesTest, GroupsThreadsAndPagesHaveThem) {
  show({.by = By::thread, .resources = {Resource::disk}});
  EXPECT_NE(row_of("10/7").find("32.0M"), std::string::npos) << all();
  show({.by = By::comm, .resources = {Resource::disk}});
  EXPECT_NE(row_of("writer").find("32.0M"), std::string::npos) << all();
  view_.press({Key::Kind::enter});
  EXPECT_TRUE(has("WRITE/s 32.0M")) << all();
  show({.by = By::client, .clients = true, .resources = {Resource::disk}});
  EXPECT_NE(row_of("writer").find("32.0M"), std::string::npos) << all();
}

TEST_F(TopResourcesTest, TheHelpSaysWhatTheyAre) {
  type("?");
  for (const char* title : {"READ/s", "WRITE/s", "RECV/s", "SENT/s", "MEM/s", "LOCK", "WAIT"})
    EXPECT_NE(all(80).find(title), std::string::npos) << title;
  for (const std::string& line : lines(80)) EXPECT_EQ(line.find("…"), std::string::npos) << line;
  show({});
  type("?");
  EXPECT_EQ(all(80).find("READ/s"), std::string::npos);
}

TEST(TopRates, AreShort) {
  EXPECT_EQ(bytes_a_second(0, one_second), "-");
  EXPECT_EQ(bytes_a_second(5, 0), "-");
  EXPECT_EQ(bytes_a_second(1, 10 * one_second), "<1");
  EXPECT_EQ(bytes_a_second(1023, one_second), "1023");
  EXPECT_EQ(bytes_a_second(1024, one_second), "1.0K");
  EXPECT_EQ(bytes_a_second(mebi - 1, one_second), "1.0M");
  EXPECT_EQ(bytes_a_second(1000 * mebi, one_second), "1000M");
  EXPECT_EQ(rate_text(Column::wait, 99 * one_second, one_second), "9900.0");
  EXPECT_EQ(rate_text(Column::wait, 100 * one_second, one_second), "10000");
}

}  // namespace
}  // namespace pkprof::top
