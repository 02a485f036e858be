// SPDX-License-Identifier: Apache-2.0
// Bytes, packets and waiting for locks, against what the kernel and the programs say themselves. A
// bystander uses the same resource a little, or none of it.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <array>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <thread>

#include "testdisk.h"
#include "usage_scenario.h"

namespace pkprof::accuracy {
namespace {

using live::Argv;
using namespace std::chrono_literals;

class DiskUsageTest : public UsageTest {
 protected:
  void SetUp() override {
    UsageTest::SetUp();
    if (IsSkipped()) return;
    auto disk = testnet::Disk::create({.direct = true});
    if (!disk) GTEST_SKIP() << disk.error().message;
    disk_.emplace(std::move(*disk));
    struct stat info{};
    ASSERT_EQ(stat(disk_->path("").c_str(), &info), 0);
    device_ = "loop" + std::to_string(minor(info.st_dev));
  }
  int use(const char* name, const Argv& more) {
    Argv argv = {"pk_disk", "--file", disk_->path(name)};
    argv.insert(argv.end(), more.begin(), more.end());
    return stage_.start(nullptr, argv);
  }
  [[nodiscard]] std::string around(const std::string& script) const {
    const std::string stat = "cat /sys/block/" + device_ + "/stat";
    return stat + " >begin; " + script + "; " + stat + " >end";
  }
  [[nodiscard]] std::vector<std::string> at(const char* way, const char* value = "bytes") const {
    return {"devices", device_, way, value};
  }
  static constexpr double sector = 512;

