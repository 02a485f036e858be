// SPDX-License-Identifier: Apache-2.0
// The reports of the small machine, byte for byte, against tests/golden.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "golden.h"
#include "report/calls/calls_json.h"
#include "report/calls/calls_text.h"
#include "report/format.h"
#include "report/ledger/ledger_text.h"
#include "report/listing/flat_text.h"
#include "report/listing/graph_text.h"
#include "report/listing/listing_json.h"
#include "report/report_json.h"
#include "report/tree/tree_text.h"
#include "report_fixture.h"

namespace pkprof {
namespace {

using test::expect_golden;
using test::expect_harmless;

TEST(Golden, LedgerAt80Columns) {
  const std::string text = ledger_text(test::small_machine());
  expect_harmless(text);
  expect_golden("ledger-80.txt", text);
}

TEST(Golden, LedgerWide) {
  const std::string text = ledger_text(test::small_machine(), {.width = 160});
  expect_harmless(text, 160);
  expect_golden("ledger-160.txt", text);
}

TEST(Golden, LedgerAsciiInColour) {
  expect_golden("ledger-ascii-colour.txt",
                ledger_text(test::small_machine(), {.unicode = false, .style = {.colour = true}}));
}

TEST(Golden, LedgerOfOneProcess) {
  expect_golden("ledger-pid.txt", ledger_text(test::small_machine(), {.pids = {900}}));
}

TEST(Golden, LedgerLimited) {
  expect_golden("ledger-limit.txt", ledger_text(test::small_machine(), {.limit = 2}));
}

TEST(Golden, Flat) {
  const std::string text = flat_text(test::small_machine());
  expect_harmless(text);
  expect_golden("flat.txt", text);
}

TEST(Golden, FlatOfOneProcess) {
  expect_golden("flat-pid.txt", flat_text(test::small_machine(), {.pids = {812}, .limit = 4}));
}

TEST(Golden, FlatWide) {
  const std::string text = flat_text(test::small_machine(), {.width = 140});
  expect_harmless(text, 140);
  expect_golden("flat-140.txt", text);
}

TEST(Golden, FlatWithCallsAndByThread) {
  const std::string text = flat_text(test::called_machine(), {.unicode = false});
  expect_harmless(text);
  expect_golden("flat-calls.txt", text);
  expect_golden("flat-by-thread.txt",
                flat_text(test::grouped_machine(), {.by = By::thread, .apart = true}));
}

TEST(Golden, FlatAndGraphOfCountedCalls) {
  expect_golden("flat-counted.txt", flat_text(test::counted_machine(), {.unicode = false}));
  expect_golden("graph-counted.txt", graph_text(test::counted_machine(), {.unicode = false}));
}

TEST(Golden, Calls) {
  const std::string text = calls_text(test::counted_machine(), {});
  expect_harmless(text);
  expect_golden("calls-80.txt", text);
  const std::string wide = calls_text(test::counted_machine(), {.width = 120, .limit = 3});
  expect_harmless(wide, 120);
  expect_golden("calls-120.txt", wide);
  expect_golden("calls-pid.txt", calls_text(test::counted_machine(), {.pids = {812}}));
  expect_golden("calls.json", calls_json(test::counted_machine(), {}));
  expect_golden("calls-none.txt", calls_text(test::small_machine(), {}));
}

TEST(Golden, EveryTextSaysWhatShareOfTheTimeWasWatched) {
  const auto texts = [](const Profile& profile) {
    return std::map<std::string, std::string>{{"ledger", ledger_text(profile, {})},
                                              {"flat", flat_text(profile)},
                                              {"graph", graph_text(profile)},
                                              {"tree", tree_text(profile)},
                                              {"calls", calls_text(profile, {})}};
  };
  Profile profile = test::counted_machine();
  for (const auto& [name, text] : texts(profile))
    EXPECT_EQ(text.find("watched"), std::string::npos) << name << text;
  profile.meta.unwatched_ns = profile.meta.duration_ns / 100 * 69;
  for (const auto& [name, text] : texts(profile))
    EXPECT_NE(text.find("watched 31 % of the time (--budget)\n"), std::string::npos)
        << name << text;
}

TEST(Golden, WatchedSharesReadAsTheyAre) {
  EXPECT_EQ(watched_text(1), "");
  EXPECT_EQ(watched_text(0.9999), "watched 99 % of the time (--budget)");
  EXPECT_EQ(watched_text(0.31), "watched 31 % of the time (--budget)");
  EXPECT_EQ(watched_text(0.0995), "watched 10 % of the time (--budget)");
  EXPECT_EQ(watched_text(0.0123), "watched 1.2 % of the time (--budget)");
}

TEST(Golden, Graph) {
  const std::string text = graph_text(test::small_machine());
  expect_harmless(text);
  expect_golden("graph.txt", text);
}

TEST(Golden, GraphWide) {
  const std::string text = graph_text(test::small_machine(), {.width = 160, .threshold = 5});
  expect_harmless(text, 160);
  expect_golden("graph-160.txt", text);
}

TEST(Golden, GraphOfTwoProcesses) {
  expect_golden("graph-pid.txt",
                graph_text(test::small_machine(), {.pids = {812, 900}, .limit = 8}));
}

TEST(Golden, GraphAsciiInColour) {
  expect_golden("graph-ascii-colour.txt",
                graph_text(test::small_machine(),
                           {.unicode = false, .style = {.colour = true}, .threshold = 10}));
}

TEST(Golden, GraphWithCyclesAndCalls) {
  const std::string text = graph_text(test::called_machine());
  expect_harmless(text);
  expect_golden("graph-calls.txt", text);
}

TEST(Golden, GraphByContainer) {
  expect_golden("graph-by-container.txt",
                graph_text(test::grouped_machine(), {.by = By::container, .apart = true}));
}

TEST(Golden, ListingsInJson) {
  for (const auto& [name, text] :
       {std::pair("flat.json", flat_json(test::called_machine())),
        std::pair("graph.json", graph_json(test::called_machine(), {.unicode = false})),
        std::pair("flat-pid.json", flat_json(test::small_machine(), {.pids = {666}}))}) {
    EXPECT_EQ(text.find('\n'), text.size() - 1) << "one line";
    for (const char c : text) EXPECT_TRUE(c == '\n' || (c >= 0x20 && c < 0x7f));
    expect_golden(name, nlohmann::ordered_json::parse(text).dump(1, ' ', true) + "\n");
  }
}

TEST(Golden, Tree) {
  const std::string text = tree_text(test::small_machine());
  expect_harmless(text);
  expect_golden("tree.txt", text);
}

TEST(Golden, TreeAsciiPruned) {
  expect_golden("tree-ascii.txt",
                tree_text(test::small_machine(), {.unicode = false, .threshold = 5}));
}

TEST(Golden, Json) {
  const std::string text = report_json(test::small_machine());
  EXPECT_EQ(text.find('\n'), text.size() - 1) << "one line";
  for (const char c : text) EXPECT_TRUE(c == '\n' || (c >= 0x20 && c < 0x7f));
  // Laid out for whoever reads the difference.
  expect_golden("report.json", nlohmann::ordered_json::parse(text).dump(1, ' ', true) + "\n");
}

TEST(Golden, JsonOfOneProcess) {
  const std::string text = report_json(test::small_machine(), {.pids = {812}});
  expect_golden("report-pid.json", nlohmann::ordered_json::parse(text).dump(1, ' ', true) + "\n");
}

TEST(Golden, LedgerByWhatever) {
  for (const By by : {By::thread, By::comm, By::exe, By::cgroup, By::container, By::unit}) {
    for (const size_t width : {80U, 140U}) {
      const std::string text = ledger_text(test::grouped_machine(), {.width = width, .by = by});
      expect_harmless(text, width);
      expect_golden("by-" + std::string(to_string(by)) + "-" + std::to_string(width) + ".txt",
                    text);
    }
  }
}

TEST(Golden, LedgerByContainerOfTwoProcesses) {
  expect_golden("by-container-pid.txt",
                ledger_text(test::grouped_machine(), {.pids = {100, 200}, .by = By::container}));
}

TEST(Golden, LedgerByThreadWhereNoneWereRecorded) {
  Profile profile;
  profile.meta.cpus = 1;
  profile.meta.duration_ns = 100;
  const LabelId one =
      profile.label({.kind = LabelKind::process, .pid = 5, .start_ns = 1, .comm = "one"});
  profile.add({.ran_on = one, .served = one, .source = profile.string("user")}, {.ns = 100});
  expect_golden("by-thread-none.txt", ledger_text(profile, {.by = By::thread}));
}

TEST(Golden, TreeByContainer) {
  expect_golden("tree-by-container.txt",
                tree_text(test::grouped_machine(), {.by = By::container, .threshold = 0}));
}

TEST(Golden, JsonByThreadAndContainer) {
  for (const By by : {By::thread, By::container}) {
    const std::string text = report_json(test::grouped_machine(), {.by = by});
    for (const char c : text) EXPECT_TRUE(c == '\n' || (c >= 0x20 && c < 0x7f));
    expect_golden("report-by-" + std::string(to_string(by)) + ".json",
                  nlohmann::ordered_json::parse(text).dump(1, ' ', true) + "\n");
  }
}

TEST(Golden, EmptyProfile) {
  expect_golden("empty.txt", ledger_text(Profile()) + flat_text(Profile()) + tree_text(Profile()) +
                                 report_json(Profile()));
  expect_golden("empty-graph.txt",
                graph_text(Profile()) + flat_json(Profile()) + graph_json(Profile()));
}

}  // namespace
}  // namespace pkprof
