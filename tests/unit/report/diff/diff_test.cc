// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "golden.h"
#include "random_profile.h"
#include "report/diff/diff_text.h"
#include "report_fixture.h"

namespace pkprof {
namespace {

using nlohmann::json;

// The same, of so many times the length, with one sample more or less.
Profile stretched(const Profile& from, uint64_t times) {
  Profile to = from;
  to.meta.duration_ns *= times;
  for (const auto& [key, value] : from.samples())
    to.add(key, {.count = value.count * (times - 1),
                 .ns = value.ns * (times - 1),
                 .exact_ns = value.exact_ns * (times - 1)});
  return to;
}

const DiffRow* row_of(const Diff& diff, const std::string& name) {
  for (const DiffRow& row : diff.rows)
    if (row.name == name) return &row;
  return nullptr;
}

SampleKey some_key(const Profile& profile, const std::string& comm, const std::string& source) {
  for (const auto& [key, value] : profile.samples())
    if (profile.labels()[key.served].comm == comm && profile.text(key.source) == source) return key;
  ADD_FAILURE() << comm << " " << source;
  return {};
}

TEST(DiffTest, OfAProfileWithItselfIsNothing) {
  const Profile a = test::small_machine();
  for (const Profile& b : {a, stretched(a, 3)}) {
    const Diff diff = diff_profiles(a, b, By::comm);
    EXPECT_FALSE(diff.rows.empty());
    for (const DiffRow& row : diff.rows) EXPECT_NEAR(row.costs.change(), 0, 1e-9) << row.name;
    for (const DiffSource& source : diff.sources) EXPECT_NEAR(source.time.change(), 0, 1e-9);
    for (const DiffFunction& f : diff.functions) EXPECT_NEAR(f.self.change(), 0, 1e-9);
  }
}

TEST(DiffTest, RowsAreAllOfTheTime) {
  const Profile a = test::small_machine();
  for (const By by : every_by) {
    double sum = 0;
    for (const DiffRow& row : diff_profiles(a, a, by).rows) sum += row.costs.a;
    EXPECT_NEAR(sum, a.meta.cpus, 1e-6) << to_string(by);
  }
}

TEST(DiffTest, WhatIsAddedIsFoundWhereItIs) {
  const Profile a = test::small_machine();
  Profile b = a;
  // Two seconds of ten: a fifth of a CPU, in 2,000 samples.
  b.add(some_key(a, "nginx", "softirq:NET_RX"), {.count = 2000, .ns = 2'000'000'000});
  const Diff diff = diff_profiles(a, b, By::comm);
  const DiffRow* nginx = row_of(diff, "nginx");
  ASSERT_NE(nginx, nullptr);
  EXPECT_NEAR(nginx->costs.change(), 0.2, 1e-9);
  EXPECT_NEAR(nginx->async.change(), 0.2, 1e-9);
  EXPECT_NEAR(nginx->user.change(), 0, 1e-9);
  EXPECT_TRUE(nginx->costs.is_sure());
  EXPECT_EQ(diff.sources.front().source, "softirq:NET_RX");
  EXPECT_EQ(diff.sources.front().name, "nginx");
  EXPECT_NEAR(diff.functions.front().self.change(), 0.2, 1e-9);
}

TEST(DiffTest, StealIsARowAndNoSource) {
  const Profile a = test::small_machine();
  Profile b = a;
  for (const auto& [key, value] : a.samples())
    if (a.text(key.source) == "steal") b.add(key, {.count = 1000, .ns = 1'000'000'000});
  const Diff diff = diff_profiles(a, b, By::comm);
  const DiffRow* steal = row_of(diff, "STEAL");
  ASSERT_NE(steal, nullptr);
  EXPECT_EQ(steal->kind, GroupKind::special);
  EXPECT_NEAR(steal->costs.change(), 0.1, 1e-9);
  EXPECT_NEAR(row_of(diff, "OTHER")->costs.change(), 0, 1e-9);
  for (const DiffSource& source : diff.sources) EXPECT_NE(source.source, "steal");
}

TEST(DiffTest, FewSamplesAreNotSure) {
  Profile a;
  a.meta.cpus = 1;
  a.meta.duration_ns = 1'000'000'000;
  Profile b = a;
  const auto add = [](Profile& to, uint64_t samples) {
    const LabelId p = to.label({.kind = LabelKind::process, .pid = 1, .comm = "x"});
    to.add({.ran_on = p, .served = p, .source = to.string("user")},
           {.count = samples, .ns = samples * 1'000'000});
  };
  add(a, 100);
  add(b, 120);
  EXPECT_FALSE(row_of(diff_profiles(a, b, By::comm), "x")->costs.is_sure());
  add(b, 60);
  EXPECT_TRUE(row_of(diff_profiles(a, b, By::comm), "x")->costs.is_sure());
}

TEST(DiffTest, ExactTimesHaveNoMargin) {
  Profile a;
  a.meta.cpus = 1;
  a.meta.duration_ns = 1'000'000'000;
  Profile b = a;
  const LabelId p = b.label({.kind = LabelKind::process, .pid = 1, .comm = "x"});
  b.add({.ran_on = p, .served = p, .source = b.string("irq:eth0")}, {.ns = 1'000'000});
  EXPECT_EQ(row_of(diff_profiles(a, b, By::comm), "x")->costs.margin(), 0);
}

TEST(DiffTest, TextAndJson) {
  const Profile a = test::small_machine();
  Profile b = stretched(a, 2);
  b.add(some_key(a, "nginx", "softirq:NET_RX"), {.count = 2000, .ns = 2'000'000'000});
  ReportOptions options;
  options.by = By::comm;
  test::expect_golden("diff.txt", diff_text(a, "before.pb.gz", b, "after.pb.gz", options));
  options.width = 120;
  options.unicode = false;
  test::expect_golden("diff-ascii-120.txt", diff_text(a, "before", b, "after", options));
  const json all = json::parse(diff_json(a, "before", b, "after", options));
  EXPECT_EQ(all.at("schema"), "pkprof.diff/1");
  EXPECT_EQ(all.at("a").at("watched"), 0.31);
  EXPECT_EQ(all.at("rows").at(0).at("costs").at("sure"), true);
}

TEST(DiffTest, HostileNamesAreHarmless) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE(seed);
    const Profile a = test::random_profile(seed, 100);
    const Profile b = test::random_profile(seed + 1000, 100);
    for (const size_t width : {80, 200}) {
      ReportOptions options;
      options.by = By::comm;
      options.width = width;
      test::expect_harmless(diff_text(a, "a\x1b[2J", b, "b", options), width);
      EXPECT_FALSE(json::parse(diff_json(a, "a", b, "b", options)).empty());
    }
  }
}

}  // namespace
}  // namespace pkprof
