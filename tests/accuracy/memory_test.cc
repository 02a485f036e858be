// SPDX-License-Identifier: Apache-2.0
// Memory: the kernel's threads that free it, join it and put it together, for those who need it.
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <thread>

#include "memory_group.h"
#include "table.h"
#include "testdisk.h"

namespace pkprof::accuracy {
namespace {

using namespace std::chrono_literals;
using live::Flow;
using live::must;
using testnet::Argv;

// A setting of the kernel's, as it was before when the test ends.
class Setting {
 public:
  Setting(std::string path, const std::string& value)
      : path_(std::move(path)), before_(live::read_file(path_)) {
    live::write_file(path_, value);
  }
  ~Setting() { std::ofstream(path_) << before_; }
  Setting(const Setting&) = delete;
  Setting& operator=(const Setting&) = delete;

 private:
  std::string path_;
  std::string before_;
};

// A file system on which whoever writes waits, uninterruptibly, while this lives.
class Frozen {
 public:
  explicit Frozen(int fd) : fd_(fd) {
    if (ioctl(fd_, FIFREEZE, 0) != 0) throw std::runtime_error("FIFREEZE");
  }
  ~Frozen() { ioctl(fd_, FITHAW, 0); }
  Frozen(const Frozen&) = delete;
  Frozen& operator=(const Frozen&) = delete;