  std::optional<testnet::Disk> disk_;
  std::string device_;
};

// Sectors and requests of the kernel's own count, and whose they were.
TEST_F(DiskUsageTest, TwoWritersAtThreeToOne) {
  const int idle = use("idle", {"--mode", "write", "--rate", "0.01"});
  const std::string write = testnet::sibling("pk_disk") + " --mode direct --seconds 4 --file ";
  const Json disk = record("disk",
                           around(write + "$1 --rate 60 >/dev/null & one=$!; " + write +
                                  "$2 --rate 20 >/dev/null & other=$!; "
                                  "wait; echo $one $other"),
                           {disk_->path("one"), disk_->path("other")});
  const auto [one, other] = pids<2>();
  const double all = number_at(disk["total"], at("write"));
  expect_near(all, sector * grown(6), 2, "bytes written");
  const double ones = of_pid(disk, one, at("write"));
  const double others = of_pid(disk, other, at("write"));
  EXPECT_GE(ones + others, 0.95 * all);
  EXPECT_LE(of_pid(disk, idle, at("write")), 0.01 * all);
  expect_near(1000 * ones / others, 3000, 5, "ratio, x 1000");
}

TEST_F(DiskUsageTest, Reads) {
  use("file", {"--mode", "write", "--sync-mb", "8"});
  const int writer = use("other", {"--mode", "direct", "--rate", "0.01"});
  std::this_thread::sleep_for(1s);
  const std::string read = testnet::sibling("pk_disk") + " --mode read --seconds 3 --rate 80 ";
  const Json disk =
      record("disk", around(read + "--file $1 >/dev/null & wait; echo $!"), {disk_->path("file")});
  const auto [reader] = pids<1>();
  const double all = number_at(disk["total"], at("read"));
  expect_near(all, sector * grown(2), 2, "bytes read");
  EXPECT_GE(of_pid(disk, reader, at("read")), 0.99 * all);
  EXPECT_EQ(of_pid(disk, writer, at("read")), 0);
}

// In the queue and at the disk, all requests together: what the kernel counts in ms.
TEST_F(DiskUsageTest, Times) {
  const std::string read =
      testnet::sibling("pk_disk") + " --mode direct --seconds 3 --chunk-kb 4096 ";
  const Json disk = record("disk", around(read + "--file $1 >/dev/null"), {disk_->path("file")});
  const double at_disk = number_at(disk["total"], at("write", "time_ns"));
  const double queued = number_at(disk["total"], at("queued", "time_ns"));
  expect_near(at_disk + queued, 1e6 * (grown(3) + grown(7)), 5, "ns at the disk and queued");
}

// What was written through the page cache by two that are gone when it is flushed.
TEST_F(DiskUsageTest, FlushedAfterBothHaveExited) {
  const std::string write = "dd if=/dev/zero bs=1M status=none conv=notrunc ";
  const Json disk = record("disk",
                           around(write + "count=60 of=$1 & one=$!; " + write +
                                  "count=20 of=$2 & other=$!; wait; "
                                  "echo $one $other; sync -f $1"),
                           {disk_->path("one"), disk_->path("other")});
  const auto [one, other] = pids<2>();
  const double all = number_at(disk["total"], at("write"));
  expect_near(all, sector * grown(6), 2, "bytes written");
  constexpr double mega = 1 << 20;
  expect_near(of_pid(disk, one, at("write")), 60 * mega, 5, "of the first");
  expect_near(of_pid(disk, other, at("write")), 20 * mega, 5, "of the second");
}

class NetUsageTest : public UsageTest {
 protected:
  // Loopback's own count is read around it.
  Json record_around(const std::string& script) {
    const std::string read = "grep lo: /proc/net/dev";
    return record("net", read + " >begin; " + script + "; " + read + " >end");
  }
  static double on_loopback(const Json& row, const char* way, const char* value = "bytes") {
    return number_at(row, {"devices", "lo", way, value});
  }
  static double of_pid(const Json& net, int pid, const char* way) {
    return UsageTest::of_pid(net, pid, {"devices", "lo", way, "bytes"});
  }
  // Of a process's bytes, those whose other end is said to be another one.
  static void expect_peer(const Json& net, int pid, int other) {
    double with_other = 0;
    for (const Json& row : net["rows"]) {
      if (!row["who"].is_object() || row["who"]["pid"] != pid) continue;
      for (const Json& peer : row["peers"])
        if (peer["who"].is_object() && peer["who"]["pid"] == other)
          with_other += peer["bytes"].get<double>();
    }
    const double all = UsageTest::of_pid(net, pid, {"bytes"});
    std::printf("  of %.0f bytes of %d with %d: %.2f %%\n", all, pid, other,
                100 * with_other / all);
    EXPECT_GT(all, 1e6);
    EXPECT_GE(with_other, 0.95 * all) << net.dump(1);
  }
  // The columns of /proc/net/dev, from "lo:".
  enum : size_t { received_bytes = 1, received_packets = 2, sent_bytes = 9 };
};

TEST_F(NetUsageTest, DatagramsAtThreeToOne) {
  std::vector<int> receivers;
  for (const char* port : {"9501", "9502", "9503"})
    receivers.push_back(stage_.start(nullptr, {"pk_udp", "recv", "--port", port}));
  const std::string send = testnet::sibling("pk_udp") + " send --to 127.0.0.1 --size 1000 ";
  const Json net = record_around(
      send + "--port 9501 --pps 9000 --count 27000 >/dev/null & one=$!; " + send +
      "--port 9502 --pps 3000 --count 9000 >/dev/null & other=$!; " + send +
      "--port 9503 --pps 1 --count 3 >/dev/null & idle=$!; wait; echo $one $other $idle");
  expect_near(on_loopback(net["total"], "received"), grown(received_bytes), 2, "bytes received");
  expect_near(on_loopback(net["total"], "received", "count"), grown(received_packets), 2,
              "packets received");
  expect_near(on_loopback(net["total"], "sent"), grown(sent_bytes), 2, "bytes sent");
  const auto senders = pids<3>();
  const auto expect_of = [&](const char* way, const auto& pids) {
    const double ones = of_pid(net, pids[0], way);
    const double others = of_pid(net, pids[1], way);
    expect_near(ones / others * 1000, 3000, 5, way);
    EXPECT_GE(ones + others, 0.95 * on_loopback(net["total"], way));
    EXPECT_LE(of_pid(net, pids[2], way), 0.01 * ones);
  };
  expect_of("received", receivers);
  expect_of("sent", senders);
}

// One connection, whose segments the receiver takes in its own time, and acknowledges.
TEST_F(NetUsageTest, AStream) {
  const int server = stage_.start(nullptr, {"pk_tcp", "serve", "--port", "9504"});
  const Json net =
      record_around(testnet::sibling("pk_tcp") +
                    " stream --to 127.0.0.1 --port 9504 --seconds 3 >/dev/null & wait; echo $!");
  const auto [client] = pids<1>();
  const double sent = on_loopback(net["total"], "sent");
  expect_near(sent, grown(sent_bytes), 2, "bytes sent");
  // What is sent is counted before it is cut into what the device takes.
  expect_near(on_loopback(net["total"], "received", "count"), grown(received_packets), 2,
              "packets received");
  const double received = on_loopback(net["total"], "received");
  expect_near(received, grown(received_bytes), 2, "bytes received");
  EXPECT_GE(of_pid(net, client, "sent"), 0.95 * sent);
  EXPECT_GE(of_pid(net, server, "received"), 0.95 * received);
  expect_peer(net, client, server);
  expect_peer(net, server, client);
}

// Between network namespaces with the same addresses as another pair has, at the same time: one of
// TCP, whose ends know of each other, and one of datagrams, whose receiver knows.
TEST_F(NetUsageTest, PeersInOtherNamespaces) {
  PKPROF_NEEDS("network: receiving sockets");
  std::vector<testnet::Pair> pairs;
  for (int i = 0; i < 2; ++i) pairs.push_back(live::must(testnet::Pair::create()));
  struct Ends {
    int server, client, receiver, sender;
  };
  std::vector<Ends> all;
  const char* to = testnet::Pair::kServer4;
  for (const testnet::Pair& pair : pairs) {
    const auto start = [&](const testnet::Namespace& ns, const Argv& argv, bool wait) {
      return stage_.start(&ns, argv, -1, wait);
    };
    Ends& ends = all.emplace_back();
    ends.server = start(pair.server, {"pk_tcp", "serve", "--port", "9506"}, true);
    ends.receiver = start(pair.server, {"pk_udp", "recv", "--port", "9507"}, true);
    ends.client = start(pair.client, {"pk_tcp", "stream", "--to", to, "--port", "9506"}, false);
    ends.sender = start(
        pair.client,
        {"pk_udp", "send", "--to", to, "--port", "9507", "--size", "1000", "--pps", "3000"}, false);
  }
  const Json net = record("net", "sleep 3");
  for (const Ends& ends : all) {
    expect_peer(net, ends.client, ends.server);
    expect_peer(net, ends.server, ends.client);
    expect_peer(net, ends.receiver, ends.sender);
  }
}

// What does not fit into a slow receiver's buffer; the receiver counts what it missed.
TEST_F(NetUsageTest, DropsAreTheReceivers) {
  PKPROF_NEEDS("network: receiving sockets");
  const int receiver = stage_.start(
      nullptr, {"pk_udp", "recv", "--port", "9505", "--work-us", "1000", "--rcvbuf", "8192"});
  const Json net = record_around(
      testnet::sibling("pk_udp") +
      " send --to 127.0.0.1 --size 1000 --port 9505 --pps 3000 --count 6000 >/dev/null");
  const auto dropped = [&](int pid) {
    return UsageTest::of_pid(net, pid, {"ways", "dropped", "count"});
  };
  testnet::Child& child = stage_.child(receiver);
  live::must(child.stop());
  const auto truth = Json::parse(child.last_line())["dropped"].get<double>();
  expect_near(dropped(receiver), truth, 2, "packets dropped");
  EXPECT_GE(dropped(receiver), 0.95 * number_at(net["total"], {"ways", "dropped", "count"}));
}

// Memory of programs and of files, at 3:1, and of one that takes none.
TEST_F(UsageTest, MemoryOfTwoAtThreeToOne) {
  const int idle = stage_.start(nullptr, {"pk_hog"});
  const std::string dd = "dd if=/dev/zero status=none ";
  const Json memory = record("memory", dd + "of=/dev/null bs=240M count=1 & one=$!; " + dd +
                                           "of=/dev/null bs=80M count=1 & other=$!; wait; " + dd +
                                           "of=a bs=1M count=480 & file=$!; " + dd +
                                           "of=b bs=1M count=160 & less=$!; wait; rm a b; "
                                           "echo $one $other $file $less");
  const auto [one, other, file, less] = pids<4>();
  constexpr double mega = 1 << 20;
  const std::vector<std::string> anonymous = {"ways", "anonymous", "bytes"};
  const std::vector<std::string> cache = {"ways", "page cache", "bytes"};
  expect_near(of_pid(memory, one, anonymous), 240 * mega, 5, "of the first");
  expect_near(of_pid(memory, other, anonymous), 80 * mega, 5, "of the second");
  const bool is_shared = of_pid(memory, file, cache) == 0;  // the directory is on a tmpfs
  const std::vector<std::string>& files =
      is_shared ? std::vector<std::string>{"ways", "shared memory", "bytes"} : cache;
  expect_near(of_pid(memory, file, files), 480 * mega, 5, "of the file");
  expect_near(of_pid(memory, less, files), 160 * mega, 5, "of the smaller file");
  EXPECT_LE(of_pid(memory, idle, {"bytes"}), 0.01 * number_at(memory["total"], {"bytes"}));
}

class LockUsageTest : public UsageTest {
 protected:
  // What the mode says of itself, and what was recorded of it.
  void run(const std::string& mode) {
    lock_ = record("lock", "$1 " + mode, {testnet::sibling("pk_wait")});
    truth_ = Json::parse(out_);
  }
  // By who held it; -1: by whoever did.
  [[nodiscard]] double waited(const char* way, int holder = -1) const {
    for (const Json& row : lock_["rows"]) {
      if (!row["who"].is_object() || row["who"]["pid"] != truth_["pid"]) continue;
      if (holder < 0) return number_at(row, {"ways", way, "ns"});
      for (const Json& one : row["holders"])
        if (one["who"].is_object() && one["who"]["pid"] == holder) return one["ns"].get<double>();
    }
    return 0;
  }
  // For the lock whose name ends so.
  [[nodiscard]] double waited_for(const std::string& name) const {
    double ns = 0;
    for (const Json& lock : lock_["locks"])
      if (lock["name"].get<std::string>().ends_with(name)) ns += lock["ns"].get<double>();
    return ns;
  }
  [[nodiscard]] double truth() const { return truth_["waited_ns"].get<double>(); }
  [[nodiscard]] int other() const { return truth_["others"][0].get<int>(); }

