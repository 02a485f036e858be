// SPDX-License-Identifier: Apache-2.0
// What threads waited for and for whom, against what a program says of its own waits.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>

#include "lifetimes.h"
#include "memory_group.h"
#include "scenario.h"
#include "testdisk.h"

namespace pkprof::accuracy {
namespace {

using live::Argv;
using Json = nlohmann::json;

class WaitsTest : public testing::Test {
 protected:
  void SetUp() override {
    live::skip_unless_able();
    if (IsSkipped()) return;
    PKPROF_NEEDS("waits: the waiting thread's stack");
    constexpr const char* counts = "/proc/sys/kernel/task_delayacct";  // for taskstats
    if (access(counts, W_OK) == 0) counts_cpu_time_.emplace(counts, "1");
    awake_ = Fd(open("/dev/cpu_dma_latency", O_WRONLY | O_CLOEXEC));
    const int32_t microseconds = 0;
    if (awake_.valid()) (void)!write(awake_.get(), &microseconds, sizeof microseconds);
  }

  // Records the mode: what it says, and what is said of it.
  void run(const std::string& mode, const Argv& arguments = {}) {
    auto lifetimes = Lifetimes::listen();
    const double stolen_before = stolen_ns();
    const std::string file = dir_.file("waits.pb.gz");
    // The shell has it begin and end within the recording.
    Argv argv = {"record",
                 "-q",
                 "--resource",
                 "wait",
                 "--budget",
                 "100",
                 "-o",
                 file,
                 "--",
                 "sh",
                 "-c",
                 R"("$0" "$@"; exit)",
                 testnet::sibling("pk_wait"),
                 mode};
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    const live::Finished done = live::run_pkprof(argv);
    ASSERT_EQ(done.status, 0) << done.err;
    truth_ = Json::parse(done.out);
    const live::Finished report = live::run_pkprof({"report", file, "--view", "waits", "--json"});
    ASSERT_EQ(report.status, 0) << report.err;
    report_ = Json::parse(report.out);
    live::read_report(file);  // the ledger of CPU time sums beside it
    if (lifetimes) expect_lifetimes(**lifetimes, stolen_ns() - stolen_before);
  }

  // What the host took from this machine, ever.
  static double stolen_ns() {
    std::ifstream in("/proc/stat");
    std::string name;
    double ticks = 0;
    in >> name;
    for (int column = 0; column < 8; ++column) in >> ticks;
    return ticks / static_cast<double>(sysconf(_SC_CLK_TCK)) * 1e9;
  }

  // Of whom a reason may be: a part of its waits.
  using Party = std::function<bool(const Json& whom)>;
  static bool is_anyone(const Json&) { return true; }
  static Party is_pid(int pid) {
    return [pid](const Json& whom) { return whom.is_object() && whom["pid"] == pid; };
  }
  [[nodiscard]] bool is_right(const Json& whom) const {
    const Json& others = truth_["others"];
    return whom.is_object() && std::ranges::find(others, whom["pid"]) != others.end();
  }
  [[nodiscard]] bool is_itself(const Json& whom) const { return is_pid(pid())(whom); }
  // The processes of the same program that have nothing to do with it.
  [[nodiscard]] bool is_bystander(const Json& whom) const {
    return whom.is_object() && whom["comm"] == "pk_wait" && !is_right(whom) && !is_itself(whom);
  }

  // Seconds that the process waited for a kind of thing; for such parties.
  [[nodiscard]] double waited(const std::string& kind, const Party& whom = is_anyone) const {
    double ns = 0;
    for (const Json& row : report_["waits"]) {
      if (row["who"]["pid"] != pid()) continue;
      for (const Json& reason : row["reasons"])
        if (reason["kind"] == kind && whom(reason["for"])) ns += reason["ns"].get<double>();
    }
    return ns / 1e9;
  }
  [[nodiscard]] double times_waited(const std::string& kind) const {
    double times = 0;
    for (const Json& row : report_["waits"])
      for (const Json& reason : row["reasons"])
        if (row["who"]["pid"] == pid() && reason["kind"] == kind)
          times += reason["count"].get<double>();
    return times;
  }
  [[nodiscard]] double waited_for_right(const std::string& kind) const {
    return waited(kind, [this](const Json& whom) { return is_right(whom); });
  }
  [[nodiscard]] double waited_for_bystander(const std::string& kind) const {
    return waited(kind, [this](const Json& whom) { return is_bystander(whom); });
  }
  [[nodiscard]] int pid() const { return truth_["pid"].get<int>(); }
  [[nodiscard]] double truth(const char* of = "waited_ns") const {
    return truth_[of].get<double>() / 1e9;
  }

