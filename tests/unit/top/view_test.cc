// SPDX-License-Identifier: Apache-2.0
// What `pkprof top` shows of a profile, and what keys do to it.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "golden.h"
#include "random_profile.h"
#include "report/clean.h"
#include "report/format.h"
#include "report_fixture.h"
#include "served_fixture.h"
#include "top/view.h"

namespace pkprof::top {
namespace {

std::string text_of(const Line& line) {
  std::string text;
  for (const Span& span : line) text += span.text;
  while (text.ends_with(' ')) text.pop_back();
  return text;
}

class TopTest : public testing::Test {
 protected:
  TopTest() { view_.show(test::small_machine()); }

  View::Ask type(const std::string& keys) {
    View::Ask ask = View::Ask::nothing;
    for (const char c : keys) ask = view_.press({Key::Kind::text, std::string(1, c)});
    return ask;
  }
  std::vector<std::string> lines(size_t width = 80, size_t height = 24) {
    const Screen screen = view_.draw(width, height);
    selected_ = screen.selected;
    std::vector<std::string> texts;
    texts.reserve(screen.lines.size());
    for (const Line& line : screen.lines) texts.push_back(text_of(line));
    return texts;
  }
  std::string all(size_t width = 80, size_t height = 24) {
    std::string text;
    for (const std::string& line : lines(width, height)) text += line + "\n";
    return text;
  }
  // First words of the rows.
  std::vector<std::string> ids() {
    std::vector<std::string> found;
    bool below = false;
    for (const std::string& line : lines(120, 60)) {
      if (below) {
        const size_t start = line.find_first_not_of(' ');
        if (start == std::string::npos) break;
        found.push_back(line.substr(start, line.find(' ', start) - start));
      }
      if (line.find("STOLEN") != std::string::npos) below = true;
    }
    return found;
  }
  bool has(const std::string& text) { return all(120, 60).find(text) != std::string::npos; }

