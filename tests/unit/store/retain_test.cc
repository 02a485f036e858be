// SPDX-License-Identifier: Apache-2.0
// Deleting: whole cuts, the oldest first, and what nothing needs any more.
#include <sstream>

#include "store/store_fixture.h"

namespace pkprof {
namespace {

using test::cut_of;
using test::second_ns;
using test::served_name;
using test::StoreTest;
using test::times_by;
using test::web_machine;

class StoreRetain : public StoreTest {
 protected:
  StoreRetain() : store_(made()) {}

  void put(uint64_t start, const Profile& profile) {
    ASSERT_TRUE(store_->put(cut_of("web1", start * second_ns, profile)).value());
  }

  // Rows of the tables that cuts share.
  std::string shared_rows() {
    return asked_of_sqlite3(
        "select (select count(*) from strings), (select count(*) from mappings), (select count(*) "
        "from frames), (select count(*) from stacks), (select count(*) from labels), (select "
        "count(*) from clients), (select count(*) from wakeups);");
  }

  const std::unique_ptr<Store> store_;
};

TEST_F(StoreRetain, ByAge) {
  for (uint64_t i = 1; i <= 5; ++i) put(i, web_machine());
  EXPECT_EQ(store_->retain({.oldest_unix_ns = 4 * second_ns}), 3U);
  EXPECT_EQ(store_->info()->hosts[0].first_unix_ns, 4 * second_ns) << "the oldest went";
  EXPECT_EQ(store_->query({})->cpu_ns(), 4 * second_ns);
  EXPECT_EQ(store_->retain({.oldest_unix_ns = 4 * second_ns}), 0U);
}

TEST_F(StoreRetain, WhatNoCutNeedsGoesAndTheRestStays) {
  if (asked_of_sqlite3("select 1;") != "1\n") GTEST_SKIP() << "there is no sqlite3 command";
  const Profile kept = test::storable_profile(4, 40);
  put(9, kept);
  const std::string alone = shared_rows();
  const auto before = times_by(store_->query({}).value(), served_name);
  for (uint64_t i = 1; i < 6; ++i) put(i, test::storable_profile(100 + 2 * i, 40));
  EXPECT_NE(shared_rows(), alone);
  ASSERT_EQ(store_->retain({.oldest_unix_ns = 9 * second_ns}), 5U);
  // What the profile has in its tables and refers to nowhere goes, too.
  const auto numbers = [](const std::string& row) {
    std::vector<uint64_t> counts;
    std::istringstream in(row);
    for (std::string count; std::getline(in, count, '|');) counts.push_back(std::stoull(count));
    return counts;
  };
  const auto left = numbers(shared_rows());
  const auto then = numbers(alone);
  ASSERT_EQ(left.size(), then.size());
  for (size_t i = 0; i < left.size(); ++i) EXPECT_LE(left[i], then[i]) << i;
  const Profile found = store_->query({}).value();
  EXPECT_EQ(times_by(found, served_name), before);
  EXPECT_EQ(asked_of_sqlite3("pragma integrity_check;"), "ok\n");
  ASSERT_EQ(store_->retain({.oldest_unix_ns = 10 * second_ns}), 1U);
  EXPECT_EQ(shared_rows(), "0|0|0|0|0|0|0\n");
}

TEST_F(StoreRetain, BySizeTheOldestFirstAndTheSpaceIsGivenBack) {
  for (uint64_t i = 1; i <= 20; ++i) put(i, test::storable_profile(i, 200));
  const uint64_t bytes = store_->info()->bytes;
  const uint64_t file = std::filesystem::file_size(path());
  const auto deleted = store_->retain({.max_bytes = bytes / 2});
  ASSERT_TRUE(deleted);
  EXPECT_GT(*deleted, 5U);
  EXPECT_LT(*deleted, 18U) << "no more than was asked for";
  const StoreInfo info = store_->info().value();
  EXPECT_LE(info.bytes, bytes / 2);
  EXPECT_EQ(info.hosts[0].first_unix_ns, (*deleted + 1) * second_ns);
  EXPECT_LT(std::filesystem::file_size(path()), std::max(file, bytes) * 6 / 10);
}

TEST_F(StoreRetain, NothingFitsIntoNothing) {
  for (uint64_t i = 1; i <= 3; ++i) put(i, web_machine());
  EXPECT_EQ(store_->retain({.max_bytes = 1}), 3U);
  EXPECT_EQ(store_->info()->cuts, 0U);
  EXPECT_FALSE(store_->query({}));
  put(4, web_machine());
  EXPECT_EQ(store_->query({})->cpu_ns(), 2 * second_ns) << "it is a store still";
}

}  // namespace
}  // namespace pkprof