 private:
  int fd_;
};

// Memory of the machine in MiB: free, or to be had from caches.
uint64_t available_mb() {
  std::ifstream in("/proc/meminfo");
  for (std::string name; in >> name;)
    if (name == "MemAvailable:") {
      uint64_t kb = 0;
      in >> kb;
      return kb >> 10;
    }
  return 0;
}

uint64_t vmstat(const std::string& wanted) {
  std::ifstream in("/proc/vmstat");
  uint64_t value = 0;
  for (std::string name; in >> name >> value;)
    if (name == wanted) return value;
  return 0;
}

bool wait_until(const std::function<bool()>& done, std::chrono::seconds most) {
  const auto deadline = std::chrono::steady_clock::now() + most;
  while (!done()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(20ms);
  }
  return true;
}

std::function<bool(const Flow&)> thread_named(const char* name) {
  return [source = std::string("kthread:") + name](const Flow& f) {
    return f.source.starts_with(source);
  };
}

class MemoryTest : public testing::Test {
 protected:
  void SetUp() override {
    live::skip_unless_able();
    if (IsSkipped()) return;
    hog_ = stage_.start_hog(live::last_cpu());
  }
  void have_disk() {
    auto disk = testnet::Disk::create({.megabytes = 64});
    if (!disk) GTEST_SKIP() << disk.error().message;
    disk_.emplace(std::move(*disk));
  }
  int use(Argv more) {
    Argv argv = {"pk_memory"};
    argv.insert(argv.end(), more.begin(), more.end());
    return stage_.start(nullptr, argv, 0);
  }
  // A process that reads a file which is larger than the memory.
  int read(const char* name, Argv more = {}) {
    Argv argv = {"read", "--file", disk_->path(name), "--megabytes", "1000000"};
    argv.insert(argv.end(), more.begin(), more.end());
    return use(argv);
  }
  // All of the memory is full of files' pages.
  static void wait_for_kswapd() {
    const uint64_t before = vmstat("pgscan_kswapd");
    if (!wait_until([&] { return vmstat("pgscan_kswapd") > before + 50'000; }, 120s))
      throw std::runtime_error("kswapd has nothing to do");
  }

  live::Turn turn_;
  std::optional<testnet::Disk> disk_;
  live::Stage stage_;
  int hog_ = 0;
};

// Little memory to fill: the rest is set aside as huge pages, which is done at once, as nothing is
// written to them.
class SetAside {
 public:
  explicit SetAside(uint64_t mb_left) {
    if (const uint64_t mb = available_mb(); mb > mb_left + 1000 && std::filesystem::exists(knob))
      huge_.emplace(knob, std::to_string((mb - mb_left) / 2));
  }

 private:
  static constexpr const char* knob = "/proc/sys/vm/nr_hugepages";
  std::optional<Setting> huge_;
};

// Their pages fill the memory.
TEST_F(MemoryTest, TwoReadersAtThreeToOne) {
  // A part is by how often someone woke kswapd: it is woken more often where it frees less each
  // time.
  const Setting least("/proc/sys/vm/min_free_kbytes", "8000");
  const Setting step("/proc/sys/vm/watermark_scale_factor", "1");
  const SetAside rest(3000);
  if (available_mb() > 40'000) GTEST_SKIP() << "more memory than can be filled in a test";
  have_disk();
  if (IsSkipped()) return;
  {
    live::Stage filling;
    for (const char* more : {"more", "and more"})
      filling.start(nullptr,
                    {"pk_memory", "read", "--file", disk_->path(more), "--megabytes", "1000000"});
    wait_for_kswapd();
  }
  const int one = read("one", {"--rate", "450"});
  const int other = read("other", {"--rate", "150"});
  const auto counts = thread_named("kswapd");
  const uint64_t before = vmstat("pageoutrun");
  const Observed seen = measure("kswapd, 3:1", {{one, other}, hog_, {}, counts}, {85, 5},
                                {.seconds = 20, .min_samples = 200});
  const uint64_t wakeups = vmstat("pageoutrun") - before;
  expect_ratio(seen.report, counts, one, other, stage_.ratio(one, other), Time::sampled, wakeups);
}

TEST_F(MemoryTest, SmallPagesAreJoined) {
  const std::string knobs = "/sys/kernel/mm/transparent_hugepage/";
  if (!std::filesystem::exists(knobs + "enabled") ||
      live::read_file(knobs + "enabled").find("[never]") != std::string::npos)
    GTEST_SKIP() << "no transparent huge pages";
  const Setting pause(knobs + "khugepaged/scan_sleep_millisecs", "1");
  const Setting failed(knobs + "khugepaged/alloc_sleep_millisecs", "10");
  const Setting pages(knobs + "khugepaged/pages_to_scan", "65536");
  const int user = use({"join", "--megabytes", "256"});
  // Others on the machine may have pages to be joined.
  const auto counts = [all = thread_named("khugepaged"), user, this](const Flow& f) {
    return all(f) && (f.served < 0 || f.served == user || f.served == hog_);
  };
  measure("khugepaged", {{user}, hog_, {}, counts}, {85, 5}, {.min_samples = 200});
}

// What tracepoints the kernel has told of, in a trace of our own.
class KernelTrace {
 public:
  KernelTrace() {
    if (!std::filesystem::exists(std::string(root) + "/instances"))
      mounted_ = mount("tracefs", root, "tracefs", 0, nullptr) == 0;
    std::filesystem::create_directory(own);
  }
  ~KernelTrace() {
    rmdir(own);
    if (mounted_) umount(root);
  }
  KernelTrace(const KernelTrace&) = delete;
  KernelTrace& operator=(const KernelTrace&) = delete;

  static void enable(const std::string& event) {
    live::write_file(std::string(own) + "/events/" + event + "/enable", "1");
  }
  static bool has(const std::string& text) {
    return live::read_file(std::string(own) + "/trace").find(text) != std::string::npos;
  }

 private:
  static constexpr const char* root = "/sys/kernel/tracing";
  static constexpr const char* own = "/sys/kernel/tracing/instances/pkprof_test";
  bool mounted_ = false;
};

// Whether the kernel tells that kcompactd was asked for by this setting: 6.12 does, 6.1 does not.
bool asking_is_traced(const char* setting) {
  const KernelTrace trace;
  KernelTrace::enable("compaction/mm_compaction_wakeup_kcompactd");
  // One that is at work already is not asked again.
  return wait_until(
      [&] {
        const Setting asked(setting, "100");
        return KernelTrace::has("wakeup_kcompactd:");
      },
      10s);
}

TEST_F(MemoryTest, FreeMemoryIsPutTogether) {
  constexpr const char* setting = "/proc/sys/vm/compaction_proactiveness";
  if (!std::filesystem::exists(setting)) GTEST_SKIP() << "no proactive compaction";
  if (available_mb() > 8'000) GTEST_SKIP() << "more memory than can be torn to pieces in a test";
  if (!asking_is_traced(setting))
    GTEST_SKIP() << "this kernel does not trace who asks for proactive compaction";
  const int user = use({"compact", "--megabytes", std::to_string(available_mb() * 6 / 10)});
  measure("kcompactd", {{user}, hog_, {}, thread_named("kcompactd")}, {85, 5},
          {.min_samples = 100});
}

// The largest process of a group is killed for the one that asks for more, and cannot die, as it
// waits for a disk: its memory is taken from it.
TEST_F(MemoryTest, TheMemoryOfTheKilled) {
  have_disk();
  if (IsSkipped()) return;
  const uint64_t mb = std::min<uint64_t>(available_mb() / 2, 1'500);
  const auto group = MemoryGroup::create(mb << 20);
  if (!group) GTEST_SKIP() << group.error().message;
  const int victim =
      use({"hold", "--file", disk_->path("file"), "--megabytes", std::to_string(mb * 8 / 10)});
  const int asking = use({"grow", "--megabytes", std::to_string(mb * 4 / 10)});
  for (const int pid : {victim, asking}) group->add(pid);
  kill(victim, SIGUSR1);
  ASSERT_TRUE(wait_until([&] { return group->used() >> 20 > mb * 7 / 10; }, 60s));
  std::this_thread::sleep_for(500ms);  // it has all, and writes
  std::optional<Frozen> frozen(disk_->fd());
  Begun recording(live::in_guest() ? 40 : 8, "100");
  kill(asking, SIGUSR1);  // its victim is given two seconds to die by itself
  live::Report report = recording.report();
  frozen.reset();
  const auto counts = thread_named("oom_reaper");
  const Observed seen =
      note("oom reaper", std::move(report), {{asking}, hog_, {}, counts}, {85, 5});
  EXPECT_GE(seen.report.samples(seen.report.sum(counts)), 10) << describe(seen.report);
}

}  // namespace
}  // namespace pkprof::accuracy
