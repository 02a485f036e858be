// SPDX-License-Identifier: Apache-2.0
// Exports of stacks and of the ledger: every nanosecond is there, whatever the names are, and their
// readers find it.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "export/formats.h"
#include "golden.h"
#include "random_profile.h"
#include "report/format.h"
#include "report_fixture.h"

namespace pkprof {
namespace {

using nlohmann::json;

std::string exported(const char* format, const Profile& profile,
                     const ExportOptions& options = {}) {
  const auto text = export_format(format)->write(profile, options);
  EXPECT_TRUE(text) << text.error().message;
  return text.value_or("");
}

constexpr const char* csv_head =
    "ran_on_pid,ran_on,ran_on_exe,ran_on_cgroup,served_pid,served,served_exe,served_cgroup,"
    "source,basis,samples,ns\r\n";

uint64_t busy(const Profile& profile, std::vector<uint32_t> pids = {}) {
  ReportOptions options;
  options.pids = std::move(pids);
  return busy_time(profile, options).busy_ns;
}

uint64_t sampled(const Profile& profile) {
  uint64_t ns = 0;
  for (const auto& sample : profile.samples()) ns += sample.value.ns;
  return ns;
}

// What a program says of a text that it reads from a file.
std::string said_of(const std::string& program, const std::string& text) {
  const std::string file =
      (std::filesystem::temp_directory_path() / ("pkprof-export-" + std::to_string(getpid())))
          .string();
  std::ofstream(file, std::ios::binary) << text;
  std::string said;
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen((program + " " + file).c_str(), "r"),
                                                   pclose);
  std::array<char, 4096> buffer{};
  while (pipe && fgets(buffer.data(), buffer.size(), pipe.get())) said += buffer.data();
  std::filesystem::remove(file);
  return said;
}

// Frames of each line, and the sum of the lines.
uint64_t sum_of_folded(const std::string& text, std::map<std::string, uint64_t>* roots = nullptr) {
  uint64_t sum = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const size_t space = line.rfind(' ');
    const uint64_t ns = std::stoull(line.substr(space + 1));
    EXPECT_EQ(line.find(";;"), std::string::npos) << line;
    sum += ns;
    if (roots) (*roots)[line.substr(0, line.find(';'))] += ns;
  }
  return sum;
}

// Python's own module is the judge of what a field is.
uint64_t sum_of_csv(const std::string& text) {
  const std::string sum = said_of(
      "python3 -c 'import csv,sys; rows=list(csv.reader(open(sys.argv[1], newline=\"\"))); "
      "assert all(len(row)==12 for row in rows); print(sum(int(row[11]) for row in rows[1:]))'",
      text);
  return sum.empty() ? 0 : std::stoull(sum);
}

TEST(StackExports, AreOfTheSmallMachine) {
  const Profile profile = test::small_machine();
  for (const char* format : {"folded", "csv", "dot"}) {
    const std::string text = exported(format, profile);
    test::expect_golden(std::string("export-") + format + ".txt", text);
  }
  test::expect_golden("export-speedscope.json",
                      json::parse(exported("speedscope", profile)).dump(1) + "\n");
}

TEST(StackExports, FoldedStacksHaveAllOfTheTime) {
  const Profile profile = test::small_machine();
  for (const bool ran_on : {false, true})
    EXPECT_EQ(sum_of_folded(exported("folded", profile, {.ran_on = ran_on})), busy(profile));
  std::map<std::string, uint64_t> served;
  std::map<std::string, uint64_t> ran;
  sum_of_folded(exported("folded", profile), &served);
  sum_of_folded(exported("folded", profile, {.ran_on = true}), &ran);
  EXPECT_NE(served, ran);
}

TEST(StackExports, OfOneProcessOnlyItsOwn) {
  const Profile profile = test::small_machine();
  uint32_t pid = 0;
  for (const Label& label : profile.labels())
    if (label.kind == LabelKind::process && busy(profile, {label.pid})) pid = label.pid;
  const ExportOptions options{.output = {}, .pids = {pid}, .ran_on = false};
  EXPECT_EQ(sum_of_folded(exported("folded", profile, options)), busy(profile, {pid}));
  EXPECT_EQ(sum_of_csv(exported("csv", profile, options)), sampled(profile)) << "the rest is OTHER";
}

TEST(StackExports, SpeedscopeHasAllOfTheTime) {
  const Profile profile = test::small_machine();
  const json all = json::parse(exported("speedscope", profile));
  uint64_t sum = 0;
  for (const json& party : all.at("profiles")) {
    uint64_t weights = 0;
    for (const json& weight : party.at("weights")) weights += weight.get<uint64_t>();
    EXPECT_EQ(weights, party.at("endValue")) << party.at("name");
    EXPECT_EQ(party.at("weights").size(), party.at("samples").size());
    for (const json& stack : party.at("samples"))
      for (const json& frame : stack)
        EXPECT_LT(frame.get<size_t>(), all.at("shared").at("frames").size());
    sum += weights;
  }
  EXPECT_EQ(sum, busy(profile));
}