  Json lock_;
  Json truth_;
};

// Since Linux 6.13: of which cache an object is.
bool tells_caches() {
  std::ifstream symbols("/proc/kallsyms");
  for (std::string line; std::getline(symbols, line);)
    if (line.ends_with(" bpf_get_kmem_cache")) return true;
  return false;
}

TEST_F(LockUsageTest, AMutexOfAProgram) {
  PKPROF_NEEDS("waits: the waiting thread's stack");
  run("mutex");
  expect_near(waited("futex"), truth(), 5, "ns");
  EXPECT_GE(waited("futex", other()), 0.95 * waited("futex"));
  EXPECT_GE(waited_for("wait_mutex"), 0.95 * waited("futex"));
}

TEST_F(LockUsageTest, AReadWriteLockOfAProgram) {
  PKPROF_NEEDS("waits: the waiting thread's stack");
  run("rwlock");
  expect_near(waited("futex"), truth(), 5, "ns");
  EXPECT_GE(waited("futex", other()), 0.95 * waited("futex"));
}

// A semaphore of the kernel's.
TEST_F(LockUsageTest, AFilesLock) {
  PKPROF_NEEDS("resources: the kernel's locks");
  run("inode");
  const double took = truth_["took_ns"].get<double>();
  std::printf("  ns: %.0f, between %.0f and %.0f\n", waited("rwsem:write"), truth(), took);
  EXPECT_GE(waited("rwsem:write"), 0.98 * truth());
  EXPECT_LE(waited("rwsem:write"), 1.02 * took);
  EXPECT_GE(waited("rwsem:write", other()), 0.95 * waited("rwsem:write"));
  if (tells_caches()) {
    EXPECT_GE(waited_for("&shmem_inode_cache"), 0.95 * waited("rwsem:write"));
  }
}

}  // namespace
}  // namespace pkprof::accuracy
