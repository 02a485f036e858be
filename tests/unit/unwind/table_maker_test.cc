// SPDX-License-Identifier: Apache-2.0
// Which files have tables, where there is no room for all.
#include "unwind/table_maker.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>
#include <thread>

#include "pkprof/user_abi.h"
#include "symbol/maps.h"

namespace pkprof {
namespace {

using namespace std::chrono_literals;

// The kernel side's tables, as far as their maker knows of them.
class TableMakerTest : public ::testing::Test {
 protected:
  TableMaker::Sink sink() {
    return {.put =
                [this](uint64_t file, const UnwindTable& table) {
                  const std::scoped_lock lock(mutex_);
                  bytes_[file] = table.blocks() * sizeof(pk_unwind_block);
                  return Result<>();
                },
            .remove =
                [this](uint64_t file) {
                  const std::scoped_lock lock(mutex_);
                  bytes_.erase(file);
                },
            .used =
                [this](uint64_t file) {
                  const std::scoped_lock lock(mutex_);
                  return used_.contains(file) ? used_[file] : 0;
                }};
  }
  // Libraries of this program, numbered from 100 on.
  static std::vector<CodeFile> files() {
    std::ifstream in("/proc/self/maps");
    std::stringstream text;
    text << in.rdbuf();
    std::vector<CodeFile> files;
    for (const UserMap& map : parse_maps(text.str()).executable)
      if (map.file.find(".so") != std::string::npos)
        files.push_back({100 + files.size(), static_cast<uint32_t>(getpid()), map.start, map.end,
                         map.inode, map.file});
    return files;
  }
  void make(TableMaker& maker, const CodeFile& file) {
    const TableMaker::Counts before = maker.counts();
    maker.want(file);
    for (int i = 0; i < 1000; ++i) {
      const TableMaker::Counts now = maker.counts();
      if (now.files + now.removed > before.files + before.removed && has(file)) return;
      std::this_thread::sleep_for(10ms);
    }
    FAIL() << "no table of " << file.path;
  }
  bool has(const CodeFile& file) {
    const std::scoped_lock lock(mutex_);
    return bytes_.contains(file.number);
  }

  std::mutex mutex_;
  std::map<uint64_t, uint64_t> bytes_;  // of tables, by file
  std::map<uint64_t, uint64_t> used_;
};

TEST_F(TableMakerTest, ThoseSearchedLeastLatelyMakeRoom) {
  const std::vector<CodeFile> all = files();
  ASSERT_GE(all.size(), 3U);
  uint64_t both = 0;
  {
    TableMaker maker(sink(), 64 << 20);
    for (size_t i = 0; i < 3; ++i) make(maker, all[i]);
    both = maker.counts().bytes - 1;  // one byte short of all three
  }
  bytes_.clear();
  TableMaker maker(sink(), both);
  make(maker, all[0]);
  make(maker, all[1]);
  used_[all[0].number] = UINT64_MAX - 1;  // later than the second was made
  make(maker, all[2]);
  EXPECT_TRUE(has(all[0]));
  EXPECT_FALSE(has(all[1]));
  EXPECT_EQ(maker.counts().removed, 1U);
  EXPECT_EQ(maker.counts().files, 2U);
  uint64_t sum = 0;
  for (const auto& [file, bytes] : bytes_) sum += bytes;
  EXPECT_EQ(maker.counts().bytes, sum);

  // What made room may come again.
  used_[all[2].number] = UINT64_MAX;
  make(maker, all[1]);
  EXPECT_FALSE(has(all[0]));
}

}  // namespace
}  // namespace pkprof