// Of the Firefox Profiler's format: what its tables refer to is there, and the weights are the
// time.
uint64_t sum_of_firefox(const json& all) {
  double sum = 0;
  for (const json& thread : all.at("threads")) {
    const size_t strings = thread.at("stringArray").size();
    const auto column = [&](const char* table, const char* name) -> const json& {
      const json& values = thread.at(table).at(name);
      EXPECT_EQ(values.size(), thread.at(table).at("length")) << table << " " << name;
      return values;
    };
    const auto refers = [&](const json& values, size_t to) {
      for (const json& value : values)
        EXPECT_TRUE(value.is_null() || value == -1 || value.get<size_t>() < to);
    };
    refers(column("samples", "stack"), thread.at("stackTable").at("length"));
    refers(column("stackTable", "frame"), thread.at("frameTable").at("length"));
    refers(column("frameTable", "func"), thread.at("funcTable").at("length"));
    refers(column("funcTable", "resource"), thread.at("resourceTable").at("length"));
    refers(column("funcTable", "name"), strings);
    refers(column("resourceTable", "name"), strings);
    refers(column("stackTable", "category"), all.at("meta").at("categories").size());
    const json& prefix = column("stackTable", "prefix");
    for (size_t i = 0; i < prefix.size(); ++i)
      EXPECT_TRUE(prefix[i].is_null() || prefix[i].get<size_t>() < i) << "its caller is before it";
    for (const json& ms : column("samples", "weight")) sum += ms.get<double>();
  }
  return static_cast<uint64_t>(std::llround(sum * 1e6));
}

TEST(StackExports, FirefoxHasAllOfTheTime) {
  const Profile profile = test::small_machine();
  const json all = json::parse(exported("firefox", profile));
  EXPECT_EQ(sum_of_firefox(all), busy(profile));
  const json speedscope = json::parse(exported("speedscope", profile));
  ASSERT_EQ(all.at("threads").size(), speedscope.at("profiles").size());
  for (size_t i = 0; i < all.at("threads").size(); ++i)
    EXPECT_EQ(all.at("threads")[i].at("name"), speedscope.at("profiles")[i].at("name"));
}

TEST(StackExports, TheTraceIsTheTimeline) {
  Profile profile = test::small_machine();
  EXPECT_FALSE(export_format("perfetto")->write(profile, {}));
  profile.meta.slot_ns = 1'000'000'000;
  uint64_t all = 0;
  for (const auto& [key, value] : profile.samples()) {
    const auto slot = static_cast<uint32_t>(2 * (all % 3));  // with gaps
    profile.timeline.push_back({slot, key.ran_on, key.served, key.source, value.ns});
    all += value.ns;
  }
  const json trace = json::parse(exported("perfetto", profile));
  // Each value holds until the next of the same counter; the last is none.
  std::map<std::pair<uint64_t, std::string>, json> before;
  double seconds = 0;
  for (const json& e : trace.at("traceEvents")) {
    if (e.at("ph") != "C") continue;
    const std::pair counter(e.at("pid").get<uint64_t>(), e.at("name").get<std::string>());
    if (const auto it = before.find(counter); it != before.end() && counter.second == "for it")
      for (const auto& [series, percent] : it->second.at("args").items())
        seconds += percent.get<double>() / 100 *
                   (e.at("ts").get<double>() - it->second.at("ts").get<double>()) / 1e6;
    before[counter] = e;
  }
  EXPECT_NEAR(seconds, static_cast<double>(all) / 1e9, 1e-6);
  for (const auto& [counter, last] : before)
    for (const auto& [series, percent] : last.at("args").items()) EXPECT_EQ(percent, 0);
}

TEST(StackExports, StealIsTimeWithoutStacks) {
  Profile profile = test::small_machine();
  profile.meta.slot_ns = 1'000'000'000;
  for (const auto& [key, value] : profile.samples())
    profile.timeline.push_back({0, key.ran_on, key.served, key.source, value.ns});
  for (const char* format : {"folded", "dot", "speedscope", "firefox"})
    EXPECT_EQ(exported(format, profile).find("STEAL"), std::string::npos) << format;
  for (const char* format : {"csv", "perfetto"})
    EXPECT_NE(exported(format, profile).find("STEAL"), std::string::npos) << format;
  // Whoever is asked for, it is not of the others.
  EXPECT_NE(exported("csv", profile, {.pids = {812}}).find("STEAL,,,,STEAL,,,steal,own,400,"),
            std::string::npos);
  EXPECT_EQ(exported("perfetto", profile, {.pids = {812}}).find("STEAL"), std::string::npos);
}

TEST(StackExports, JsonSaysWhatWasWatchedAndTaken) {
  const json all = json::parse(exported("json", test::small_machine()));
  EXPECT_EQ(all.at("meta").at("watched"), 0.31);
  for (const char* key : {"sampled_hz", "unwatched_ns", "disks_unwatched_ns"})
    EXPECT_FALSE(all.at("meta").contains(key)) << key;
  uint64_t steal_ns = 0;
  for (const json& sample : all.at("samples"))
    if (all.at("labels")[sample.at("served").get<size_t>()].at("kind") == "steal")
      steal_ns += sample.at("ns").get<uint64_t>();
  EXPECT_EQ(steal_ns, 400'000'000U);
}