  static void expect_near(double found, double truth, double percent) {
    std::printf("  found %.4f s, truth %.4f s (%+.2f %%)\n", found, truth,
                100 * (found / truth - 1));
    EXPECT_GT(truth, 0);
    EXPECT_NEAR(found, truth, truth * percent / 100);
  }
  // How long it was, for whom it was, and that the bystander, which waits as much, is not among
  // them.
  void expect(const std::string& kind, double percent) const {
    expect_near(waited(kind), truth(), percent);
    std::printf("  for the right one %.2f %%, for the bystander %.2f %%\n",
                100 * waited_for_right(kind) / waited(kind),
                100 * waited_for_bystander(kind) / waited(kind));
    // What looks at the process may hold a lock of it, too.
    const double for_pkprof =
        waited(kind, [](const Json& whom) { return whom.is_object() && whom["comm"] == "pkprof"; });
    EXPECT_GE(waited_for_right(kind), 0.99 * (waited(kind) - for_pkprof))
        << report_["waits"].dump(1);
    expect_no_bystander(kind);
  }
  void expect_no_bystander(const std::string& kind) const {
    ASSERT_NE(truth_["bystander"], 0);
    EXPECT_GE(waits_of_bystander(kind), 0.02 * waited(kind));
    EXPECT_LE(waited_for_bystander(kind), 0.01 * waited(kind)) << report_["waits"].dump(1);
  }
  // It was active in the same way.
  [[nodiscard]] double waits_of_bystander(const std::string& kind) const {
    for (const Json& row : report_["waits"])
      if (row["who"]["pid"] == truth_["bystander"]) return row["kinds"].value(kind, 0.0) / 1e9;
    return 0;
  }

  // On the CPU, ready and waiting is as long as all of its threads lived, as the kernel says. Time
  // on the CPU is by samples, so it is in the sum where it is a small part: of many threads. Time
  // off the CPU is not.
  void expect_lifetimes(Lifetimes& lifetimes, double stolen_ns) {
    for (const Json& row : report_["waits"]) {
      if (!row["who"].is_object() || row["who"]["comm"] != "pk_wait") continue;
      double lived_ns = 0, ran_ns = 0;
      const auto threads = lifetimes.of(row["who"]["pid"].get<int>());
      for (const Lifetimes::Thread& thread : threads) {
        lived_ns += static_cast<double>(thread.ns);
        ran_ns += static_cast<double>(thread.cpu_ns);
      }
      if (lived_ns < 0.5e9) continue;
      most_threads_ = std::max(most_threads_, threads.size());
      const double off_ns = row["wait_ns"].get<double>() + row["idle_ns"].get<double>();
      const double found_ns = off_ns + row["cpu_ns"].get<double>();
      std::printf(
          "  lifetimes of %zu threads: found %.4f s, truth %.4f s (%+.2f %%); off the CPU "
          "%.4f s, truth %.4f s (%+.2f %% of them)\n",
          threads.size(), found_ns / 1e9, lived_ns / 1e9, 100 * (found_ns / lived_ns - 1),
          off_ns / 1e9, (lived_ns - ran_ns) / 1e9, 100 * (off_ns - lived_ns + ran_ns) / lived_ns);
      // The kernel looks at its clock a little before a switch is told, and takes off what the host
      // stole.
      double waits = 0;
      for (const Json& reason : row["reasons"]) waits += reason["count"].get<double>();
      const double most_ns = off_cpu_percent_ / 100 * lived_ns + 10e3 * waits + stolen_ns;
      if (ran_ns > 0) {
        EXPECT_NEAR(off_ns, lived_ns - ran_ns, most_ns) << row.dump(1);
      }
      if (threads.size() > 1000) {
        EXPECT_NEAR(found_ns, lived_ns, 0.01 * lived_ns) << row.dump(1);
      }
    }
    EXPECT_FALSE(lifetimes.has_lost());
  }

