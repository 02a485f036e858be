// SPDX-License-Identifier: Apache-2.0
// Memory that is taken, against what the kernel counts of control groups; memory that is reclaimed,
// against what it counts of that.
#include <unistd.h>

#include <csignal>
#include <optional>
#include <thread>

#include "memory_group.h"
#include "testdisk.h"
#include "usage_scenario.h"

namespace pkprof::accuracy {
namespace {

using testnet::Argv;
using namespace std::chrono_literals;

class PressureTest : public UsageTest {
 protected:
  void SetUp() override {
    UsageTest::SetUp();
    if (IsSkipped()) return;
    if (const auto group = MemoryGroup::create(); !group) GTEST_SKIP() << group.error().message;
    auto disk = testnet::Disk::create({.megabytes = 1024, .direct = true});
    if (!disk) GTEST_SKIP() << disk.error().message;
    disk_.emplace(std::move(*disk));
  }
  // Its members' memory is their own alone.
  int start_in(const MemoryGroup& group, Argv argv) {
    argv.insert(argv.begin(), "pk_memory");
    const int pid = stage_.start(nullptr, argv);
    group.add(pid);
    return pid;
  }
  static std::vector<std::string> bytes_of(const char* way) { return {"ways", way, "bytes"}; }

  // How much more of these pages there were at the end, in bytes.
  [[nodiscard]] double counted(const std::string& wanted) const {
    double bytes = 0;
    for (const auto& [file, sign] : {std::pair{"begin", -1.0}, {"end", 1.0}}) {
      std::istringstream in(read(file));
      double pages = 0;
      for (std::string name; in >> name >> pages;)
        if (name == wanted) bytes += sign * pages * static_cast<double>(sysconf(_SC_PAGESIZE));
    }
    return bytes;
  }

  std::optional<testnet::Disk> disk_;
};

// Programs' memory and page cache at 3:1, each in a control group of its own.
TEST_F(PressureTest, TakenByTwoAtThreeToOne) {
  const MemoryGroup more = live::must(MemoryGroup::create());
  const MemoryGroup less = live::must(MemoryGroup::create());
  const int idle = stage_.start(nullptr, {"pk_hog"});
  // Slow enough for one page of sixteen to be kept.
  const auto fill = [&](const MemoryGroup& group, const char* megabytes, const char* rate) {
    return start_in(group, {"fill", "--file", disk_->path(megabytes), "--megabytes", megabytes,
                            "--rate", rate});
  };
  const int first = fill(more, "240", "90"), second = fill(less, "80", "30");
  struct Counted {
    double anonymous, page_cache;
  };
  const auto count = [](const MemoryGroup& group) {
    return Counted{static_cast<double>(group.anonymous()), static_cast<double>(group.page_cache())};
  };
  const Counted more_before = count(more), less_before = count(less);
  const Json memory = record(
      "memory",
      "kill -USR1 $1 $2; for i in {1..200}; do sleep 0.1; "
      "[ $(stat -c %s $3) = 251658240 ] && [ $(stat -c %s $4) = 83886080 ] "
      "&& break; done",
      {std::to_string(first), std::to_string(second), disk_->path("240"), disk_->path("80")});
  const auto expect_of = [&](int pid, const Counted& before, const Counted& after) {
    expect_near(of_pid(memory, pid, bytes_of("anonymous")), after.anonymous - before.anonymous, 2,
                "anonymous");
    expect_near(of_pid(memory, pid, bytes_of("page cache")), after.page_cache - before.page_cache,
                2, "page cache");
  };
  expect_of(first, more_before, count(more));
  expect_of(second, less_before, count(less));
  EXPECT_LE(of_pid(memory, idle, {"bytes"}), 0.01 * of_pid(memory, second, {"bytes"}));
}

// A file that is larger than its reader's control group has room for. Of the bystanders one is
// busy, with a file that has room.
TEST_F(PressureTest, ReclaimedInAControlGroup) {
  const MemoryGroup full = live::must(MemoryGroup::create(uint64_t{64} << 20));
  const MemoryGroup roomy = live::must(MemoryGroup::create());
  const int idle = stage_.start(nullptr, {"pk_hog"});
  const int busy = start_in(
      roomy, {"read", "--file", disk_->path("small"), "--megabytes", "16", "--rate", "400"});
  const int reader = start_in(
      full, {"read", "--file", disk_->path("large"), "--megabytes", "512", "--rate", "200"});
  std::this_thread::sleep_for(1s);
  kill(reader, SIGSTOP);  // it reads between the two counts alone
  const Json memory = record("memory",
                             "cat /proc/vmstat >begin; kill -CONT $1; sleep 3; kill -STOP $1; "
                             "sleep 0.2; cat /proc/vmstat >end",
                             {std::to_string(reader)});
  kill(reader, SIGCONT);
  const double by_kswapd = counted("pgsteal_kswapd");
  std::printf("  by kswapd %.0f\n", by_kswapd);
  const double all = number_at(memory["total"], bytes_of("reclaimed"));
  expect_near(all, counted("pgsteal_anon") + counted("pgsteal_file"), 5, "reclaimed");
  EXPECT_GE(of_pid(memory, reader, bytes_of("reclaimed")), 0.95 * (all - by_kswapd));
  for (const int bystander : {idle, busy})
    EXPECT_LE(of_pid(memory, bystander, bytes_of("reclaimed")), 0.01 * all);
}

}  // namespace
}  // namespace pkprof::accuracy
