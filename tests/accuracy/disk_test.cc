// SPDX-License-Identifier: Apache-2.0
// Files: what is written through the page cache is brought to the disk by kernel threads, later.
// All of their work is for those who wrote.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <filesystem>
#include <optional>
#include <set>
#include <thread>

#include "table.h"
#include "testdisk.h"

namespace pkprof::accuracy {
namespace {

using live::Flow;
using live::must;
using testnet::Argv;

// What disks and file systems have kernel threads and softirqs do.
bool is_disk_work(const Flow& f) {
  for (const char* begins :
       {"work:wb_workfn", "work:loop_", "work:ext4_", "work:blk_", "work:xfs_", "work:xlog_",
        "work:iomap_", "work:btrfs_", "work:kcryptd_", "work:dm_", "kthread:jbd2", "kthread:btrfs",
        "kthread:dmcrypt_write", "softirq:BLOCK"}) {
    if (f.source.starts_with(begins)) return true;
  }
  return false;
}

// Has the flusher write all that is dirty, again and again. Its threads work for those who wrote.
class Syncing {
 public:
  explicit Syncing(int fd)
      : thread_([fd](const std::stop_token& end) {
          while (!end.stop_requested()) {
            syncfs(fd);
            std::this_thread::sleep_for(std::chrono::milliseconds(200));
          }
        }) {}

 private:
  std::jthread thread_;
};

// The interrupts of the device that a file lies on, by name; none if it is no disk with some.
std::set<std::string> interrupts_of_disk(int fd) {
  namespace fs = std::filesystem;
  struct stat info{};
  if (fd < 0 || fstat(fd, &info)) return {};
  std::error_code none;
  fs::path device = fs::canonical("/sys/dev/block/" + std::to_string(major(info.st_dev)) + ":" +
                                      std::to_string(minor(info.st_dev)),
                                  none);
  // The disk belongs to a controller, which has the interrupts.
  while (device.has_relative_path() && !fs::exists(device / "msi_irqs"))
    device = device.parent_path();
  std::set<std::string> names;
  for (const fs::directory_entry& irq : fs::directory_iterator(device / "msi_irqs", none))
    for (const fs::directory_entry& name :
         fs::directory_iterator("/proc/irq" / irq.path().filename(), none))
      if (name.is_directory()) names.insert("irq:" + name.path().filename().string());
  return names;
}

class DiskTest : public testing::Test {
 protected:
  void SetUp() override {
    live::skip_unless_able();
    if (IsSkipped()) return;
    hog_ = stage_.start_hog(live::last_cpu());
  }
  void have_disk(const testnet::Disk::Options& options) {
    auto disk = testnet::Disk::create(options);
    if (!disk) GTEST_SKIP() << disk.error().message;
    disk_.emplace(std::move(*disk));
  }
  int use(const char* name, const Argv& more) { return use_file(disk_->path(name), more); }
  int use_file(const std::string& file, const Argv& more) {
    Argv argv = {"pk_disk", "--file", file};
    argv.insert(argv.end(), more.begin(), more.end());
    return stage_.start(nullptr, argv, 0);
  }

  // The ring's workers would leave an emulated machine to nobody else.
  int use_uring(Argv more) {
    Argv argv = {"pk_uring", "--file", disk_->path("file"), "--rate", live::in_guest() ? "8" : "0"};
    argv.insert(argv.end(), more.begin(), more.end());
    return stage_.start(nullptr, argv, 0);
  }

