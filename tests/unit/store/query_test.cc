// SPDX-License-Identifier: Apache-2.0
// Which cuts a query is of, and which processes.
#include "store/store_fixture.h"

namespace pkprof {
namespace {

using test::cut_of;
using test::second_ns;
using test::served_name;
using test::StoreTest;
using test::times_by;
using test::web_machine;

class StoreQueryTest : public StoreTest {
 protected:
  StoreQueryTest() : store_(made()) {
    for (uint64_t i = 0; i < 6; ++i) {
      Cut cut = cut_of(i % 2 ? "web1" : "web0", (100 + i) * second_ns, web_machine());
      cut.labels = {{"env", i < 3 ? "prod" : "test"}, {"rack", std::to_string(i % 2)}};
      if (!store_->put(cut).value()) throw std::runtime_error("put");
    }
  }

  // CPU time of what is found, in seconds; 0 where no cut is.
  uint64_t seconds_of(const StoreQuery& query) {
    const auto found = store_->query(query);
    if (!found) return 0;
    uint64_t ns = 0;
    for (const Profile::Sample& sample : found->samples()) ns += sample.value.ns;
    EXPECT_EQ(ns, found->cpu_ns()) << "the ledger sums";
    return ns / second_ns;
  }

  std::map<std::string, uint64_t> served_of(const ProcessFilter& filter) {
    const Profile found = store_->query({.hosts = {"web0"}, .served = filter}).value();
    return times_by(found, served_name);
  }

  const std::unique_ptr<Store> store_;
};

TEST_F(StoreQueryTest, CutsByTheirStart) {
  EXPECT_EQ(seconds_of({}), 12U);
  EXPECT_EQ(seconds_of({.since_unix_ns = 102 * second_ns}), 8U);
  EXPECT_EQ(seconds_of({.since_unix_ns = 102 * second_ns + 1}), 6U);
  EXPECT_EQ(seconds_of({.until_unix_ns = 102 * second_ns}), 4U) << "the end is not in it";
  EXPECT_EQ(seconds_of({.since_unix_ns = 101 * second_ns, .until_unix_ns = 102 * second_ns}), 2U);
  const auto none = store_->query({.since_unix_ns = 200 * second_ns});
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message.find("no cut"), std::string::npos);
}

TEST_F(StoreQueryTest, CutsByHostAndLabel) {
  EXPECT_EQ(seconds_of({.hosts = {"web1"}}), 6U);
  EXPECT_EQ(seconds_of({.hosts = {"web1", "web0", "none"}}), 12U);
  EXPECT_EQ(seconds_of({.hosts = {"none"}}), 0U);
  EXPECT_EQ(seconds_of({.labels = {{"env", "prod"}}}), 6U);
  EXPECT_EQ(seconds_of({.labels = {{"env", "prod"}, {"rack", "0"}}}), 4U) << "all of them";
  EXPECT_EQ(seconds_of({.labels = {{"env", ""}}}), 0U);
}

TEST_F(StoreQueryTest, WhatIsNoPartOfSqlIsAValue) {
  for (const char* hostile :
       {"web1' OR '1'='1", "'; DROP TABLE cuts; --", "%", "*", "\"", "\xff"}) {
    EXPECT_EQ(seconds_of({.hosts = {hostile}}), 0U) << hostile;
    EXPECT_EQ(seconds_of({.labels = {{hostile, hostile}}}), 0U) << hostile;
    const auto found = store_->query({.served = {.comm = hostile}});
    ASSERT_TRUE(found) << hostile;
    EXPECT_FALSE(times_by(*found, served_name).contains("web1/nginx:812")) << hostile;
  }
  EXPECT_EQ(seconds_of({}), 12U);
}

TEST_F(StoreQueryTest, TheRestIsOther) {
  const std::string id(64, 'a');
  for (const ProcessFilter& filter :
       {ProcessFilter{.comm = "nginx"}, ProcessFilter{.exe = "/usr/sbin/nginx"},
        ProcessFilter{.container = "front"}, ProcessFilter{.container = id},
        ProcessFilter{.image = "nginx:1.27"}, ProcessFilter{.unit = "web.service"},
        ProcessFilter{.container = "front", .comm = "nginx"}}) {
    const auto times = served_of(filter);
    EXPECT_EQ(times.size(), 3U);
    EXPECT_EQ(times.at("nginx:812"), 3 * 500'000'001U);
    EXPECT_EQ(times.at("OTHER"), 3 * 499'999'999U);
    EXPECT_EQ(times.at("IDLE"), 3 * second_ns);
  }
  EXPECT_EQ(served_of({.container = "front", .comm = "batch"}).at("OTHER"), 3 * second_ns)
      << "both must be true";
}

TEST_F(StoreQueryTest, WhoRanForAWantedProcessKeepsItsName) {
  const Profile found = store_->query({.hosts = {"web0"}, .served = {.comm = "nginx"}}).value();
  const auto flows = times_by(found, [](const Profile& p, const Profile::Sample& sample) {
    return p.labels()[sample.key.ran_on].name() + ">" + p.labels()[sample.key.served].name();
  });
  EXPECT_EQ(flows.at("batch:900>nginx:812"), 3 * 300'000'001U);
  EXPECT_EQ(flows.at("OTHER>OTHER"), 3 * 499'999'999U);
  for (const Profile::Sample& sample : found.samples())
    EXPECT_TRUE(found.labels()[sample.key.served].kind != LabelKind::other ||
                found.frames_of(sample.key.stack).empty());
}

TEST_F(StoreQueryTest, InfoHasEachHost) {
  const StoreInfo info = store_->info().value();
  ASSERT_EQ(info.hosts.size(), 2U);
  EXPECT_EQ(info.cuts, 6U);
  EXPECT_GT(info.bytes, 0U);
  EXPECT_EQ(info.hosts[1].name, "web1");
  EXPECT_EQ(info.hosts[1].cuts, 3U);
  EXPECT_EQ(info.hosts[1].first_unix_ns, 101 * second_ns);
  EXPECT_EQ(info.hosts[1].last_unix_ns, 106 * second_ns);
  EXPECT_EQ(info.hosts[1].cpu_ns, 6 * second_ns);
}

TEST_F(StoreQueryTest, ReadersNeedNoRightToWrite) {
  const auto reader = opened(Store::Mode::read);
  EXPECT_TRUE(reader->query({.served = {.comm = "nginx"}}));
  EXPECT_FALSE(reader->put(cut_of("web9", second_ns, web_machine())));
  EXPECT_EQ(reader->info()->cuts, 6U);
}

}  // namespace
}  // namespace pkprof