  View view_{{}};
  std::optional<size_t> selected_;
};

TEST_F(TopTest, TheListIsTheLedger) {
  test::expect_golden("top-list.txt", all());
  const Profile profile = test::small_machine();
  const Ledger ledger = build_ledger(profile);
  std::vector<std::string> expected;
  std::vector<LedgerRow> rows = ledger.processes;
  std::ranges::stable_sort(rows, std::greater(), &LedgerRow::costs_ns);
  expected.reserve(rows.size());
  for (const LedgerRow& row : rows) expected.push_back(profile.labels()[row.label].pid_text());
  EXPECT_EQ(ids(), expected);
  for (const LedgerRow& row : rows)
    EXPECT_TRUE(has(pad_left(percent_or_dash(row.costs_ns(), profile.meta.duration_ns), 7)));
}

TEST_F(TopTest, BeforeTheFirstProfileThereIsAWord) {
  view_ = View({});
  EXPECT_NE(all().find("in a moment"), std::string::npos);
  for (const char* key : {"t", "/", "x", "s", "g", "k", "j"}) type(key);
  view_.press({Key::Kind::enter});
  view_.press({Key::Kind::end});
  EXPECT_FALSE(all().empty());
}

TEST_F(TopTest, FitsAnyTerminal) {
  for (const char* keys : {"", "t", "c", "?", "C"}) {
    type(keys);
    for (const size_t width : {1, 2, 10, 20, 79, 80, 81, 132, 300})
      for (const size_t height : {1, 2, 3, 5, 10, 11, 12, 24, 80}) {
        const Screen screen = view_.draw(width, height);
        EXPECT_LE(screen.lines.size(), height);
        EXPECT_GE(screen.lines.size(), 1U);
        for (const Line& line : screen.lines) {
          size_t columns = 0;
          for (const Span& span : line) columns += display_width(span.text);
          EXPECT_LE(columns, width) << text_of(line);
        }
        if (screen.selected) {
          EXPECT_LT(*screen.selected, screen.lines.size());
        }
      }
  }
}

TEST_F(TopTest, SortsByAnyColumnAndBackwards) {
  const std::vector<std::string> by_costs = ids();
  std::set<std::vector<std::string>> orders;
  for (size_t i = 0; i < columns_of(false).size(); ++i) {
    const std::vector<std::string> order = ids();
    EXPECT_EQ(order.size(), by_costs.size());
    orders.insert(order);
    type(">");
  }
  EXPECT_EQ(ids(), by_costs) << "all columns around";
  EXPECT_GT(orders.size(), 3U);
  type("><");
  EXPECT_EQ(ids(), by_costs);
  type("r");
  EXPECT_EQ(ids().front(), by_costs.back());
}

TEST_F(TopTest, ColumnsAreChosenAndKeepTheirPlaces) {
  const std::string titles = "SEEMS   USER    OWN  ASYNC vCOSTS STOLEN";
  EXPECT_TRUE(has(titles));
  type("C");
  test::expect_golden("top-columns.txt", all());
  EXPECT_NE(selected_, std::nullopt);
  view_.press({Key::Kind::down});
  type(" jj ");  // USER, ASYNC
  EXPECT_TRUE(has("[ ]  USER"));
  EXPECT_TRUE(has("[x]  OWN"));
  EXPECT_TRUE(has("[ ]  ASYNC"));
  type("q");
  EXPECT_TRUE(has("SEEMS    OWN vCOSTS STOLEN  WHY")) << all();
  view_.show(test::small_machine());
  type("c");
  EXPECT_TRUE(has("SEEMS    OWN vCOSTS STOLEN  WHY")) << "for as long as it runs";
  type("<");
  EXPECT_TRUE(has("SEEMS   vOWN  COSTS STOLEN  WHY")) << "what is not shown is not sorted by";
  type("c");
  view_.press({Key::Kind::function, "", 2});
  type(" ");  // the same one, ASYNC, again
  view_.press({Key::Kind::home});
  type(" ");  // SEEMS
  view_.press({Key::Kind::enter});
  EXPECT_TRUE(has("  vOWN  ASYNC  COSTS STOLEN  WHY")) << all();
  EXPECT_FALSE(has("SEEMS"));
}

TEST_F(TopTest, RowsAreSortedByAColumnThatIsShown) {
  type("C");
  view_.press({Key::Kind::end});
  type("k ");  // COSTS
  EXPECT_TRUE(has("rows are sorted by it"));
  EXPECT_TRUE(has("[x] vCOSTS"));
  EXPECT_FALSE(has("FROZEN"));
  view_.press({Key::Kind::home});
  type("j s");  // USER, which is hidden by then
  EXPECT_TRUE(has("[x] vUSER"));
  type("C");
  EXPECT_TRUE(has("vUSER"));
  std::vector<LedgerRow> rows = build_ledger(test::small_machine()).processes;
  const Profile profile = test::small_machine();
  std::ranges::stable_sort(rows, std::greater(), &LedgerRow::user_ns);
  EXPECT_EQ(ids().front(), profile.labels()[rows.front().label].pid_text());
}

TEST_F(TopTest, BeforeTheFirstProfileColumnsAreChosenToo) {
  view_ = View({});
  type("C ");
  EXPECT_TRUE(has("[ ]  SEEMS"));
  type("q");
  view_.show(test::small_machine());
  EXPECT_FALSE(has("SEEMS"));
}

TEST_F(TopTest, AFilterKeepsWhatHasItInAnyName) {
  const size_t rows = ids().size();
  type("/NGIN");
  EXPECT_TRUE(has("Filter: NGIN_"));
  const std::vector<std::string> some = ids();
  EXPECT_LT(some.size(), rows);
  EXPECT_GT(some.size(), 0U);
  EXPECT_TRUE(has("nginx"));
  view_.press({Key::Kind::enter});
  EXPECT_TRUE(has("only: NGIN"));
  EXPECT_EQ(type("s"), View::Ask::nothing) << "keys are keys again";
  view_.press({Key::Kind::back});
  EXPECT_EQ(ids().size(), rows);
  type("/zzzz");
  EXPECT_TRUE(has("no such row"));
  for (int i = 0; i < 4; ++i) view_.press({Key::Kind::erase});
  EXPECT_EQ(ids().size(), rows);
}

TEST_F(TopTest, TheTreeHasAllRowsOnceAndChildrenBelowTheirParents) {
  std::vector<std::string> flat = ids();
  type("t");
  std::vector<std::string> tree = ids();
  std::ranges::sort(flat);
  std::ranges::sort(tree);
  EXPECT_EQ(tree, flat);
}

TEST_F(TopTest, OfATreeACircleIsNoTrap) {
  Profile profile;
  profile.meta = {.cpus = 1, .duration_ns = 1'000'000'000};
  const StringId user = profile.string("user");
  for (uint32_t pid = 1; pid <= 5; ++pid) {
    // 1 and 2 are each other's parents; 4 is 3's child, 5 has a parent that is not there.
    const uint32_t parents[] = {0, 2, 1, 0, 3, 99};
    const LabelId id = profile.label({.kind = LabelKind::process,
                                      .pid = pid,
                                      .start_ns = pid,
                                      .parent_pid = parents[pid],
                                      .comm = "p" + std::to_string(pid)});
    profile.add({.ran_on = id, .served = id, .source = user},
                {.count = 1, .ns = uint64_t{10'000'000} * pid});
  }
  view_.show(std::move(profile));
  type("t");
  std::vector<std::string> tree = ids();
  const auto at = [&](const char* id) { return std::ranges::find(tree, id) - tree.begin(); };
  EXPECT_EQ(tree.size(), 5U);
  EXPECT_EQ(at("4"), at("3") + 1);
}

TEST_F(TopTest, ARowStaysSelectedWhereverItGoes) {
  lines();
  const size_t first = selected_.value();
  view_.press({Key::Kind::down});
  view_.press({Key::Kind::down});
  const std::string chosen = lines()[selected_.value()];
  EXPECT_EQ(selected_, first + 2);
  type("r");
  EXPECT_EQ(lines()[selected_.value()], chosen);
  view_.show(test::small_machine());
  EXPECT_EQ(lines()[selected_.value()], chosen);
  view_.press({Key::Kind::home});
  lines();
  EXPECT_EQ(selected_, first);
}

TEST_F(TopTest, ScrollsAThousandRows) {
  Profile profile;
  profile.meta = {.cpus = 2, .duration_ns = 1'000'000'000};
  const StringId user = profile.string("user");
  for (uint32_t pid = 1; pid <= 1000; ++pid) {
    const LabelId id =
        profile.label({.kind = LabelKind::process, .pid = pid, .start_ns = pid, .comm = "worker"});
    profile.add({.ran_on = id, .served = id, .source = user}, {.count = 1, .ns = 2'000'000 - pid});
  }
  view_.show(std::move(profile));
  view_.press({Key::Kind::end});
  EXPECT_TRUE(all().find("   1000 worker") != std::string::npos);
  view_.press({Key::Kind::page_up});
  view_.press({Key::Kind::page_up});
  EXPECT_TRUE(all().find("   1000 worker") == std::string::npos);
  view_.press({Key::Kind::home});
  EXPECT_TRUE(all().find("      1 worker") != std::string::npos);
}

TEST_F(TopTest, ARowsPageSaysWhy) {
  view_.press({Key::Kind::enter});
  test::expect_golden("top-process.txt", all(100, 60));
  EXPECT_TRUE(has("What it was for"));
  EXPECT_TRUE(has("Hot stacks"));
  Profile nothing;
  nothing.meta = {.cpus = 2, .duration_ns = 1'000'000'000};
  view_.show(std::move(nothing));
  EXPECT_TRUE(has("took no time just now"));
  EXPECT_EQ(type("q"), View::Ask::nothing) << "back to the list";
  EXPECT_EQ(type("q"), View::Ask::quit);
}

TEST_F(TopTest, FrozenItStays) {
  const std::vector<std::string> before = ids();
  type("f");
  Profile nothing;
  nothing.meta = {.cpus = 2, .duration_ns = 1'000'000'000};
  view_.show(nothing);
  EXPECT_TRUE(has("FROZEN"));
  EXPECT_EQ(ids(), before);
  EXPECT_EQ(view_.shown()->samples().size(), test::small_machine().samples().size());
  type("f");
  view_.show(nothing);
  EXPECT_TRUE(has("nothing ran"));
}

TEST_F(TopTest, GroupsAndThreads) {
  view_.show(test::grouped_machine());
  type("c");
  EXPECT_TRUE(has("CGROUP"));
  type("c");
  EXPECT_TRUE(has("PID"));
  EXPECT_EQ(type("H"), View::Ask::record) << "they were not recorded";
  EXPECT_TRUE(view_.wants_threads());
  EXPECT_TRUE(has("PID/TID"));
  EXPECT_EQ(type("H"), View::Ask::nothing);
  EXPECT_EQ(type("H"), View::Ask::nothing) << "now they are";
  std::set<std::string> headings;
  constexpr size_t groups = every_by.size() - 2;  // without clients, and hosts: it is one
  for (size_t i = 0; i < groups; ++i) {
    type("g");
    for (const std::string& line : lines())
      if (line.find("STOLEN") != std::string::npos) headings.insert(line);
  }
  EXPECT_EQ(headings.size(), groups);
}

TEST_F(TopTest, WhatIsIncompleteIsOnItsFace) {
  Profile profile = test::small_machine();
  profile.meta.samples_lost = 312;
  view_.show(std::move(profile));
  EXPECT_TRUE(has("312 samples lost"));
  profile = test::small_machine();
  profile.meta.samples_lost = 0;
  profile.meta.degraded = {"sockets: refused; who owns them is not known"};
  view_.show(std::move(profile));
  EXPECT_TRUE(has("incomplete"));
  type("?");
  EXPECT_TRUE(has("who owns them is not known"));
}

TEST_F(TopTest, HostileNamesAreText) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    view_ = View({.unicode = seed % 2 == 0});
    view_.show(test::random_profile(seed, 300));
    for (const char* keys : {"", "t", "g", "g", "g", "g"}) {
      type(keys);
      test::expect_harmless(all(200, 50), SIZE_MAX);
      view_.press({Key::Kind::enter});
      test::expect_harmless(all(200, 500), SIZE_MAX);
      view_.press({Key::Kind::back});
    }
  }
}

class TopOfClientsTest : public TopTest {
 protected:
  TopOfClientsTest() {
    view_ = View({.clients = true});
    view_.show(test::ServedMachine().profile);
  }
};

TEST_F(TopOfClientsTest, SaysWhatWasForOthersAndWhatClientsCostWithServers) {
  const std::string text = all();
  test::expect_golden("top-clients.txt", text);
  EXPECT_NE(text.find("OTHERS SERVERS"), std::string::npos);
  view_.press({Key::Kind::enter});
  EXPECT_TRUE(has("for others 35.7  with servers 0.5")) << all();
}

TEST_F(TopOfClientsTest, SortsByWhatClientsCostWithServers) {
  type(">>");
  EXPECT_EQ(ids(), (std::vector<std::string>{"100", "-", "150", "200", "300"}));
  type("<");
  EXPECT_EQ(ids(), (std::vector<std::string>{"300", "200", "100", "-", "150"}));
}

// FOR OTHERS goes first, then WITH SERVERS.
TEST_F(TopOfClientsTest, FitsAnyTerminal) {
  for (const size_t width : {1, 20, 60, 70, 76, 79, 80, 81, 132}) {
    for (const std::string& line : lines(width)) EXPECT_LE(display_width(line), width);
    EXPECT_EQ(all(width).find("SERVERS") != std::string::npos, width >= 70) << width;
    EXPECT_EQ(all(width).find("OTHERS") != std::string::npos, width >= 79) << width;
  }
}

TEST_F(TopOfClientsTest, ByClientTheyAreChargedAlready) {
  view_ = View({.by = By::client, .clients = true});
  view_.show(test::ServedMachine().profile);
  EXPECT_FALSE(has("SERVERS"));
}

}  // namespace
}  // namespace pkprof::top