// GraphViz draws it, and the parties at its top are all of the time.
TEST(StackExports, GraphVizDrawsTheCallGraph) {
  const Profile profile = test::small_machine();
  const json graph = json::parse(said_of("dot -Tjson", exported("dot", profile)));
  uint64_t parties = 0;
  for (const json& node : graph.at("objects"))
    if (node.at("style") == "filled,bold")
      parties += std::stoull(node.at("pkprof_ns").get<std::string>());
  EXPECT_LE(parties, busy(profile));
  EXPECT_GE(static_cast<double>(parties), 0.98 * static_cast<double>(busy(profile)))
      << "but for those that are not worth a node";
}

TEST(StackExports, TheTableHasIdleTimeToo) {
  const Profile profile = test::small_machine();
  EXPECT_EQ(sum_of_csv(exported("csv", profile)), sampled(profile));
}

TEST(StackExports, HostileNamesAreHarmless) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const Profile profile = test::random_profile(seed, 200);
    SCOPED_TRACE(seed);
    const std::string folded = exported("folded", profile);
    EXPECT_EQ(sum_of_folded(folded), busy(profile));
    test::expect_harmless(folded, SIZE_MAX);
    const json speedscope = json::parse(exported("speedscope", profile));
    for (const json& frame : speedscope.at("shared").at("frames"))
      test::expect_harmless(frame.at("name").get<std::string>(), SIZE_MAX);
    const json firefox = json::parse(exported("firefox", profile));
    EXPECT_NEAR(static_cast<double>(sum_of_firefox(firefox)), static_cast<double>(busy(profile)),
                1e-9 * static_cast<double>(busy(profile)));
    for (const json& thread : firefox.at("threads"))
      for (const json& text : thread.at("stringArray"))
        test::expect_harmless(text.get<std::string>(), SIZE_MAX);
    const std::string dot = exported("dot", profile);
    test::expect_harmless(dot, SIZE_MAX);
    if (seed > 3) continue;  // another program each
    EXPECT_EQ(sum_of_csv(exported("csv", profile)), sampled(profile));
    EXPECT_FALSE(said_of("dot -Tjson", dot).empty());
  }
}

// Wherever a spreadsheet may have a cell begin: some separate them with semicolons, and take wide
// signs for signs.
TEST(StackExports, ATableHasNoFormulas) {
  const auto name_of = [](const std::string& comm) {
    Profile profile;
    const LabelId label = profile.label({.kind = LabelKind::process, .pid = 1, .comm = comm});
    profile.add({.ran_on = label, .served = label, .source = profile.string("user")}, {.ns = 1});
    const std::string row = exported("csv", profile).substr(strlen(csv_head));
    return row.substr(2, row.find(",,,1,") - 2);
  };
  EXPECT_EQ(name_of("nginx: worker-1"), "nginx: worker-1");
  for (const std::string sign : {"=", "+", "-", "@", "＝", "＋", "－", "＠", "﹢"}) {
    EXPECT_EQ(name_of(sign + "1+1"), "'" + sign + "1+1");
    EXPECT_EQ(name_of(" " + sign + "1"), " '" + sign + "1");
    EXPECT_EQ(name_of("x;" + sign + "1+1"), "\"x;'" + sign + "1+1\"");
    EXPECT_EQ(name_of("x," + sign + "1+1"), "\"x,'" + sign + "1+1\"");
    EXPECT_EQ(name_of("x;\"" + sign + "1"), "\"x;\"\"'" + sign + "1\"");
    EXPECT_EQ(name_of("\t" + sign + "1"), "\\x09" + sign + "1");
    EXPECT_EQ(name_of("\r" + sign + "1"), "\\x0d" + sign + "1");
    EXPECT_EQ(name_of("x\n" + sign + "1"), "x\\x0a" + sign + "1");
  }
}

TEST(StackExports, OfNothingAreEmpty) {
  const Profile nothing;
  EXPECT_EQ(exported("folded", nothing), "");
  EXPECT_TRUE(json::parse(exported("speedscope", nothing)).at("profiles").empty());
  EXPECT_TRUE(json::parse(exported("firefox", nothing)).at("threads").empty());
  EXPECT_EQ(sum_of_csv(exported("csv", nothing)), 0);
  EXPECT_NE(said_of("dot -Tjson", exported("dot", nothing)), "");
}

TEST(StackExports, WhatCannotBeWrittenIsSaid) {
  for (const char* format : {"folded", "csv", "dot", "firefox", "speedscope"}) {
    const auto done = export_format(format)->write(
        test::small_machine(), {.output = "/no/such/directory/file", .pids = {}, .ran_on = false});
    ASSERT_FALSE(done);
    EXPECT_NE(done.error().message.find("/no/such/directory/file"), std::string::npos);
  }
}

}  // namespace
}  // namespace pkprof