  live::Turn turn_;
  live::Stage stage_;
  std::optional<testnet::Disk> disk_;
  int hog_ = 0;
};

TEST_F(DiskTest, WritingBack) {
  have_disk({});
  if (IsSkipped()) return;
  const int writer = use("file", {"--sync-mb", "32"});
  measure("write-back, ext4 on loop", {{writer}, hog_, {}, is_disk_work}, {95, 5});
}

TEST_F(DiskTest, TwoWritersAtThreeToOne) {
  have_disk({});
  if (IsSkipped()) return;
  const int one = use("one", {"--sync-mb", "12", "--rate", "180"});
  const int other = use("other", {"--sync-mb", "4", "--rate", "60"});
  const Observed seen = measure("write-back of two, 3:1", {{one, other}, hog_, {}, is_disk_work},
                                {95, 5}, {.seconds = 14, .min_samples = 1500});
  expect_ratio(seen.report, is_disk_work, one, other, stage_.ratio(one, other, "bytes"));
}

// Both write to the same file, each to its own part.
TEST_F(DiskTest, TwoWritersToOneFile) {
  have_disk({});
  if (IsSkipped()) return;
  const int one = use("file", {"--rate", "150", "--chunk-kb", "64"});
  const int other = use("file", {"--rate", "50", "--chunk-kb", "64", "--from-mb", "64"});
  const Syncing syncing(disk_->fd());
  const Observed seen = measure("write-back of one file", {{one, other}, hog_, {}, is_disk_work},
                                {95, 5}, {.seconds = 7, .min_samples = 900});
  expect_ratio(seen.report, is_disk_work, one, other, stage_.ratio(one, other, "bytes"));
}

TEST_F(DiskTest, Mapped) {
  have_disk({});
  if (IsSkipped()) return;
  const int writer = use("file", {"--mode", "map", "--rate", "200"});
  const Syncing syncing(disk_->fd());
  measure("write-back of a mapping", {{writer}, hog_, {}, is_disk_work}, {95, 5}, {.seconds = 7});
}

// Most of what is read was asked for by the kernel, ahead of the process.
TEST_F(DiskTest, ReadAhead) {
  have_disk({.direct = true});
  if (IsSkipped()) return;
  const int one = use("one", {"--mode", "ahead", "--rate", "450", "--chunk-kb", "64"});
  const int other = use("other", {"--mode", "ahead", "--rate", "150", "--chunk-kb", "64"});
  const Observed seen = measure("read-ahead, 3:1", {{one, other}, hog_, {}, is_disk_work}, {95, 5},
                                {.seconds = 9, .min_samples = 250});
  expect_ratio(seen.report, is_disk_work, one, other, stage_.ratio(one, other, "bytes"));
}

TEST_F(DiskTest, SmallFilesAndTheirJournal) {
  have_disk({});
  if (IsSkipped()) return;
  const int writer = use("small", {"--mode", "create", "--sync-mb", "1"});
  measure("small files, synced", {{writer}, hog_, {}, is_disk_work}, {95, 5});
}

// Threads that keep the same time are at the disk together, in an order that lasts.
TEST_F(DiskTest, PastThePageCache) {
  have_disk({.direct = true});
  if (IsSkipped()) return;
  const int one =
      use("one", {"--mode", "direct", "--rate", "100", "--threads", "3", "--at-random"});
  const int other = use("other", {"--mode", "direct", "--rate", "100", "--at-random"});
  const Observed seen = measure("O_DIRECT writing, 3:1", {{one, other}, hog_, {}, is_disk_work},
                                {95, 5}, {.seconds = 14, .min_samples = 1500});
  expect_ratio(seen.report, is_disk_work, one, other, stage_.ratio(one, other, "bytes"));
}

// Requests of many pieces fill the disk's queue; what waits for room a kworker sends.
TEST_F(DiskTest, FullQueue) {
  have_disk({.direct = true});
  if (IsSkipped()) return;
  const int one = use("one", {"--mode", "direct", "--rate", "100", "--threads", "3", "--scattered",
                              "--chunk-kb", "1024"});
  const int other =
      use("other", {"--mode", "direct", "--rate", "100", "--scattered", "--chunk-kb", "1024"});
  const Observed seen =
      measure("O_DIRECT, many pieces, 3:1", {{one, other}, hog_, {}, is_disk_work}, {95, 5},
              {.seconds = 12, .min_samples = 800});
  expect_ratio(seen.report, is_disk_work, one, other, stage_.ratio(one, other, "bytes"));
}

TEST_F(DiskTest, ReadingPastThePageCache) {
  have_disk({.direct = true});
  if (IsSkipped()) return;
  const int reader = use("file", {"--mode", "read"});
  measure("O_DIRECT reading", {{reader}, hog_, {}, is_disk_work}, {95, 5}, {.seconds = 3.5});
}

// Hooks on disk requests are on for a small part of the time then. On an emulated CPU they cost ten
// times as much, and a turn that is shorter than a request takes sees no whole one.
TEST_F(DiskTest, ManyRequestsAtABudgetOfOnePercent) {
  have_disk({.direct = true});
  if (IsSkipped()) return;
  const int one = use("one", {"--mode", "read", "--chunk-kb", "4", "--threads", "3"});
  const int other = use("other", {"--mode", "read", "--chunk-kb", "4"});
  const Observed seen = measure(
      "O_DIRECT reading, 3:1, budget of 1 %", {{one, other}, hog_, {}, is_disk_work}, {95, 5},
      {.seconds = 20, .min_samples = 250, .budget = live::in_guest() ? "10" : "1"});
  expect_ratio(seen.report, is_disk_work, one, other, stage_.ratio(one, other, "bytes"));
}

// Each write is followed by a flush of the disk's cache. Flushes that meet are made one, and
// threads that keep the same time would meet each other's alone: less work than three times
// another's.
TEST_F(DiskTest, Flushes) {
  have_disk({.direct = true});
  if (IsSkipped()) return;
  const Argv how = {"--mode", "direct", "--synced", "--at-random", "--chunk-kb",
                    "4",      "--rate", "0.4",      "--megabytes", "4"};
  Argv by_three = how;
  by_three.insert(by_three.end(), {"--threads", "3"});
  const int one = use("one", by_three);
  const int other = use("other", how);
  const Observed seen =
      measure("O_DIRECT writing, flushed, 3:1", {{one, other}, hog_, {}, is_disk_work}, {95, 5},
              {.seconds = 7, .min_samples = 300});
  expect_ratio(seen.report, is_disk_work, one, other, stage_.ratio(one, other, "bytes"));
}

// A disk that is no file on another: requests end in its controller's interrupts.
TEST_F(DiskTest, InterruptsOfADisk) {
  const Fd file(open("/var/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  const Fd another(open("/var/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  const std::set<std::string> interrupts = interrupts_of_disk(file.get());
  if (interrupts.empty()) GTEST_SKIP() << "/var/tmp is on no disk with interrupts of its own";
  const auto read = [&](const Fd& fd, const char* threads) {
    return use_file("/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(fd.get()),
                    {"--mode", "read", "--chunk-kb", "4", "--megabytes", "4", "--rate", "6",
                     "--threads", threads});
  };
  const int one = read(file, "3");
  const int other = read(another, "1");
  // Others on the machine use the disk, too.
  const auto counts = [interrupts, parties = std::set<int>{one, other, hog_}](const Flow& f) {
    return interrupts.contains(f.source) && (f.served < 0 || parties.contains(f.served));
  };
  const Observed seen = measure("interrupts of a disk, 3:1", {{one, other}, hog_, {}, counts},
                                {95, 5}, {.seconds = 4, .min_samples = 50, .frequency_hz = 1997});
  expect_ratio(seen.report, counts, one, other, stage_.ratio(one, other, "bytes"), Time::measured);
}

TEST_F(DiskTest, Xfs) {
  have_disk({.file_system = "xfs"});
  if (IsSkipped()) return;
  const int writer = use("file", {"--sync-mb", "32"});
  measure("write-back, xfs on loop", {{writer}, hog_, {}, is_disk_work}, {95, 5});
}

TEST_F(DiskTest, Btrfs) {
  have_disk({.file_system = "btrfs"});
  if (IsSkipped()) return;
  const int writer = use("file", {"--sync-mb", "32"});
  measure("write-back, btrfs on loop", {{writer}, hog_, {}, is_disk_work}, {95, 5}, {.seconds = 3});
}

// Every piece that is written is split in two, and comes back from two places.
TEST_F(DiskTest, Striped) {
  have_disk({.mapper = testnet::Disk::Options::Mapper::striped});
  if (IsSkipped()) return;
  const int writer = use("file", {"--sync-mb", "32"});
  measure("write-back, device mapper: striped", {{writer}, hog_, {}, is_disk_work}, {95, 5});
}

// Two writers to a device that enciphers: by work queues, and a thread that sorts what they made.
TEST_F(DiskTest, Enciphered) {
  have_disk({.mapper = testnet::Disk::Options::Mapper::crypt});
  if (IsSkipped()) return;
  // An emulated CPU takes long to encipher: what it has not done when the recording begins would be
  // most of what it does.
  const bool guest = live::in_guest();
  const int one = use("one", {"--sync-mb", guest ? "3" : "12", "--rate", guest ? "6" : "90"});
  const int other = use("other", {"--sync-mb", guest ? "1" : "4", "--rate", guest ? "2" : "30"});
  const Observed seen =
      measure("write-back, device mapper: crypt, 3:1", {{one, other}, hog_, {}, is_disk_work},
              {95, 5}, {.seconds = 7, .min_samples = 1500});
  expect_ratio(seen.report, is_disk_work, one, other, stage_.ratio(one, other, "bytes"));
}

TEST_F(DiskTest, ReadingWhatIsEnciphered) {
  have_disk({.direct = true, .mapper = testnet::Disk::Options::Mapper::crypt});
  if (IsSkipped()) return;
  const int reader = use("file", {"--mode", "read"});
  measure("O_DIRECT reading, device mapper: crypt", {{reader}, hog_, {}, is_disk_work}, {95, 5});
}

// The ring's workers make the pages dirty, and wait for the disk.
TEST_F(DiskTest, IoUring) {
  have_disk({});
  if (IsSkipped()) return;
  const int writer = use_uring({});
  measure("write-back for io_uring", {{writer}, hog_, {}, is_disk_work}, {95, 5});
}

TEST_F(DiskTest, IoUringPolled) {
  have_disk({});
  if (IsSkipped()) return;
  const int writer = use_uring({"--polled"});
  measure("write-back for io_uring, polled", {{writer}, hog_, {}, is_disk_work}, {95, 5});
}

// Writers are gone when their pages are written. Whoever has them written sends flushes, and what
// metadata is left: that is its own.
TEST_F(DiskTest, TheWriterHasExited) {
  have_disk({});
  if (IsSkipped()) return;
  syncfs(disk_->fd());
  Begun recording(9, "100");
  const int syncing = getpid();
  std::set<int> ends = {syncing};
  for (int i = 0; i < 2; ++i) {
    const int writer = use("file", {"--megabytes", "300", "--seconds", "1.5"});
    must(stage_.child(writer).wait(std::chrono::seconds(20)));
    syncfs(disk_->fd());
    ends.insert(writer);
  }
  const Observed seen =
      note("the writer has exited", recording.report(), {ends, hog_, {}, is_disk_work}, {95, 5});
  const uint64_t all = seen.report.sum(is_disk_work);
  EXPECT_GE(seen.report.samples(all), 50) << describe(seen.report);
  EXPECT_LT(seen.report.sum([&](const Flow& f) { return is_disk_work(f) && f.served == syncing; }),
            all / 10)
      << describe(seen.report);
}

}  // namespace
}  // namespace pkprof::accuracy
