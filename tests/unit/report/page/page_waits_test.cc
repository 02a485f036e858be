// SPDX-License-Identifier: Apache-2.0
// What the page knows of waiting: what `report --view waits` says, where threads waited, and who
// woke them there. How it looks is web/tests.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "model/merge.h"
#include "page_fixture.h"
#include "report/page/page.h"
#include "report/page/page_stacks.h"
#include "report/waits/waits.h"
#include "report_fixture.h"
#include "waits_fixture.h"

namespace pkprof {
namespace {

using nlohmann::json;
using test::page_data_of;
using test::waits_machine;

TEST(PageWaits, HaveTheReportsRows) {
  const Profile profile = waits_machine();
  const json waits = page_data_of(profile)["waits"];
  EXPECT_FALSE(waits["by"].contains("client"));
  for (const By by : {By::pid, By::comm, By::cgroup}) {
    const Waits wanted = waits_of(profile, by, {});
    const json& table = waits["by"][std::string(to_string(by))];
    ASSERT_EQ(table["rows"].size(), wanted.rows.size());
    for (size_t i = 0; i < wanted.rows.size(); ++i) {
      const json& row = table["rows"][i];
      EXPECT_EQ(row["cpu"], wanted.rows[i].cpu_ns);
      EXPECT_EQ(row["wait"], wanted.rows[i].wait_ns);
      EXPECT_EQ(row["idle"], wanted.rows[i].idle_ns);
      std::map<std::string, uint64_t> kinds;
      for (const json& kind : row["kinds"]) kinds[waits["kinds"][kind[0].get<size_t>()]] = kind[1];
      EXPECT_EQ(kinds, wanted.rows[i].kinds);
      EXPECT_EQ(row["reasons"].size(), wanted.rows[i].reasons.size());
    }
  }
}

TEST(PageWaits, SayWhatOneWaitedFor) {
  const json waits = page_data_of(waits_machine())["waits"];
  const json& table = waits["by"]["pid"];
  const json& worker = table["rows"][0];
  EXPECT_EQ(table["groups"][worker["who"].get<size_t>()]["name"], "worker[77]");
  const json& reply = worker["reasons"][0];
  EXPECT_EQ(waits["kinds"][reply[0].get<size_t>()], "reply");
  EXPECT_EQ(table["groups"][reply[1].get<size_t>()]["name"], "postgres[812]");
  EXPECT_EQ(reply[2], 2'100'000'000U);
  EXPECT_EQ(reply[3], 420);
  EXPECT_EQ(waits["sentences"][reply[4].get<size_t>()], "for postgres[812]");
  EXPECT_EQ(reply[5], 2'000'000'000U);
  EXPECT_EQ(table["groups"][reply[6][0].get<size_t>()]["name"], "the kernel");
  EXPECT_EQ(worker["reasons"][1].size(), 5U) << "nobody had woken who woke it";
}

// By the names in the page: who waited, where, who woke it and where that was.
TEST(PageWaits, HaveTheStacksOfBothEnds) {
  const json data = page_data_of(waits_machine());
  const json& waits = data["waits"];
  const auto path = [&](size_t node) {
    std::string text;
    while (node) {
      const size_t function = waits["nodes"]["function"][node];
      text.insert(0, data["stacks"]["functions"]["name"][function].get<std::string>() + ";");
      node -= waits["nodes"]["up"][node].get<size_t>();
    }
    return text;
  };
  std::map<std::string, uint64_t> had;
  const json& samples = waits["samples"];
  for (size_t i = 0; i < samples["ns"].size(); ++i) {
    const int waker = samples["waker"][i];
    const json& labels = data["labels"];
    had[labels[samples["who"][i].get<size_t>()]["name"].get<std::string>() + " " +
        path(samples["node"][i]) + " " +
        (waker < 0 ? "" : labels[static_cast<size_t>(waker)]["name"].get<std::string>()) + " " +
        path(samples["waker_node"][i])] += samples["ns"][i].get<uint64_t>();
  }
  EXPECT_EQ(had["worker:77 main;wait_for_reply;wait:reply;schedule; postgres:812 "
                "main;send_answer;try_to_wake_up;"],
            2'000'000'000U);
  EXPECT_EQ(had["worker:77 main;wait_for_runnable;wait:runnable;schedule;  "], 820'000'000U);
  EXPECT_EQ(had["postgres:812 main;wait_for_disk;wait:disk;schedule; KERNEL "
                "main;bio_endio;try_to_wake_up;"],
            1'100'000'000U);
}

TEST(PageWaits, SummedUpLoseNothing) {
  const Profile waits = of_resource(waits_machine(), Resource::wait);
  std::map<LabelId, uint64_t> wanted;
  std::map<LabelId, uint64_t> had;
  for (const PageSample& sample : page_stacks(waits).samples) wanted[sample.waker] += sample.ns;
  const PageStacks few = page_stacks(waits, 4);
  for (const PageSample& sample : few.samples) had[sample.waker] += sample.ns;
  EXPECT_GT(few.small_ns, 0U);
  EXPECT_EQ(had, wanted);
}

TEST(PageWaits, AreNoCpuTime) {
  const Profile profile = waits_machine();
  json with = page_data_of(profile);
  json without = page_data_of(of_resource(profile, Resource::cpu));
  EXPECT_FALSE(without.contains("waits"));
  with.erase("waits");
  EXPECT_EQ(with, without);
  EXPECT_FALSE(page_data_of(test::small_machine()).contains("waits"));
}

TEST(PageWaits, AloneAreWhatIsAskedFor) {
  const Profile profile = waits_machine();
  const json data = page_data_of(of_resource(profile, Resource::wait));
  EXPECT_EQ(data["waits"]["by"]["pid"]["rows"].size(), 33U);
  for (const json& row : data["waits"]["by"]["pid"]["rows"]) EXPECT_EQ(row["cpu"], 0U);
}

TEST(PageWaits, HaveNoNameAsMarkup) {
  const auto html = page_html(waits_machine(), "x");
  ASSERT_TRUE(html);
  EXPECT_EQ(html->find("<img"), std::string::npos);
  EXPECT_EQ(html->find("<b>kind"), std::string::npos);
  EXPECT_EQ(html->find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace pkprof