  // An idle CPU wakes up at once: pkprof has a thread ready from its wakeup on, the kernel from
  // when its CPU has taken note.
  Fd awake_;
  double off_cpu_percent_ = 1;  // of a lifetime
  size_t most_threads_ = 0;     // whose lifetimes the kernel told, of a process
  std::optional<live::Sysctl> counts_cpu_time_;
  live::TempDir dir_;
  live::Turn turn_;
  Json truth_;
  Json report_;
};

TEST_F(WaitsTest, Sleeps) {
  run("sleep");
  expect_near(waited("timer"), truth(), 2);
  EXPECT_GE(waited("timer", [](const Json& whom) { return whom == "KERNEL"; }),
            0.95 * waited("timer"));
  expect_no_bystander("timer");
}

TEST_F(WaitsTest, Mutex) {
  run("mutex");
  expect("lock", 5);
}

TEST_F(WaitsTest, Condition) {
  run("condition");
  expect("event", 5);
}

TEST_F(WaitsTest, Eventfd) {
  run("eventfd");
  expect("event", 5);
}

TEST_F(WaitsTest, Children) {
  run("children");
  expect("child", 5);
}

// In control groups that have too little, until a child gives some of it back.
TEST_F(WaitsTest, Memory) {
  constexpr uint64_t bytes = 16 << 20;
  using Group = MemoryGroup;
  const auto own = Group::create(bytes, Group::OnFull::wait);
  const auto other = Group::create(bytes, Group::OnFull::wait);
  if (!own || !other) GTEST_SKIP() << (own ? other : own).error().message;
  run("memory", {own->path(), other->path()});
  expect("memory", 5);
}

TEST_F(WaitsTest, Pipe) {
  run("pipe");
  expect("reply", 5);
}

TEST_F(WaitsTest, Tcp) {
  run("tcp");
  expect("reply", 5);
}

// Of datagrams the sender's address is told. Whose port bind() chose waits for its next request.
TEST_F(WaitsTest, Udp) {
  run("udp");
  expect_near(waited("reply"), truth(), 5);
  const auto from = [this](const char* address) {
    return waited("reply", [address](const Json& whom) { return whom == address; });
  };
  EXPECT_GE(from("127.0.0.3"), 0.99 * waited("reply")) << report_["waits"].dump(1);
  EXPECT_LE(from("127.0.0.5"), 0.01 * waited("reply"));
  for (const Json& row : report_["waits"])
    if (is_right(row["who"])) {
      EXPECT_GT(row["kinds"].value("idle", 0.0), 0.1 * truth() * 1e9) << row.dump(1);
      EXPECT_EQ(row["kinds"].value("reply", 0.0), 0) << row.dump(1);
    }
}

TEST_F(WaitsTest, QueuedBehindAnother) {
  off_cpu_percent_ = 2;  // on a loaded machine a wait of a time slice may be missing: not explained
  run("hogs");
  expect_near(waited("runnable"), truth("delay_ns"), 5);
  // A wait is for whoever had the CPU at one moment of it. Where others had it as well, that has a
  // standard deviation.
  const double share = std::min(1.0, truth("took_ns") / waited("runnable"));
  const double deviation =
      waited("runnable") * std::sqrt(share * (1 - share) / times_waited("runnable"));
  expect_near(waited_for_right("runnable"), truth("took_ns"),
              5 + 200 * deviation / truth("took_ns"));
  EXPECT_LE(waited_for_bystander("runnable"), 0.01 * waited("runnable"));
}

class DiskWaitsTest : public WaitsTest {
 protected:
  // This disk does one thing after the other. What reads take longer beside a writer they are
  // behind it at most: their own part takes longer, too, with the CPU's caches full of what is
  // written.
  void run_beside_writer(const std::string& mode, const std::string& kind) {
    const auto disk = testnet::Disk::create({}), other_disk = testnet::Disk::create({});
    ASSERT_TRUE(disk) << disk.error().message;
    ASSERT_TRUE(other_disk) << other_disk.error().message;
    run(mode, {disk->path(""), other_disk->path("")});
    // From its wakeup on it is ready; the kernel counts that from when its CPU has taken note.
    expect_near(waited(kind) + waited("runnable"), truth() + truth("delay_ns"), 5);
    EXPECT_LE(waited(kind), 1.02 * truth());
    const double behind = truth("took_ns");
    std::printf("  behind the writer: found %.4f s, truth %.4f s\n", waited_for_right(kind),
                behind);
    EXPECT_LE(waited_for_right(kind), 1.05 * behind);
    EXPECT_GE(waited_for_right(kind), 0.7 * behind);
    EXPECT_GE(waited_for_right(kind) + waited(kind, is_pid(pid())), 0.97 * waited(kind));
    expect_no_bystander(kind);
  }
};

TEST_F(DiskWaitsTest, BehindAnother) {
  run_beside_writer("disk", "disk");
}

TEST_F(DiskWaitsTest, PageFaultsBehindAnother) {
  run_beside_writer("fault", "fault");
}

class ThreadsWaitsTest : public WaitsTest {
 protected:
  void run_threads(const std::string& mode, size_t threads) {
    if (const auto lifetimes = Lifetimes::listen(); !lifetimes)
      GTEST_SKIP() << lifetimes.error().message;
    run(mode);
    EXPECT_GE(most_threads_, threads);
  }
};

TEST_F(ThreadsWaitsTest, ThatComeAndGo) {
  run_threads("threads", 2000);
}

TEST_F(ThreadsWaitsTest, ThatHardlyLive) {
  run_threads("short-threads", 4000);
}

}  // namespace
}  // namespace pkprof::accuracy
